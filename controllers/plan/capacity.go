package plan

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// slotsOf counts who holds slots, given the granted reboots.
func slotsOf(c *choice, reboots []underway.Reboot) *slots.Slots {
	s := slots.New(slots.Rules{
		Now: c.Now, Policy: c.Policy, Zone: c.Schedule.Zone(), Ledger: c.Ledger, Rings: c.order.Rings, Limits: c.limits,
	}, c.Sorted, reboots)
	for _, n := range c.active {
		s.Count(n)
	}
	for name := range c.Conflicts { // each of the rivals counts the node
		s.Count(c.ByName[name])
	}
	lost := map[string]bool{}
	for _, t := range reboots {
		lost[t.Entry.Node] = t.Lost()
		if t.Action != underway.ReleaseEntry {
			s.Grant(t.Entry.Node, t.Node)
		} else {
			s.Back(t.BackAt())
		}
	}
	for _, n := range c.Orphans {
		s.Grant(n.Name, n)
	}
	for _, name := range s.Holding() {
		if n := c.ByName[name]; n != nil && !lost[name] && keepsBusy(c, n) {
			s.Occupy(n)
		}
	}
	s.NoteHolders(c.Nodes)
	return s
}

// keepsBusy reports whether a node with a grant keeps its domain busy. A node that another policy
// governs does not: only the limit is shared. Neither does a node that moved to this policy during
// its reboot, or that several policies select by now, once the granting policy reports it as lost.
func keepsBusy(c *choice, n *record.Node) bool {
	if c.Entries.OwnOf(n.Name) != nil || slices.Contains(c.Orphans, n) {
		return true
	}
	_, conflicts := c.Conflicts[n.Name]
	return (conflicts || c.Governor.Govern(n).Policy == c.Policy.Name) && !n.ReportedLost()
}

// crowdOut cancels grants that no agent has seen yet if other nodes have gone down since: hooks may
// have taken hours.
func crowdOut(c *choice, reboots []underway.Reboot) {
	if !slices.ContainsFunc(reboots, underway.Reboot.Appears) {
		return
	}
	s := slotsOf(c, reboots)
	for i, t := range slices.Backward(reboots) { // the last grant gives up its slot to those before it
		if !t.Appears() {
			continue
		}
		o := crowded(c, s, t.Node)
		if reboots[i] = t.CrowdOut(o); o != nil {
			s.Free(t.Node)
		}
	}
}

// crowded returns why the limit leaves no slot for a node that holds a grant, or nil.
func crowded(c *choice, s *slots.Slots, n *record.Node) *block.Block {
	for _, other := range c.ControlPlane {
		if n.ControlPlane && other != n && !other.Ready {
			return block.New(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is not Ready", other.Name)
		}
	}
	return s.Crowded(n)
}

func budgetExhausted(c *choice, n *record.Node) *block.Block { return c.slots.Exhausted(n) }

func spaced(c *choice, _ *record.Node) *block.Block { return c.slots.Spaced() }

// controlPlaneGuard protects the quorum. It allows one control-plane node at a time, only while the
// others are Ready, and only if one policy governs all of them.
func controlPlaneGuard(c *choice, n *record.Node) *block.Block {
	if !n.ControlPlane {
		return nil
	}
	for _, other := range c.ControlPlane {
		if other == n {
			continue
		}
		switch g := c.Governor.Govern(other); {
		case c.Held(other) || c.slots.Hold(other.Name):
			return block.New(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is being rebooted", other.Name)
		case !other.Ready:
			return block.New(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is not Ready", other.Name)
		case g.Policy != c.Policy.Name:
			return block.New(v1alpha1.ReasonPolicyConflict, "one policy must govern all control-plane nodes; policy %s does not govern %s", c.Policy.Name, other.Name)
		}
	}
	return nil
}

// guards returns the control-plane nodes that are not Ready and that others wait for.
func guards(c *choice) map[string]bool {
	guards := map[string]bool{}
	for _, n := range c.active {
		for _, other := range c.ControlPlane {
			if n.ControlPlane && c.waiting[n.Name] != nil && other != n && !other.Ready && !c.Held(other) {
				guards[other.Name] = true
			}
		}
	}
	return guards
}

// domainBusy allows reboots in one domain at a time. If another node goes first for a reason other
// than its domain, nodes of the busy domain do not overtake it, because there may always be one
// more of them. A node that is down for another reason, or did not come back, does not make its
// domain busy: it already counts against maxUnavailable, and would block every other domain
// forever.
func domainBusy(c *choice, n *record.Node) *block.Block {
	own := c.domain(n)
	others := slices.DeleteFunc(c.slots.Busy(), func(d string) bool { return d == own })
	if len(others) > 0 {
		return block.New(v1alpha1.ReasonDomainBusy, "waiting for another domain: nodes with %s are rebooting, and only one domain may reboot at a time",
			domainLabel(c.Policy.Spec.TopologyKey(), others[0]))
	}
	if c.ahead == nil {
		return nil
	}
	if why := c.order.Precedence(c.ahead, n); why != "" {
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

// stallOf sums up the nodes that wait for others which nobody reboots. It returns nil if none do.
func stallOf(c *choice) *block.Stall {
	var stall *block.Stall
	for _, n := range c.active {
		o := c.waiting[n.Name]
		if o == nil || o.Stall == nil {
			continue
		}
		if stall == nil {
			stall = new(*o.Stall)
		}
		stall.Waiting++
		stall.Since = timing.Earliest(stall.Since, o.Stall.Since)
	}
	return stall
}
