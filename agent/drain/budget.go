package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// budget holds the fields of a PodDisruptionBudget that the drain needs. The zero budget covers no
// pods and stands for one that does not exist.
type budget struct {
	pods labels.Selector
	// allowed is the number of further pods that may be evicted now.
	allowed int
	// lenient means that pods which are not ready may always be evicted. enough means that they may
	// be while the budget has as many healthy pods as it requires.
	lenient, enough bool
	// closed says that the budget allows no eviction even when all its pods are healthy. It is
	// empty if it does, or if that is unknown.
	closed string
	// stuck says why the budget allows no eviction even after a cordon, and is empty if it may.
	stuck string
	// changed is the number of the change that set this value, counted over all budgets.
	changed int
	// size is about the memory that the budget takes, in bytes.
	size int
}

// maxBudgets limits the memory for the budgets of a namespace, in bytes: a tenant may create
// thousands. Further ones are dropped, and the API server still enforces them. budgetBytes is about
// that of a budget without its name and selector.
const maxBudgets, budgetBytes = 256 << 10, 256

// maxDisruptedPods is the number of evictions per budget that the API server allows before the
// disruption controller has confirmed them.
const maxDisruptedPods = 2000

// readBudget reads the fields from the API object.
func readBudget(pdb *policyv1.PodDisruptionBudget) budget {
	pods, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil || pdb.Spec.Selector.Size() > maxSelectable {
		// The API server ignores an invalid selector, too.
		return budget{}
	}
	policy, status := pdb.Spec.UnhealthyPodEvictionPolicy, pdb.Status
	b := budget{
		pods: pods, lenient: policy != nil && *policy == policyv1.AlwaysAllow,
		enough: status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0,
		size:   budgetBytes + len(pdb.Name) + pdb.Spec.Selector.Size(),
	}
	// The API server refuses evictions while the status is older than the spec, until the
	// controller has caught up.
	current := status.ObservedGeneration >= pdb.Generation && len(status.DisruptedPods) <= maxDisruptedPods
	if current {
		b.allowed = max(0, int(status.DisruptionsAllowed))
	}
	if b.allowed > 0 {
		return b
	}
	condition := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == policyv1.SyncFailedReason:
		// The numbers are from the last time that the controller could count the pods.
		b.stuck = fmt.Sprintf("PodDisruptionBudget %s allows no eviction, because its pods cannot be counted: %s", pdb.Name, condition.Message)
	case !current, status.ExpectedPods == 0: // a status without pods is older than the pod
		b.stuck = fmt.Sprintf("the status of PodDisruptionBudget %s does not count the pod yet", pdb.Name)
	case status.DesiredHealthy == 0:
		b.stuck = fmt.Sprintf("PodDisruptionBudget %s allows no eviction while none of its pods is ready", pdb.Name)
	case status.DesiredHealthy >= status.ExpectedPods: // for example with maxUnavailable 0, or if minAvailable is all pods
		b.closed = fmt.Sprintf("PodDisruptionBudget %s allows no eviction, even with every pod healthy", pdb.Name)
	}
	return b
}

func (b budget) covers(t target) bool {
	return b.pods != nil && b.pods.Matches(labels.Set(t.labels))
}

// refuses reports whether the API server refuses to evict the pod as long as neither changes. It
// decides as pkg/registry/core/pod/storage/eviction.go does.
func (b budget) refuses(e *podState) bool {
	return b.covers(e.target) && b.allowed == 0 && (e.ready || !b.lenient && !b.enough)
}

// budgets holds the known PodDisruptionBudgets.
type budgets struct {
	known map[types.NamespacedName]budget
	// sizes are the sizes of the known budgets together, by namespace.
	sizes map[string]int
	// changes counts the changes of all budgets.
	changes int
}

func newBudgets() budgets {
	return budgets{known: map[types.NamespacedName]budget{}, sizes: map[string]int{}}
}

// set stores a budget with the number of its change, and returns the new and the previous value.
func (b *budgets) set(name types.NamespacedName, next budget) (now, before budget) {
	before = b.known[name]
	b.changes++
	if b.sizes[name.Namespace]-before.size+next.size > maxBudgets {
		next = budget{}
	}
	next.changed = b.changes
	b.sizes[name.Namespace] += next.size - before.size
	if next.pods == nil {
		delete(b.known, name)
	} else {
		b.known[name] = next
	}
	return next, before
}

// forget drops the budgets of a namespace, because a new watch begins with all of them.
func (b *budgets) forget(namespace string) {
	maps.DeleteFunc(b.known, func(name types.NamespacedName, _ budget) bool { return name.Namespace == namespace })
	delete(b.sizes, namespace)
}

// covering returns the names of the known budgets that cover the pod.
func (b *budgets) covering(t target) []types.NamespacedName {
	var names []types.NamespacedName
	for name, one := range b.known {
		if name.Namespace == t.Namespace && one.covers(t) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareNames)
	return names
}

// of returns the known budgets that cover the pod, for people.
func (b *budgets) of(t target) string {
	covering := b.covering(t)
	names := make([]string, 0, len(covering))
	for _, name := range covering {
		names = append(names, name.Name)
	}
	return strings.Join(names, ", ")
}

// freed reports whether a budget that covers the pod has allowed evictions since the refused
// request was sent. The change then overtook the refusal, and another one may not come.
func (b *budgets) freed(e *podState) bool {
	return slices.ContainsFunc(b.covering(e.target), func(name types.NamespacedName) bool {
		return b.known[name].changed > e.sentAt && b.known[name].allowed > 0
	})
}

// refuse reports whether a known budget refuses the pod's eviction as long as neither changes.
func (b *budgets) refuse(e *podState) bool {
	return slices.ContainsFunc(b.covering(e.target), func(name types.NamespacedName) bool { return b.known[name].refuses(e) })
}

// foretell explains why a drain would wait for the pod in vain. stuck is a reason that a cordon
// does not change. closed names a budget that other programs may open once the node is cordoned.
// Both are empty if the pod can be evicted, now or when other pods are healthy.
func (b *budgets) foretell(e *podState) (stuck, closed string) {
	if !e.budgeted() {
		return "", ""
	}
	covering := b.covering(e.target)
	if len(covering) > 1 {
		return crowdedMessage(b.of(e.target)), ""
	}
	for _, name := range covering {
		if one := b.known[name]; one.refuses(e) {
			return one.stuck, one.closed
		}
	}
	return "", ""
}

func crowdedMessage(names string) string {
	if names != "" {
		names = " (" + names + ")"
	}
	return "several PodDisruptionBudgets select the pod" + names + ", which the eviction API does not support: leave one"
}
