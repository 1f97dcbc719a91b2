package plan

import (
	"fmt"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestAgentBlocks_EveryCombination: whatever the agent reports and whatever the policy ignores, the first reason that is not ignored
// blocks (behaviour 57).
func TestAgentBlocks_EveryCombination(t *testing.T) {
	const inhibited, conflict, other = v1alpha1.ReasonInhibited, v1alpha1.ReasonCoordinatorConflict, v1alpha1.Reason("Other")
	for _, tc := range []struct {
		reasons []v1alpha1.Reason
		// what blocks where the policy respects both, ignores inhibitors, ignores coordinators, ignores both.
		want [4]v1alpha1.Reason
	}{
		{nil, [4]v1alpha1.Reason{}},
		{[]v1alpha1.Reason{inhibited}, [4]v1alpha1.Reason{inhibited, "", inhibited, ""}},
		{[]v1alpha1.Reason{conflict}, [4]v1alpha1.Reason{conflict, conflict, "", ""}},
		{[]v1alpha1.Reason{inhibited, conflict}, [4]v1alpha1.Reason{inhibited, conflict, inhibited, ""}},
		{[]v1alpha1.Reason{inhibited, other}, [4]v1alpha1.Reason{inhibited, other, inhibited, other}},
		{[]v1alpha1.Reason{conflict, other}, [4]v1alpha1.Reason{conflict, conflict, other, other}},
		{[]v1alpha1.Reason{inhibited, conflict, other}, [4]v1alpha1.Reason{inhibited, conflict, inhibited, other}},
		{[]v1alpha1.Reason{other}, [4]v1alpha1.Reason{other, other, other, other}},
	} {
		node := &Node{BlockedBy: blockersOf(tc.reasons)}
		for i, want := range tc.want {
			policy := &v1alpha1.RebootPolicy{}
			policy.Spec.Reboot = &v1alpha1.Reboot{}
			if i&1 != 0 {
				policy.Spec.Reboot.Inhibitors = v1alpha1.InhibitorsIgnore
			}
			if i&2 != 0 {
				policy.Spec.Reboot.Coordinators = v1alpha1.CoordinatorsIgnore
			}
			t.Run(fmt.Sprintf("%v under %+v", tc.reasons, *policy.Spec.Reboot), func(t *testing.T) {
				got := agentBlocks(view{fleet: &fleet{Snapshot: Snapshot{Policy: policy}}}, node)
				switch {
				case got == nil && want != "", got != nil && (got.Reason != want || got.Message != "because of "+string(want)):
					t.Errorf("blocked by %v, want %q", got, want)
				}
			})
		}
	}
}

func blockersOf(reasons []v1alpha1.Reason) []protocol.Blocker {
	var all []protocol.Blocker
	for _, r := range reasons {
		all = append(all, protocol.Blocker{Reason: r, Message: "because of " + string(r)})
	}
	return all
}
