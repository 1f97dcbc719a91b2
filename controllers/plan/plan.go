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
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// Plan is everything that is decided about one policy from one snapshot.
type Plan struct {
	// Limit is maxUnavailable in nodes. If the policy shares a limit and has its own, it is the
	// smaller one. LimitOf is the name of the policy that sets it.
	Limit   int32
	LimitOf string
	// Batch is the limit of a run with concurrency.firstBatch, or nil if it does not limit the run.
	Batch *slots.Batch
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

	// Window is status.window: windows, pause and halt in one word.
	Window  v1alpha1.WindowState
	Counts  v1alpha1.NodeCounts
	Blocked []v1alpha1.BlockedNodes
	// Versions counts the OS versions that the nodes run.
	Versions []v1alpha1.SystemVersions
	// Agents reports on the nodes' agents, or is nil while their pods have not been read.
	Agents *report.AgentsHealth
	// Deadlines reports on the nodes' deadlines, or is nil if the policy has none.
	Deadlines *report.DeadlinesHealth
	Halt      Halt
	// Invalid says why the spec cannot be used, so that nothing is granted, or is nil. Its reason is
	// Invalid or SharedPolicyNotFound.
	Invalid *block.Block
	// Conflicts are the nodes that several policies of the same priority select, this one among
	// them, by those policies.
	Conflicts []governor.Conflict
	// Withheld are the nodes that this policy selects but an invalid policy of higher priority
	// governs, by the name of that policy.
	Withheld map[string][]string
	// Holders lists the nodes that use slots. Unavailable are those that keep others waiting without
	// a grant.
	Holders     string
	Unavailable []slots.Unavailable
	// Failures are the failed attempts on nodes that still need their reboot.
	Failures []Failure
	// Unexpected are reboots of the policy's nodes that nobody granted, the oldest first. History
	// takes those that are new.
	Unexpected []v1alpha1.PastReboot
	// Silent are the nodes in service that do not report whether they need a reboot, by name.
	Silent []string
	// Ignored are the nodes with a condition of spec.nodeConditions that lasts and does not count, by
	// name.
	Ignored []string
	// Stall describes nodes that have used up the limit for long without being rebooted, or is nil.
	Stall *block.Stall
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
	// RunWaits says which hooks of the run have not approved yet, or is empty.
	RunWaits string
	// OldestPending is the time since which the longest-waiting node has needed its reboot, or zero
	// if none waits.
	OldestPending time.Time
	// Next is the next time at which the plan changes by itself, or zero if it does not.
	Next time.Time
}

// Of makes the plan for one policy.
func Of(s Snapshot) Plan { return choose(s).plan }

// WithBlocked returns the plan, and for each node that waits, by name, the reason.
func WithBlocked(s Snapshot) (Plan, map[string]*Blocked) {
	c := choose(s)
	return c.plan, c.waiting
}

// choice is a plan in the making: what checks read besides the node, and what is chosen so far.
// Checks do not change it.
type choice struct {
	*fleet

	plan Plan
	// slots are the slots taken so far.
	slots *slots.Slots
	// lent is true if slots were taken for nodes that go next but are not granted yet.
	lent bool
	// waiting holds the reason that each node waits, by the node's name.
	waiting map[string]*Blocked
	// ahead is the first node of the ring that waits for another domain, or nil.
	ahead *record.Node
	// unfinished is the earlier ring's unfinished work that the node's ring waits for, or nil.
	unfinished *block.Block
}

// choose follows the granted reboots, chooses among the nodes that wait, and reports on both.
func choose(s Snapshot) *choice {
	c := underWay(newFleet(s, nil))
	c.adopt()
	c.slots = c.slotsOf(c.plan.Reboots)
	c.grant()
	c.nextRun()
	if c.lent {
		c.slots = c.slotsOf(c.plan.Reboots) // free the slots that were lent
	}
	c.report()
	return c
}

// underWay decides about the granted reboots.
func underWay(f *fleet) *choice {
	reboots := f.reboots()
	crowdOut(f, reboots)
	c := &choice{fleet: f, waiting: map[string]*Blocked{}, plan: Plan{
		Limit: f.limits.Least(), LimitOf: f.limits.Of, Ledger: f.Ledger.After(f.Policy, f.limits.Ledger, staying(reboots)), Reboots: reboots,
		Window: f.windowState(), Halt: f.halt, Invalid: f.invalid, Conflicts: governor.Conflicts(f.conflicts, func(name string) bool { return f.byName[name].NeedsReboot() }),
	}}
	for _, n := range f.unlisted {
		c.plan.Unlisted = append(c.plan.Unlisted, f.reboot(f.entry(n)))
	}
	return c
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

// report adds what conditions, status, events and metrics show.
func (c *choice) report() {
	p := &c.plan
	if p.RunHooks != nil && c.run.Waits != nil {
		p.RunWaits = c.run.Waits.Message
	}
	p.Holders, p.Unavailable, p.Stall = c.slots.Holders(), c.slots.Unavailable(c.Nodes, guards(c)), stallOf(c)
	p.Failures, p.Silent, p.Ignored = failuresOf(c), silentNodes(c.fleet), ignoredConditions(c.fleet)
	p.Decisions, p.Markers, p.Unexpected = decisions(c), markersOf(c), unexpected(c.fleet)
	agents := report.CountAgents(c.Agents, c.Now)
	for _, n := range c.selected {
		agents.Add(n, c.held(n))
	}
	p.Versions, p.Agents, p.Deadlines = report.Versions(c.selected), agents.Report(len(c.selected)), report.Deadlines(c.Policy, c.governed, c.Now, c.Schedule.Zone())
	p.Withheld = c.Governor.Withheld(c.Nodes, c.name)
	c.count(agents.Reporting)
	if len(p.Ledger.Own())+len(p.Blocked) > 0 {
		p.Batch = c.slots.Batch()
	}
	if waitsForGates(p, c.waiting) {
		p.WaitsForGates, p.Gates = c.gates.Any(), c.gates.Status()
	}
	p.Next = c.next(agents.MissedAt)
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
	for _, n := range c.orphans {
		c.plan.Ledger.Adopt(c.tagged(protocol.Adopt(n.Record, n.Name, c.Now), n))
	}
}

// grant chooses among the nodes that need a reboot, and records why each other one waits.
func (c *choice) grant() {
	for i, ring := range c.order.Rings.Split(c.governed) {
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
		if !n.NeedsReboot() || c.held(n) {
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
