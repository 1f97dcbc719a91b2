package plan

import (
	"fmt"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// needsOf returns the annotations that a governed node should show.
func needsOf(f *fleet, n *record.Node) record.Needs {
	needs := record.Needs{Conditions: f.conditions}
	if most := record.MaxUptime(&f.Policy.Spec, n.Name); most > 0 {
		needs.MaxUptime = most.String()
	}
	return needs
}

// ignoredConditions returns the nodes with a condition that lasts and does not count, by name.
func ignoredConditions(f *fleet) []string {
	var names []string
	for _, n := range f.selected {
		if n.RequiredReason == v1alpha1.ReasonConditionIgnored {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ofConditions adds the nodes whose conditions a reboot did not end.
func (a *attention) ofConditions() {
	if nodes := a.plan.Ignored; len(nodes) > 0 {
		a.because(AttentionBlocked, v1alpha1.ReasonConditionIgnored, fmt.Sprintf("%s: a condition of nodeConditions of policy %s lasts and does not count: "+
			"a reboot did not end it, or its time cannot be right", someOf(nodes), a.policy.Name), "kubectl reboot explain "+nodes[0], nodes...)
	}
}
