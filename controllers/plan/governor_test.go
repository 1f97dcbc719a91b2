package plan_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// TestGovernor_Govern checks that the policy of highest priority governs a node, among those that
// select it (behaviour 21).
func TestGovernor_Govern(t *testing.T) {
	everything := func(p *v1alpha1.RebootPolicy) { p.Spec.NodeSelector = &v1alpha1.LabelSelector{} }
	broken := func(p *v1alpha1.RebootPolicy) {
		p.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "pool", Operator: "Near"}}}
	}
	db := map[string]string{"pool": "db"}
	cases := map[string]struct {
		policies []*v1alpha1.RebootPolicy
		labels   map[string]string
		want     governor.Governance
	}{
		"no policies": {labels: db},
		"a policy without a selector selects every node": {[]*v1alpha1.RebootPolicy{policy("all")}, nil, governor.Governance{Policy: "all"}},
		"an empty selector selects every node too":       {[]*v1alpha1.RebootPolicy{policy("all", everything)}, nil, governor.Governance{Policy: "all"}},
		"no policy governs a Windows node": {
			[]*v1alpha1.RebootPolicy{policy("all", everything)}, map[string]string{corev1.LabelOSStable: "windows"}, governor.Governance{},
		},
		"no policy selects the node": {[]*v1alpha1.RebootPolicy{policy("web", selects("pool", "web"))}, db, governor.Governance{}},
		"the highest priority wins": {
			[]*v1alpha1.RebootPolicy{policy("all"), policy("db", selects("pool", "db"), priority(10)), policy("rest", priority(-10))},
			db,
			governor.Governance{Policy: "db"},
		},
		"a higher priority that does not select the node does not matter": {
			[]*v1alpha1.RebootPolicy{policy("all"), policy("web", selects("pool", "web"), priority(10))}, db, governor.Governance{Policy: "all"},
		},
		"a tie is a conflict, reported in the order of names": {
			[]*v1alpha1.RebootPolicy{policy("c"), policy("a"), policy("b", priority(-1))}, db, governor.Governance{Rivals: []string{"a", "c"}},
		},
		"the ends of the range of priorities": {
			[]*v1alpha1.RebootPolicy{policy("low", priority(-1000000)), policy("high", priority(1000000))}, db, governor.Governance{Policy: "high"},
		},
		"a tie below the highest priority does not matter": {
			[]*v1alpha1.RebootPolicy{policy("a"), policy("b"), policy("c", priority(1))}, db, governor.Governance{Policy: "c"},
		},
		"a policy that is being deleted governs nothing": {
			[]*v1alpha1.RebootPolicy{policy("a", deleted, priority(1)), policy("b")}, db, governor.Governance{Policy: "b"},
		},
		"a policy with a selector that cannot be evaluated governs nothing, whatever its priority": {
			[]*v1alpha1.RebootPolicy{policy("a", broken, priority(1)), policy("b")}, db, governor.Governance{Policy: "b"},
		},
		"a policy with a broken selector conflicts with no other":        {[]*v1alpha1.RebootPolicy{policy("a", broken), policy("b")}, db, governor.Governance{Policy: "b"}},
		"no policy governs nodes that only a broken selector may select": {[]*v1alpha1.RebootPolicy{policy("a", broken)}, db, governor.Governance{}},
		"a selector with an impossible label value cannot be evaluated": {
			[]*v1alpha1.RebootPolicy{policy("a", selects("pool", "b c"), priority(1)), policy("b")}, db, governor.Governance{Policy: "b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "governance", tc.want, governor.Of(values(tc.policies)).Govern(labelled(tc.labels)))
		})
	}
	t.Run("the policy reports what is wrong with its selector", func(t *testing.T) {
		want := `the policy governs no node, because spec.nodeSelector cannot be evaluated: "Near" is not a valid label selector operator`
		p := one(policy("workers", broken), needy("worker-1")).plan()
		if p.Invalid == nil || p.Invalid.Message != want || len(p.Ledger.Granted) > 0 || len(p.Decisions) > 0 {
			t.Errorf("invalid: %v; want %q. %+v", p.Invalid, want, p)
		}
	})
	t.Run("a policy with a broken selector finishes the reboots that it has granted", func(t *testing.T) {
		drains := needy("worker-1", grant(1, protocol.GrantActive), progress(1, protocol.PhaseDraining))
		s := one(policy("workers", broken, holding(1, entry("worker-1", 1))), drains).with(policy("others"))
		if p := s.plan(); len(p.Reboots) != 1 || p.Reboots[0].Action != underway.Wait || len(p.Ledger.Own()) != 1 {
			t.Errorf("workers: %+v", p.Reboots)
		}
		slices.Reverse(s.policies)
		if p := s.plan(); len(p.Ledger.Own()) > 0 {
			t.Errorf("others: %+v", p.Ledger.Own())
		}
	})
	t.Run("a node that no other policy selects names the policy with the broken selector", func(t *testing.T) {
		s := one(policy("workers", broken), needy("worker-1")).snapshot()
		got := plan.Ungoverned(s.Governor, s.Nodes)
		want := []plan.Decision{{
			Node: "worker-1", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoPolicy,
			Message: "no RebootPolicy selects this node; spec.nodeSelector cannot be evaluated in workers",
		}}
		same(t, "decisions", want, got)
	})
	t.Run("a node without a policy has a status that can be written", func(t *testing.T) {
		p := one(policy("workers", selects("pool", strings.Repeat("x ", 64<<10))), needy("worker-1")).plan()
		if len(p.Invalid.Message) > 600 {
			t.Errorf("invalid has %d bytes", len(p.Invalid.Message))
		}
	})
}

