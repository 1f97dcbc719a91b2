package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// TestGovernor_Govern: of the policies that select a node the one of the highest priority governs it (behaviour 21).
func TestGovernor_Govern(t *testing.T) {
	everything := func(p *v1alpha1.RebootPolicy) { p.Spec.NodeSelector = &metav1.LabelSelector{} }
	broken := func(p *v1alpha1.RebootPolicy) {
		p.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: "Near"}}}
	}
	gone := func(p *v1alpha1.RebootPolicy) { p.DeletionTimestamp = &metav1.Time{Time: evening} }
	db := map[string]string{"pool": "db"}
	cases := map[string]struct {
		policies []*v1alpha1.RebootPolicy
		labels   map[string]string
		want     plan.Governance
	}{
		"no policies": {labels: db},
		"a policy without a selector selects every node": {
			[]*v1alpha1.RebootPolicy{policy("all")}, nil, plan.Governance{Policy: "all"},
		},
		"an empty selector selects every node too": {
			[]*v1alpha1.RebootPolicy{policy("all", everything)}, nil, plan.Governance{Policy: "all"},
		},
		"nobody selects the node": {
			[]*v1alpha1.RebootPolicy{policy("web", selects("pool", "web"))}, db, plan.Governance{},
		},
		"the highest priority wins": {
			[]*v1alpha1.RebootPolicy{policy("all"), policy("db", selects("pool", "db"), priority(10)), policy("rest", priority(-10))},
			db,
			plan.Governance{Policy: "db"},
		},
		"a higher priority that does not select the node does not matter": {
			[]*v1alpha1.RebootPolicy{policy("all"), policy("web", selects("pool", "web"), priority(10))}, db, plan.Governance{Policy: "all"},
		},
		"a tie is a conflict, told in the order of names": {
			[]*v1alpha1.RebootPolicy{policy("c"), policy("a"), policy("b", priority(-1))}, db, plan.Governance{Rivals: []string{"a", "c"}},
		},
		"the ends of the range of priorities": {
			[]*v1alpha1.RebootPolicy{policy("low", priority(-1000000)), policy("high", priority(1000000))}, db, plan.Governance{Policy: "high"},
		},
		"a tie below the highest priority does not matter": {
			[]*v1alpha1.RebootPolicy{policy("a"), policy("b"), policy("c", priority(1))}, db, plan.Governance{Policy: "c"},
		},
		"a policy that is being deleted governs nothing": {
			[]*v1alpha1.RebootPolicy{policy("a", gone, priority(1)), policy("b")}, db, plan.Governance{Policy: "b"},
		},
		"a policy with a selector that cannot be read may mean any node": {
			[]*v1alpha1.RebootPolicy{policy("a", broken, priority(1)), policy("b")}, db, plan.Governance{Policy: "a"},
		},
		"but none that a higher priority selects": {
			[]*v1alpha1.RebootPolicy{policy("a", broken), policy("b", priority(1))}, db, plan.Governance{Policy: "b"},
		},
		"beside others of its priority it is the one to be mended": {
			[]*v1alpha1.RebootPolicy{policy("a"), policy("b", broken)}, db, plan.Governance{Policy: "b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := plan.NewGovernor(values(tc.policies))
			if diff := cmp.Diff(tc.want, g.Govern(tc.labels)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the policy hears what is wrong with its selector", func(t *testing.T) {
		want := `spec.nodeSelector: "Near" is not a valid label selector operator`
		p := one(policy("workers", broken), needy("worker-1")).plan()
		if p.Invalid != want || len(p.Granted) > 0 {
			t.Errorf("invalid: %q; want %q. %+v", p.Invalid, want, p)
		}
		if diff := cmp.Diff(map[string]string{"worker-1": "Invalid: policy workers: " + want}, refusals(p)); diff != "" {
			t.Errorf("and so do the nodes that it may mean (-want +got):\n%s", diff)
		}
	})
}

func values(policies []*v1alpha1.RebootPolicy) []v1alpha1.RebootPolicy {
	var values []v1alpha1.RebootPolicy
	for _, p := range policies {
		values = append(values, *p)
	}
	return values
}
