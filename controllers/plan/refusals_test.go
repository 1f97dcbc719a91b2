package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// A write that is due and was refused is reported with its node, since when the slot is held, and the answer in one line of
// bounded length. Where no write is due any more, an old answer means nothing.
func TestPlan_ReportsRefusedWrites(t *testing.T) {
	const since = "holds a slot since Mon 2026-06-01 22:00:00 UTC, and the API server refuses what the manager writes about its reboot: "
	const kept = "; the slot is kept until the write is accepted or the Node is deleted"
	a, b, c := entry("a", 1), entry("b", 2), entry("c", 3)
	for name, tc := range map[string]struct {
		answers map[string]string
		granted bool
		nodes   int
		want    string
	}{
		"none":               {},
		"one":                {answers: map[string]string{"b": "denied"}, nodes: 1, want: "node b " + since + "denied" + kept},
		"several":            {answers: map[string]string{"a": "no", "b": "denied", "c": "x"}, nodes: 3, want: "node a " + since + "no" + kept + "; the same holds for b, c"},
		"control characters": {answers: map[string]string{"a": "de\x1b[2Jn\nied\u202e"}, nodes: 1, want: "node a " + since + "de [2Jn ied " + kept},
		"a long answer":      {answers: map[string]string{"a": strings.Repeat("é", 40_000)}, nodes: 1, want: "node a " + since + strings.Repeat("é", 254) + "…" + kept},
		"no write is due":    {answers: map[string]string{"a": "denied"}, granted: true},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := []*host{needy("a"), needy("b"), needy("c")}
			if tc.granted {
				hosts[0] = needy("a", grant(1, v1alpha1.GrantActive))
			}
			s := one(policy("workers", atMost("3"), holding(3, a, b, c)), hosts...).snapshot()
			s.Refused = map[string]plan.Refusal{}
			for node, answer := range tc.answers {
				s.Refused[node] = plan.Refusal{Answer: answer}
			}
			p := plan.Reboots(s)
			nodes, message := p.Refused()
			if diff := cmp.Diff([]any{tc.nodes, tc.want}, []any{nodes, message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
