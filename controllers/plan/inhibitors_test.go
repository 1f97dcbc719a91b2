package plan

import (
	"testing"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestAgentObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason v1alpha1.Reason
		policy v1alpha1.InhibitorPolicy
		want   bool
	}{
		"an inhibitor objects by default":               {v1alpha1.ReasonInhibited, "", true},
		"an inhibitor objects where it is respected":    {v1alpha1.ReasonInhibited, v1alpha1.InhibitorsRespect, true},
		"an inhibitor is ignored where the policy says": {v1alpha1.ReasonInhibited, v1alpha1.InhibitorsIgnore, false},
		"another objection stays all the same":          {v1alpha1.ReasonUndrainablePod, v1alpha1.InhibitorsIgnore, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.RebootPolicy{}
			policy.Spec.Reboot = &v1alpha1.Reboot{Inhibitors: tc.policy}
			f := view{fleet: &fleet{Snapshot: Snapshot{Policy: policy}}}
			got := agentBlocks(f, &Node{Objection: &protocol.Objection{Reason: tc.reason, Message: "no"}})
			if (got != nil) != tc.want {
				t.Errorf("objection = %v, want one: %t", got, tc.want)
			}
			second := protocol.Objection{Reason: v1alpha1.ReasonUndrainablePod, Message: "also"}
			both := agentBlocks(f, &Node{Objection: &protocol.Objection{Reason: tc.reason, Message: "no", Also: []protocol.Objection{second}}})
			if want := (Blocked{Reason: second.Reason, Message: "also"}); got == nil && (both == nil || *both != want) {
				t.Errorf("behind an ignored one: %v, want %v", both, want)
			}
		})
	}
}
