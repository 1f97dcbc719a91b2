// Package plan decides which nodes may be rebooted now, and why each other node may not.
//
// It is pure: a Snapshot goes in, a Plan comes out, and the same snapshot always gives the same
// plan. It has no client, context, clock or logger; a linter proves it. Conditions, status, events
// and metrics are views of a Plan.
//
// A plan names three kinds of writes. Their order keeps the limit:
//
//	begin hooks, publish, cancel, finish  on Nodes: only for entries that are already in the ledger
//	grant, adopt, withdraw, release       in the ledger (policy status), in one compare-and-swap
//	conditions and node markers           on Nodes: reports, which permit nothing
//
// The caller applies the first kind, plans again, applies the second, plans again, and so on until
// nothing is left to do. docs/design.md shows the states of one granted reboot.
package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// Plan is everything that is decided about one policy from one snapshot.
type Plan struct {
	// Limit is maxUnavailable in nodes. If the policy shares a limit and has its own, it is the
	// smaller one. LimitOf is the name of the policy that sets it.
	Limit   int32
	LimitOf string
	// Ledger is the ledger that counts for the policy, after this plan.
	Ledger ledger.After
	// Reboots are the granted reboots and the next action for each, in the order of the ledger.
	Reboots []underway.Reboot
	// Unlisted are reboots under a grant of this policy on nodes that neither its ledger nor its
	// selector has, by node name. They are cancelled or finished like Reboots, but take no slot and
	// do not count as failures.
	Unlisted []underway.Reboot
	// Decisions are the wanted RebootPermitted conditions of the nodes that this policy answers
	// for, by node name.
	Decisions []Decision
	// Markers are the markers of nodes that show the wrong ones, in the order in which the nodes
	// take turns.
	Markers []record.Markers
	Halt    Halt
	// Invalid says why the spec cannot be used, so that nothing is granted, or is nil. Its reason is
	// Invalid or SharedPolicyNotFound.
	Invalid *block.Block
	// WaitsForGates is true if a node waits only for gates or its turn, so that gates must be
	// queried.
	WaitsForGates bool
	// Gates is the wanted status.gates.
	Gates []v1alpha1.GateStatus
	// RunHooks is the wanted status.run.hooks, or nil if no run with hooks is under way. A stage
	// that begins has no time yet.
	RunHooks *v1alpha1.RunHooks
	// RunMoves reports whether RunHooks differs from the status.
	RunMoves bool
	// Next is the next time at which the plan changes by itself, or zero if it does not.
	Next time.Time

	Report
}

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

// UnderWay returns the Reboots and the Unlisted.
func (p *Plan) UnderWay() []underway.Reboot { return slices.Concat(p.Reboots, p.Unlisted) }

// StatusMoves reports whether the plan changes the ledger or the stage of the run's hooks. Such a
// change has to be written before the next plan.
func (p *Plan) StatusMoves() bool { return p.RunMoves || p.Ledger.Changed() }

// Waiting returns the decisions about nodes that must wait. They hold even if the ledger cannot be
// written.
func (p *Plan) Waiting() []Decision {
	return slices.DeleteFunc(slices.Clone(p.Decisions), func(d Decision) bool { return d.Status != corev1.ConditionFalse })
}

// Released returns the reboots whose entries leave the ledger.
func (p *Plan) Released() []underway.Reboot {
	return slices.DeleteFunc(slices.Clone(p.Reboots), func(t underway.Reboot) bool { return t.Action != underway.ReleaseEntry })
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
