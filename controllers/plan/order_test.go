package plan

import (
	"slices"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// TestBlocked_FallsWithOthers checks which checks depend only on other nodes: the ring's and those
// of the turn. A forecast waits for these.
func TestBlocked_FallsWithOthers(t *testing.T) {
	others := []v1alpha1.Reason{
		v1alpha1.ReasonRingWaits, v1alpha1.ReasonControlPlaneGuard, v1alpha1.ReasonDomainBusy, v1alpha1.ReasonBudgetExhausted,
		v1alpha1.ReasonSpacing, v1alpha1.ReasonRunHookWaits, v1alpha1.ReasonDryRun,
	}
	for _, c := range inOrder {
		c.blocks = func(*choice, *record.Node) *block.Block { return block.New(c.reason, "blocked") }
		o := new(choice).first([]check{c}, nil)
		if want := slices.Contains(others, c.reason); o.FallsWithOthers() != want {
			t.Errorf("%s: %t, want %t", c.reason, !want, want)
		}
	}
}
