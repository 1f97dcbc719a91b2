package drain

import (
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// budget is what the drain needs to know of a PodDisruptionBudget. The zero budget covers no pod: one that is not there.
type budget struct {
	pods labels.Selector
	// allowed is how many more pods may go now.
	allowed int
	// never: it will allow none, even when all its pods are healthy. lenient: pods that are not ready may go all the same.
	never, lenient bool
	// unknown: its status is not yet that of its spec and its pods, so whether it will allow any is not known.
	unknown bool
	// changed is the number of the change that brought this value, of all changes of budgets.
	changed int
}

// readBudget takes the budget out of the API object.
func readBudget(pdb *policyv1.PodDisruptionBudget) budget {
	pods, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil {
		// The API server sees no pods in it either.
		return budget{}
	}
	policy := pdb.Spec.UnhealthyPodEvictionPolicy
	b := budget{pods: pods, lenient: policy != nil && *policy == policyv1.AlwaysAllow}
	// A status that is older than the spec is no permission: the server refuses until the controller has caught up.
	current := pdb.Status.ObservedGeneration >= pdb.Generation
	if current {
		b.allowed = int(pdb.Status.DisruptionsAllowed)
	}
	// One that counts no pods is older than the pod, or the controller cannot count it: the server refuses, too.
	b.unknown = b.allowed == 0 && (!current || pdb.Status.ExpectedPods == 0)
	// Of these pods all are wanted healthy: so it is with maxUnavailable 0, and with a minAvailable of all of them.
	b.never = b.allowed == 0 && !b.unknown && pdb.Status.DesiredHealthy >= pdb.Status.ExpectedPods
	return b
}

func (b budget) covers(t target) bool {
	return b.pods != nil && b.pods.Matches(labels.Set(t.labels))
}

// bars says whether the budget holds the pod back for as long as it does not change. A pod that is not ready may get round it.
func (b budget) bars(e *entry) bool { return b.allowed == 0 && e.ready && b.covers(e.target) }

// forgetBudgets drops what is known of a namespace's budgets: a new watch begins with all of them.
func (p *progress) forgetBudgets(namespace string) {
	maps.DeleteFunc(p.budgets, func(name types.NamespacedName, _ budget) bool { return name.Namespace == namespace })
}

// budgetsWanted lists the namespaces in which a budget holds a pod back: their budgets are worth a watch.
func (p *progress) budgetsWanted() []string {
	namespaces := map[string]bool{}
	for _, e := range p.entries {
		if e.refusal != none {
			namespaces[e.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// budgetsOf names the budgets known to cover the pod, for people.
func (p *progress) budgetsOf(t target) string {
	var names []string
	for name, b := range p.budgets {
		if name.Namespace == t.Namespace && b.covers(t) {
			names = append(names, name.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
