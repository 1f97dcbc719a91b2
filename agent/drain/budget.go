package drain

import (
	"fmt"
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
	// never: it will allow none, even when all its pods are healthy. lenient: pods that are not ready may go in any case.
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

// bars reports whether the budget holds the pod back for as long as it does not change. A pod that is not ready may get round it.
func (b budget) bars(e *podState) bool { return b.allowed == 0 && e.ready && b.covers(e.target) }

// budgets are the PodDisruptionBudgets that are known.
type budgets struct {
	known map[types.NamespacedName]budget
	// changes counts the changes of all of them.
	changes int
}

// set records a budget's new value, and returns it with the number of the change, and the one before.
func (b *budgets) set(name types.NamespacedName, next budget) (now, before budget) {
	before = b.known[name]
	b.changes++
	next.changed = b.changes
	if next.pods == nil {
		delete(b.known, name)
	} else {
		b.known[name] = next
	}
	return next, before
}

// forget drops what is known of a namespace's budgets: a new watch begins with all of them.
func (b *budgets) forget(namespace string) {
	maps.DeleteFunc(b.known, func(name types.NamespacedName, _ budget) bool { return name.Namespace == namespace })
}

// covering lists the budgets known to cover the pod, by name.
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

// of names the budgets known to cover the pod, for people.
func (b *budgets) of(t target) string {
	covering := b.covering(t)
	names := make([]string, 0, len(covering))
	for _, name := range covering {
		names = append(names, name.Name)
	}
	return strings.Join(names, ", ")
}

// freed reports whether a budget that covers the pod has allowed something since the request that was refused was sent. Then
// the change overtook the refusal, and no other may come.
func (b *budgets) freed(e *podState) bool {
	return slices.ContainsFunc(b.covering(e.target), func(name types.NamespacedName) bool {
		return b.known[name].changed > e.sentAt && b.known[name].allowed > 0
	})
}

// barred reports whether a budget is known that holds the pod back for as long as it does not change.
func (b *budgets) barred(e *podState) bool {
	return slices.ContainsFunc(b.covering(e.target), func(name types.NamespacedName) bool { return b.known[name].bars(e) })
}

// guard is why no eviction can remove the pod, however well all the others are, or why that is not known; "" where one may.
func (b *budgets) guard(e *podState) string {
	if !e.budgeted() {
		return ""
	}
	never, unknown := "", ""
	covering := b.covering(e.target)
	for _, name := range covering {
		switch one := b.known[name]; {
		case !e.ready && one.lenient:
		case one.never:
			never = name.Name
		case one.unknown:
			unknown = name.Name
		}
	}
	switch {
	case len(covering) > 1:
		return crowdedMessage(b.of(e.target))
	case never != "":
		return fmt.Sprintf("PodDisruptionBudget %s allows no eviction, even with every pod healthy", never)
	case unknown != "":
		return fmt.Sprintf("the status of PodDisruptionBudget %s does not count the pod yet", unknown)
	}
	return ""
}

func crowdedMessage(names string) string {
	if names != "" {
		names = " (" + names + ")"
	}
	return "several PodDisruptionBudgets select the pod" + names + ", which the eviction API does not support: leave one"
}
