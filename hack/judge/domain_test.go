package judge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// zones puts nodes a and b into zones, under a limit of two that allows one zone at a time.
func zones(a, b string) func(*story) {
	most := intstr.FromInt32(2)
	return all(label("a", "zone", a), label("b", "zone", b), spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &most, TopologyKey: "zone"}
	}))
}

func TestTake_Domain(t *testing.T) {
	both, late := all(grant("a", 1), grant("b", 2)), passes(stale)
	hooks := spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Hooks = &v1alpha1.Hooks{After: []v1alpha1.AnnotationKey{"x/y"}}
	})
	histories{
		"two grants in one zone":                         {[]func(*story){zones("x", "x"), late, both}, nil},
		"two grants in two zones":                        {[]func(*story){zones("x", "y"), late, both}, []Rule{Domain}},
		"one after the other":                            {[]func(*story){zones("x", "y"), late, reboot("a", 1), reboot("b", 2)}, nil},
		"one node without a zone":                        {[]func(*story){zones("x", "x"), changes("b", func(n *corev1.Node) { n.Labels = nil }), late, both}, []Rule{Domain}},
		"two grants in two zones, without topologyKey":   {[]func(*story){zones("x", "y"), limitIs(intstr.FromInt32(2)), late, both}, nil},
		"moved to another zone a moment ago":             {[]func(*story){zones("x", "x"), late, label("b", "zone", "y"), both}, nil},
		"moved to another zone under its grant":          {[]func(*story){zones("x", "x"), late, both, label("b", "zone", "y")}, nil},
		"after the Node of the other grant was replaced": {[]func(*story){zones("x", "y"), late, grant("a", 1), deleted("a"), grant("b", 2)}, nil},
		"while the other reboot may be lost":             {[]func(*story){zones("x", "y"), grant("a", 1), passes(30 * time.Minute), grant("b", 2)}, nil},
		"while the other reboot is not lost":             {[]func(*story){zones("x", "y"), grant("a", 1), passes(10 * time.Minute), grant("b", 2)}, []Rule{Domain}},
		"while hooks may have refused the other reboot":  {[]func(*story){zones("x", "y"), hooks, late, grant("a", 1), grant("b", 2)}, nil},
	}.check(t)
}

func TestTake_ControlPlane(t *testing.T) {
	two := limitIs(intstr.FromInt32(2))
	cp := func(name string) func(*story) { return label(name, "node-role.kubernetes.io/control-plane", "") }
	a, b := all(grant("a", 1), drains("a", 1)), all(grant("b", 2), drains("b", 2))
	histories{
		"two at once":                         {[]func(*story){two, cp("a"), cp("b"), a, b}, []Rule{ControlPlane}},
		"by another label":                    {[]func(*story){two, label("a", "node-role.kubernetes.io/etcd", "true"), cp("b"), a, b}, []Rule{ControlPlane}},
		"one control-plane node and a worker": {[]func(*story){two, cp("a"), a, b}, nil},
		"one after the other":                 {[]func(*story){two, cp("a"), cp("b"), reboot("a", 1), b}, nil},
		"the second one only granted":         {[]func(*story){two, cp("a"), cp("b"), a, grant("b", 2)}, nil},
	}.check(t)
	// The manager of one ledger may not know the last write to another ledger.
	ofAnother := func(s *story) {
		s.now = s.now.Add(time.Second)
		q := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1alpha1.RebootPolicySpec{
			Priority: 1, NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "q"}},
		}}
		q.Status.Seq, q.Status.Grants = 2, []v1alpha1.LedgerEntry{{Node: "b", Seq: 2, BootID: "b", At: metav1.NewTime(s.now)}}
		s.records = append(s.records, Change{At: s.now, Name: "q", By: manager, Policy: q})
	}
	apart := []func(*story){cp("a"), cp("b"), label("b", "pool", "q"), a, ofAnother, carriesOf("q", "b", 2), drains("b", 2)}
	if diff := cmp.Diff([]Rule{ControlPlane}, rulesOf(judgedBy(Options{Exact: true}, apart...))); diff != "" {
		t.Errorf("where everything is known (-want +got):\n%s", diff)
	}
	if found := rulesOf(judgedBy(Options{}, apart...)); len(found) > 0 {
		t.Errorf("without a fault it finds: %v", found)
	}
}
