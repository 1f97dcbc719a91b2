package drain

import (
	"maps"
	"slices"
	"strings"
	"time"

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
	if pdb.Status.ObservedGeneration >= pdb.Generation {
		b.allowed = int(pdb.Status.DisruptionsAllowed)
		// Of these pods all are wanted healthy: so it is with maxUnavailable 0, and with a minAvailable of all of them.
		b.never = b.allowed == 0 && pdb.Status.ExpectedPods > 0 && pdb.Status.DesiredHealthy >= pdb.Status.ExpectedPods
	}
	return b
}

func (b budget) covers(t target) bool {
	return b.pods != nil && b.pods.Matches(labels.Set(t.labels))
}

// budgetChanged takes in a budget's new value and wakes the pods it frees: those it does not cover any more, and as many of
// the others as it allows, less the requests that are under way. More would only earn refusals.
func (p *progress) budgetChanged(name types.NamespacedName, next budget, now time.Time) {
	old := p.budgets[name]
	p.changes++
	next.changed = p.changes
	if next.pods == nil {
		delete(p.budgets, name)
	} else {
		p.budgets[name] = next
	}
	room, order := next.allowed-p.busyUnder(name.Namespace, next), p.order()
	for _, e := range p.sorted() {
		if _, busy := p.asking[e.uid]; busy || e.refusal == none || e.Namespace != name.Namespace || e.decision.order != order {
			continue
		}
		switch {
		case old.covers(e.target) && !next.covers(e.target):
			e.due = now
		case e.refusal == byBudget && next.covers(e.target) && room > 0:
			e.due = now
			room--
		}
	}
}

// forgetBudgets drops what is known of a namespace's budgets: a new watch begins with all of them.
func (p *progress) forgetBudgets(namespace string) {
	maps.DeleteFunc(p.budgets, func(name types.NamespacedName, _ budget) bool { return name.Namespace == namespace })
}

// freed says whether a budget that covers the pod has allowed something since the request that was refused was sent. Then
// the news overtook the refusal, and no more news may come.
func (p *progress) freed(e *entry) bool {
	for name, b := range p.budgets {
		if name.Namespace == e.Namespace && b.changed > e.sentAt && b.allowed > 0 && b.covers(e.target) {
			return true
		}
	}
	return false
}

func (p *progress) busyUnder(namespace string, b budget) int {
	n := 0
	for uid := range p.asking {
		if e := p.entries[uid]; e != nil && e.Namespace == namespace && b.covers(e.target) {
			n++
		}
	}
	return n
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
