package plan

import (
	"maps"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// Domain returns the node's topology domain: the value of its topologyKey label, its zone for
// example. It returns "" if the node lacks the label or the policy has no topologyKey.
func Domain(policy *v1alpha1.RebootPolicy, n *record.Node) string {
	if key := policy.Spec.TopologyKey(); key != "" {
		return n.Labels[key]
	}
	return ""
}

// domainBusy allows reboots in one domain at a time. If another node goes first for a reason other
// than its domain, nodes of the busy domain do not overtake it, because there may always be one
// more of them. A node that is down for another reason, or did not come back, does not make its
// domain busy: it already counts against maxUnavailable, and would block every other domain
// forever.
func domainBusy(c *choice, n *record.Node) *block.Block {
	own := c.domain(n)
	others := slices.DeleteFunc(slices.Collect(maps.Keys(c.slots.domains)), func(d string) bool { return d == own })
	if len(others) > 0 {
		return block.New(v1alpha1.ReasonDomainBusy, "waiting for another domain: nodes with %s are rebooting, and only one domain may reboot at a time",
			domainLabel(c.Policy.Spec.TopologyKey(), slices.Min(others)))
	}
	if why := precedence(c, n); why != "" {
		return block.New(v1alpha1.ReasonDomainBusy, "waiting for its turn: %s goes first (%s), once the nodes with %s are back",
			c.ahead.Name, why, domainLabel(c.Policy.Spec.TopologyKey(), own))
	}
	return nil
}

func domainLabel(key, domain string) string {
	if domain == "" {
		return "no label " + key
	}
	return key + "=" + domain
}
