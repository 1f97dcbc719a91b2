package v1alpha1_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestNodePause checks that every value except "" and "false" pauses the node and is the reason
// (behaviour 23). A pause with an end is over at that time. If the end cannot be read, the pause has
// none.
func TestNodePause(t *testing.T) {
	now := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	for value, want := range map[string]struct {
		reason string
		paused bool
		ends   time.Duration
	}{
		"true": {"", true, 0}, " ": {"", true, 0}, "disk swap": {"disk swap", true, 0}, "yes": {"yes", true, 0}, "True": {"True", true, 0}, "falsehood": {"falsehood", true, 0},
		"false": {"", false, 0}, "": {"", false, 0},
		"until=2026-12-01T06:00:00Z disk swap":      {"disk swap", true, time.Hour},
		"until=2026-12-01T06:00:01+01:00 disk swap": {"disk swap", true, time.Second},
		"until=2026-12-01T06:00:00+01:00 disk swap": {"disk swap", false, 0},
		"until=2026-11-30T06:00:00Z":                {"", false, -23 * time.Hour},
		"until=tomorrow disk swap":                  {"until=tomorrow disk swap", true, 0},
		"until=":                                    {"until=", true, 0},
	} {
		annotations := map[string]string{v1alpha1.AnnotationPaused: value}
		if got := v1alpha1.NodeIsPaused(annotations, now); got != want.paused {
			t.Errorf("NodeIsPaused(%q) = %v, want %v", value, got, want.paused)
		}
		until, reason := v1alpha1.NodePause(annotations)
		if reason != want.reason || want.ends != 0 && !until.Equal(now.Add(want.ends)) {
			t.Errorf("NodePause(%q) = %s, %q, want %s from now, %q", value, until, reason, want.ends, want.reason)
		}
	}
	if v1alpha1.NodeIsPaused(nil, now) {
		t.Error("a node without annotations is paused")
	}
}

// TestNodeCondition_TakesTheWorstOfOneType covers several conditions of one type, which the API
// server accepts.
func TestNodeCondition_TakesTheWorstOfOneType(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	for kind, order := range map[corev1.NodeConditionType][]corev1.ConditionStatus{
		corev1.NodeReady: {yes, unknown, no}, v1alpha1.NodeRebootRequired: {no, unknown, yes},
	} {
		for i, better := range order {
			for _, worse := range order[i:] {
				for _, pair := range [][]corev1.ConditionStatus{{better, worse}, {worse, better}} {
					got := v1alpha1.NodeCondition([]corev1.NodeCondition{
						{Type: "Other", Status: yes}, {Type: kind, Status: pair[0]}, {Type: "Other", Status: no}, {Type: kind, Status: pair[1]},
					}, kind)
					if got.Type != kind || got.Status != worse {
						t.Errorf("%s %v: got %s %s, want %s", kind, pair, got.Type, got.Status, worse)
					}
				}
			}
		}
	}
	if got := v1alpha1.NodeCondition([]corev1.NodeCondition{{Type: "Other"}}, corev1.NodeReady); got.Type != "" {
		t.Errorf("got %+v for a condition that is absent", got)
	}
}

// TestIsAgents checks that the reason shows whether the agent wrote a condition of KEP-5683, because
// any program may write one.
func TestIsAgents(t *testing.T) {
	const drains, drained, reboots = corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress
	agents := map[corev1.NodeConditionType][]string{
		drains: {"Draining"}, drained: {"Drained", "VolumesInUse", "DrainTimedOut"}, reboots: {"Rebooting"}, corev1.NodeMaintenancePlanned: nil,
	}
	for kind, own := range agents {
		for _, reason := range []string{"Draining", "Drained", "VolumesInUse", "DrainTimedOut", "Rebooting", "RebootSucceeded", "RebootGranted", "Theirs", ""} {
			for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
				want := status == corev1.ConditionTrue && slices.Contains(own, reason)
				if got := v1alpha1.IsAgents(corev1.NodeCondition{Type: kind, Status: status, Reason: reason}); got != want {
					t.Errorf("%s=%s with reason %q: %t", kind, status, reason, got)
				}
			}
		}
	}
}

// TestRebootRequested checks that every value except "false" requests a reboot, no matter who wrote
// it. The annotation comes before the label.
func TestRebootRequested(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, label *string
		why               string
		requested         bool
	}{
		"no request":                        {},
		"an annotation":                     {annotation: new("firmware"), why: "firmware", requested: true},
		"an annotation without a reason":    {annotation: new(""), requested: true},
		"a label":                           {label: new("gpu-lost"), why: "gpu-lost", requested: true},
		"both":                              {annotation: new("firmware"), label: new("gpu-lost"), why: "firmware", requested: true},
		"an annotation with false":          {annotation: new("false")},
		"a label with false":                {label: new("false")},
		"an annotation with False":          {annotation: new("False")}, // as some programs write a boolean
		"an annotation with false, a label": {annotation: new("false"), label: new("gpu-lost"), why: "gpu-lost", requested: true},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}, Labels: map[string]string{}}}
			if tc.annotation != nil {
				node.Annotations[v1alpha1.AnnotationRebootRequested] = *tc.annotation
			}
			if tc.label != nil {
				node.Labels[v1alpha1.LabelRebootRequested] = *tc.label
			}
			if why, requested := v1alpha1.RebootRequested(node); why != tc.why || requested != tc.requested {
				t.Errorf("%q %t, want %q %t", why, requested, tc.why, tc.requested)
			}
		})
	}
}
