package drain

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// This file tells what a look at the node's pods has found. It does nothing.

// complete says whether the pods are known, and the budgets of all namespaces that matter.
func (p *progress) complete(listed map[string]bool) bool {
	return p.listed && !slices.Contains(slices.Collect(maps.Values(listed)), false)
}

// exposed lists the namespaces of pods that a budget could hold back.
func (p *progress) exposed() []string {
	namespaces := map[string]bool{}
	for _, e := range p.entries {
		if e.budgeted() {
			namespaces[e.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

func (p *progress) findings() Findings {
	f := Findings{Kept: p.undrainable(), Blocking: p.blockers("")}
	for _, e := range p.sorted() {
		if why := p.guard(e); why != "" {
			f.Guarded = append(f.Guarded, e.pod(string(v1alpha1.ReasonUndrainablePod), why))
		}
	}
	return f
}

// blockerMessage is said of a pod that came between the look before the cordon and the cordon.
const blockerMessage = "gates.blockingPods lets it keep its node until it has completed"

// blockers lists the pods that keep their node.
func (p *progress) blockers(message string) []Pod {
	if len(p.blocking) == 0 {
		return nil
	}
	pods := make([]Pod, 0, len(p.blocking))
	for _, t := range p.blocking {
		pods = append(pods, Pod{Namespace: t.Namespace, Name: t.Name, UID: t.uid, Reason: string(v1alpha1.ReasonBlockingPod), Message: message})
	}
	slices.SortFunc(pods, comparePods)
	return pods
}

// budgeted says whether the API server would ask PodDisruptionBudgets before it lets the pod go: not for one that has not
// started, and not for a deletion.
func (e *entry) budgeted() bool {
	return !e.pending && e.deleted.IsZero() && e.decision.undrainable == "" && e.decision.action == v1alpha1.DrainEvict
}

// guard is why no eviction can remove the pod, however well all the others are, or why that is not known; "" where one may.
func (p *progress) guard(e *entry) string {
	if !e.budgeted() {
		return ""
	}
	covering, never, unknown := 0, "", ""
	for _, name := range slices.SortedFunc(maps.Keys(p.budgets), compareNames) {
		b := p.budgets[name]
		if name.Namespace != e.Namespace || !b.covers(e.target) {
			continue
		}
		covering++
		switch {
		case !e.ready && b.lenient:
		case b.never:
			never = name.Name
		case b.unknown:
			unknown = name.Name
		}
	}
	switch {
	case covering > 1:
		return crowdedMessage(p.budgetsOf(e.target))
	case never != "":
		return fmt.Sprintf("PodDisruptionBudget %s allows no eviction, even with every pod healthy", never)
	case unknown != "":
		return fmt.Sprintf("the status of PodDisruptionBudget %s does not count the pod yet", unknown)
	}
	return ""
}
