package plan

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// needsOf returns the annotations that a governed node should show.
func needsOf(c *choice, n *record.Node) record.Needs {
	needs := record.Needs{Conditions: c.conditions}
	if most := record.MaxUptime(&c.Policy.Spec, n.Name); most > 0 {
		needs.MaxUptime = most.String()
	}
	return needs
}

// ignoredConditions returns the nodes with a condition that lasts and does not count, by name.
func ignoredConditions(c *choice) []string {
	var names []string
	for _, n := range c.Governed {
		if n.RequiredReason == v1alpha1.ReasonConditionIgnored {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}