// TestPlan_NamesTheNodesThatAnInvalidPolicyKeeps checks that an invalid policy keeps its nodes, and
// that a policy of lower priority that also selects them names them.
func TestPlan_NamesTheNodesThatAnInvalidPolicyKeeps(t *testing.T) {
	invalid := func(generation int64) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonInvalid), ObservedGeneration: generation,
			})
		}
	}
	db := selects("pool", "db")
	for name, tc := range map[string]struct {
		other *v1alpha1.RebootPolicy
		want  map[string][]string
	}{
		"an invalid policy of higher priority":    {policy("b", db, priority(1), invalid(0)), map[string][]string{"b": {"n1"}}},
		"an invalid policy that was edited since": {policy("b", db, priority(1), invalid(-1)), map[string][]string{}},
		"a valid policy of higher priority":       {policy("b", db, priority(1)), map[string][]string{}},
		"an invalid policy of lower priority":     {policy("b", db, priority(-1), invalid(0)), map[string][]string{}},
		"an invalid policy that selects others":   {policy("b", selects("pool", "web"), priority(1), invalid(0)), map[string][]string{}},
		"an invalid policy that is being deleted": {policy("b", db, priority(1), invalid(0), deleted), map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation{policies: []*v1alpha1.RebootPolicy{policy("a"), tc.other}, hosts: []*host{needy("n1", label("pool", "db")), needy("n2")}}
			same(t, "withheld", tc.want, s.plan().Withheld)
		})
	}
}

func labelled(labels map[string]string) *record.Node {
	return new(record.Of(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}))
}

func values(policies []*v1alpha1.RebootPolicy) []v1alpha1.RebootPolicy {
	var values []v1alpha1.RebootPolicy
	for _, p := range policies {
		values = append(values, *p)
	}
	return values
}

// TestGovernor_Selecting checks that all policies that select the node are returned, the winner
// first.
func TestGovernor_Selecting(t *testing.T) {
	s := one(policy("b")).with(policy("a"), policy("db", selects("pool", "db"), priority(10)), policy("web", selects("pool", "web")))
	want := []governor.Selection{{Policy: "db", Priority: 10}, {Policy: "a"}, {Policy: "b"}}
	same(t, "selecting", want, s.snapshot().Governor.Selecting(labelled(map[string]string{"pool": "db"})))
}
