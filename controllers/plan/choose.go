package plan

import (
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// Of makes the plan for one policy.
func Of(s Snapshot) Plan { return choose(s).plan }

// WithBlocked returns the plan, and for each node that waits, by name, the reason.
func WithBlocked(s Snapshot) (Plan, map[string]*Blocked) {
	c := choose(s)
	return c.plan, c.waiting
}

// choose follows the granted reboots, chooses among the nodes that wait, and reports on both.
func choose(s Snapshot) *choice {
	c := newChoice(s, nil)
	c.underWay()
	c.adopt()
	c.slots = slotsOf(c, c.plan.Reboots)
	c.grant()
	nextRun(c)
	if c.lent {
		c.slots = slotsOf(c, c.plan.Reboots) // free the slots that were lent
	}
	c.answer()
	c.report()
	return c
}

// underWay decides about the granted reboots.
func (c *choice) underWay() {
	reboots := c.reboots()
	crowdOut(c, reboots)
	c.plan = Plan{
		Limit: c.limits.Least(), LimitOf: c.limits.Of, Ledger: c.Ledger.After(c.Policy, c.limits.Ledger, staying(reboots)), Reboots: reboots, Halt: c.halt, Invalid: c.invalid,
	}
	for _, n := range c.Unlisted {
		c.plan.Unlisted = append(c.plan.Unlisted, c.reboot(c.entry(n)))
	}
}

// staying returns the entries of the reboots that go on.
func staying(reboots []underway.Reboot) []v1alpha1.LedgerEntry {
	var entries []v1alpha1.LedgerEntry
	for _, t := range reboots {
		if t.Action != underway.ReleaseEntry {
			entries = append(entries, t.Entry)
		}
	}
	return entries
}

// answer decides what each node shows, and whether gates are needed for that.
func (c *choice) answer() {
	p := &c.plan
	p.Decisions, p.Markers = decisions(c), markersOf(c)
	if waitsForGates(p, c.waiting) {
		p.WaitsForGates, p.Gates = c.gates.Any(), c.gates.Status()
	}
}

// adopt takes outstanding grants back into a ledger that has lost them: when a new leader has read
// the Nodes, or when the status was wiped. A grant that the agent has not begun is withdrawn, and
// so cancelled.
func (c *choice) adopt() {
	for _, n := range c.Orphans {
		c.plan.Ledger.Adopt(c.tagged(protocol.Adopt(n.Record, n.Name, c.Now), n))
	}
}

// grant chooses among the nodes that need a reboot, and records why each other one waits.
func (c *choice) grant() {
	for i, ring := range c.order.Rings.Split(c.active) {
		c.grantAmong(ring)
		if c.unfinished == nil && i < len(c.order.Rings.Order) {
			c.unfinished = unfinished(c, c.order.Rings.Order[i], ring)
		}
	}
}

// grantAmong chooses among the nodes of one ring.
func (c *choice) grantAmong(ring []*record.Node) {
	c.ahead = nil
	var candidates []*record.Node
	for _, n := range ring {
		if !n.NeedsReboot() || c.Held(n) {
			continue
		}
		if o := c.first(beforeGrant, n); o != nil {
			c.waiting[n.Name] = c.foresee(o, n)
			continue
		}
		candidates = append(candidates, n)
	}
	c.order.Sort(candidates)
	for _, n := range candidates {
		o := c.first(turn, n)
		if o.reaches(fleetChecks) {
			// The node is next, but a check that blocks all nodes may still block it. The nodes
			// after it are judged as if it were down, and keep their reports.
			c.slots.Take(n)
			c.lent = c.lent || o != nil
		}
		if o != nil {
			c.waiting[n.Name] = o
			if c.ahead == nil && o.Reason == v1alpha1.ReasonDomainBusy {
				c.ahead = n
			}
			continue
		}
		e := c.tagged(protocol.Enter(c.plan.Ledger.Seq, n.Record, n.Name, n.BootID, c.Now), n)
		e.NeedSince, e.OSVersion, e.KernelVersion, e.Try = n.NeedSince(), n.OSVersion, n.Kernel, c.pods.Tries(n) > 0
		c.plan.Ledger.Grant(e)
	}
}
