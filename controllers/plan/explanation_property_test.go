package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// Whatever a cluster looks like, a node's explanation is what the plan decides about it: the same reason in the same words,
// and of its checks one objects exactly where that is why the node waits.
func TestExplain_IsThePlan(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for _, n := range snapshot.Nodes {
			e := plan.Explain(snapshot, n.Name)
			if diff := cmp.Diff(decided(p, n.Name), e.Decision); diff != "" {
				t.Fatalf("node %s is decided and explained otherwise (-plan +explanation):\n%s\n%v", n.Name, diff, s)
			}
			granted := slices.ContainsFunc(p.Granted, func(g v1alpha1.LedgerEntry) bool { return g.Node == n.Name })
			if e.Due != granted {
				t.Fatalf("node %s: due %t, granted %t\n%v", n.Name, e.Due, granted, s)
			}
			objecting := 0
			for _, c := range e.Checks {
				if c.Result == plan.Blocks {
					objecting++
				}
			}
			if waits := e.Reboot == nil && e.Decision.Status == corev1.ConditionFalse; waits != (objecting == 1) || objecting > 1 {
				t.Fatalf("node %s: %d checks object, decision %+v\n%v", n.Name, objecting, e.Decision, s)
			}
		}
	})
}
