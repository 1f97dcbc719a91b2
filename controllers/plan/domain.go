package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Domain is where a node is by the policy's topologyKey, its zone for example. Nodes without that label share a domain of their
// own, the empty one; without a topologyKey it is that of all nodes.
func Domain(policy *v1alpha1.RebootPolicy, n *Node) string {
	if key := policy.Spec.TopologyKey(); key != "" {
		return n.Labels[key]
	}
	return ""
}

func (f *fleet) domain(n *Node) string { return Domain(f.Policy, n) }

// compareDomains gives domains one order for all times, so that a fleet does not go to and fro between them; the nodes
// without the label come last.
func (f *fleet) compareDomains(a, b *Node) int {
	if f.Policy.Spec.TopologyKey() == "" {
		return 0
	}
	of, other := f.domain(a), f.domain(b)
	return cmp.Or(compareBools(of == "", other == ""), cmp.Compare(of, other))
}

// lost are the nodes that did not come back in time from their reboot, or went down in their drain and did not end it in time.
func lost(flights []Flight) map[string]bool {
	names := map[string]bool{}
	for _, t := range flights {
		down := t.Rebooting() || t.Node != nil && !t.Node.Ready
		names[t.Entry.Node] = down && !t.FailedAt.IsZero()
	}
	return names
}

// domainBusy keeps reboots within one domain at a time. A node that is down for reasons of its own, or did not come back,
// makes no domain busy: it uses maxUnavailable, and would else keep every other domain from ever being served.
func domainBusy(f *fleet, n *Node) *Objection {
	own := f.domain(n)
	others := slices.DeleteFunc(slices.Collect(maps.Keys(f.places.domains)), func(d string) bool { return d == own })
	if len(others) == 0 {
		return nil
	}
	return objection(v1alpha1.ReasonDomainBusy, "waiting for another domain: nodes with %s are being rebooted, and it is one domain at a time",
		f.domainLabel(slices.Min(others)))
}

func (f *fleet) domainLabel(domain string) string {
	key := f.Policy.Spec.TopologyKey()
	if domain == "" {
		return "no label " + key
	}
	return key + "=" + domain
}
