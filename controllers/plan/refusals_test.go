package plan_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// A write that is due and was refused is reported with its node, since when the slot is held, and the answer in one line of
// bounded length. Where no write is due any more, an old answer means nothing.
func TestPlan_ReportsRefusedWrites(t *testing.T) {
	const since = "holds a slot since Mon 2026-06-01 22:00:00 UTC, and the API server refuses what the manager writes about its reboot: "
	const kept = "; the grant is withdrawn Mon 2026-06-01 22:05:00 UTC, and the slot is given back"
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
				hosts[0] = needy("a", grant(1, protocol.GrantActive))
			}
			s := one(policy("workers", atMost("3"), holding(3, a, b, c)), hosts...).snapshot()
			s.Refused = map[string]plan.Refusal{}
			for node, answer := range tc.answers {
				s.Refused[node] = plan.Refusal{Answer: answer, Since: evening}
			}
			p := plan.Of(s)
			nodes, message := p.Refused()
			same(t, "refused writes", []any{tc.nodes, tc.want}, []any{nodes, message})
		})
	}
}

// A grant that cannot be published is withdrawn in the ledger after five minutes, and its slot is free once the Node, read again
// after that, does not show it. One that the Node shows goes on as any other.
func TestReboots_GivesBackASlotThatNobodyCanUse(t *testing.T) {
	const active = protocol.GrantActive
	type step struct {
		Action plan.Action
		Reason v1alpha1.Reason
		Until  time.Time
	}
	shown := grant(1, active)
	for name, tc := range map[string]struct {
		node      []func(*host)
		policy    func(*v1alpha1.RebootPolicy)
		refused   time.Duration // for how long; 0: it is not
		withdrawn bool
		unread    bool
		want      step
		marks     bool // the entry after the plan
		granted   []string
	}{
		"it is published again and again for five minutes": {
			refused: 299 * time.Second, want: step{plan.PublishGrant, v1alpha1.ReasonGranted, instantAfter(time.Second)},
		},
		"then it is withdrawn":                 {refused: 5 * minute, want: step{Action: plan.WithdrawGrant, Reason: v1alpha1.ReasonGranted}, marks: true},
		"one that is not refused is published": {want: step{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted}},
		"hooks that cannot be asked are no reason to wait longer": {
			policy: func(p *v1alpha1.RebootPolicy) {
				p.Spec.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/ok"}}
			},
			refused: 5 * minute, want: step{Action: plan.WithdrawGrant, Reason: v1alpha1.ReasonWaitingForHook}, marks: true,
		},
		"nor is a reason against the reboot": {
			node: []func(*host){annotated(v1alpha1.AnnotationPaused, "true")}, refused: 5 * minute,
			want: step{Action: plan.WithdrawGrant, Reason: v1alpha1.ReasonNodePaused}, marks: true,
		},
		"withdrawn, its slot goes to the next node": {
			withdrawn: true, want: step{Action: plan.ReleaseEntry, Reason: v1alpha1.ReasonNodeWriteRefused}, granted: []string{"b"},
		},
		"not before its Node could be read": {
			withdrawn: true, unread: true, want: step{Action: plan.Wait, Reason: v1alpha1.ReasonNodeWriteRefused}, marks: true,
		},
		"withdrawn, and shown all the same": {
			node: []func(*host){shown}, withdrawn: true, want: step{Action: plan.CancelGrant, Reason: v1alpha1.ReasonGrantWithdrawn}, marks: true,
		},
		"withdrawn, and its agent had begun before": {
			node: []func(*host){shown, progress(1, protocol.PhaseDraining)}, withdrawn: true,
			want: step{plan.Wait, v1alpha1.ReasonGranted, instantAfter(30 * minute)}, marks: true,
		},
		"withdrawn, past the point of no return, and somebody removed the grant": {
			node: []func(*host){progress(1, protocol.PhaseRebooting)}, withdrawn: true, want: step{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted}, marks: true,
		},
		"one that the Node shows cannot be withdrawn": {
			node: []func(*host){shown, annotated(v1alpha1.AnnotationPaused, "true")}, refused: time.Hour,
			want: step{Action: plan.CancelGrant, Reason: v1alpha1.ReasonNodePaused},
		},
		"nor one whose agent may be anywhere": {
			node: []func(*host){annotated(v1alpha1.AnnotationProgress, "?")}, refused: time.Hour, want: step{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry("a", 1)
			if tc.withdrawn {
				e.WithdrawnAt = &metav1.Time{Time: evening}
			}
			p := policy("workers", holding(1, e))
			if tc.policy != nil {
				tc.policy(p)
			}
			s := one(p, needy("a", tc.node...), needy("b")).snapshot()
			if tc.refused > 0 {
				s.Refused = map[string]plan.Refusal{"a": {Answer: "denied", Since: evening.Add(-tc.refused)}}
			}
			s.Unread = map[string]bool{"a": tc.unread}
			got := plan.Of(s)
			f := got.Reboots[0]
			same(t, "reboot", tc.want, step{f.Action, f.Reason, f.Until})
			ledger := got.Ledger()
			marks := ledger[0].Node == "a" && ledger[0].WithdrawnAt != nil
			same(t, "granted", tc.granted, names(got.Granted))
			same(t, "withdrawn", tc.marks, marks)
			same(t, "the ledger changes", f.Action == plan.WithdrawGrant || f.Action == plan.ReleaseEntry, got.LedgerChanges())
		})
	}
}

// A node whose grant could not be published backs off, and others go before it. Its history reports it to every leader, and to people.
func TestReboots_BacksOffAfterAWithdrawnGrant(t *testing.T) {
	e := entry("a", 1)
	e.WithdrawnAt = &metav1.Time{Time: evening}
	p := policy("workers", holding(1, e))
	s := one(p, needy("a")).snapshot()
	s.Refused = map[string]plan.Refusal{"a": {Answer: "denied"}}
	before := plan.Of(s)
	p.Status.Grants, p.Status.History = nil, before.History(nil, evening)
	want := []v1alpha1.PastReboot{{
		Node: "a", Seq: 1, Result: v1alpha1.RebootWithdrawn, Reason: v1alpha1.ReasonNodeWriteRefused, GrantedAt: e.At, EndedAt: metav1.NewTime(evening),
		Message: "the API server refused what the manager wrote on the Node: denied",
	}}
	same(t, "history", want, p.Status.History)
	const leaderWasAhead = -24 * time.Hour
	for after, waits := range map[time.Duration]bool{30*minute - 1: true, 30 * minute: false, leaderWasAhead: false} {
		s := one(p, needy("a")).snapshot()
		s.Now = evening.Add(after)
		got := plan.Of(s)
		if waits == (len(got.Granted) > 0) || waits && (got.Blocked[0].Reason != v1alpha1.ReasonBackingOff || !got.Next.Equal(evening.Add(30*minute))) {
			t.Errorf("after %s: granted %v, blocked %v, next %s", after, got.Granted, got.Blocked, got.Next)
		}
	}
}
