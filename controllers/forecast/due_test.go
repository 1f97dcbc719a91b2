package forecast_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// TestOf_Due: who needs no reboot yet, and from when on its uptime asks for one.
func TestOf_Due(t *testing.T) {
	const day = 24 * time.Hour
	upFor := func(is time.Duration, most string) func(*plan.Node) {
		return func(n *plan.Node) {
			n.Annotations = map[string]string{v1alpha1.AnnotationMaxUptime: most, v1alpha1.AnnotationBootedAt: monday.Add(-is).Format(time.RFC3339)}
		}
	}
	nodes := []*plan.Node{
		needy("later", content, upFor(2*day, "720h0m0s")),
		needy("sooner", content, upFor(29*day, "720h0m0s")),
		needy("about-to-report", content, upFor(30*day+time.Second, "720h0m0s")),
		needy("due", upFor(31*day, "720h0m0s")),
		needy("not-reported", content, upFor(2*day, "720h0m0s"), func(n *plan.Node) { delete(n.Annotations, v1alpha1.AnnotationBootedAt) }),
		needy("beyond-a-year", content, upFor(0, "87600h0m0s")),
		needy("booted-in-the-future", content, upFor(-100*365*day, "720h0m0s")),
		needy("for-ever", content, upFor(2*day, "")),
		needy("of-another", content, upFor(2*day, "720h0m0s"), labelled("pool", "other")),
		needy("in-a-reboot", content, upFor(2*day, "720h0m0s"), granted("workers", 3, protocol.GrantActive, minute)),
	}
	other := policy(spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Priority, s.NodeSelector = 1, &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "other"}}
	}))
	other.Name = "other"
	f := forecast.Of(snapshotOf(policy(), nodes, *other), forecast.Thorough)
	want := []forecast.Due{
		{Node: "about-to-report", At: monday}, {Node: "sooner", At: monday.Add(day)}, {Node: "later", At: monday.Add(28 * day)},
	}
	if diff := cmp.Diff(want, f.Due); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.CompletionAt.After(monday.Add(day)) {
		t.Errorf("what is not due yet is part of what is to be done, at %v", f.CompletionAt)
	}
}
