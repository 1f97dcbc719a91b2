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
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
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
	// SharedLimit is the limit of the ledger's policy. It counts the nodes of all policies that
	// share it.
	SharedLimit int32
	// Batch is the limit of a run with concurrency.firstBatch, or nil if it does not limit the run.
	Batch *slots.Batch
	// SharedWith are the policies that share the limit, including this one, sorted. It is nil if
	// there is only this one.
	SharedWith []string
	// Unshared says why spec.concurrency.shared cannot be used. It is empty if it can, or is not
	// set.
	Unshared string
	// Seq is the ledger's sequence number after this plan.
	Seq int64
	// InLedgerOf is the name of the policy whose ledger holds the entries.
	InLedgerOf string
	// Others are entries of other policies in the same ledger.
	Others []v1alpha1.LedgerEntry
	// Reboots are the granted reboots and the next action for each, in the order of the ledger.
	Reboots []underway.Reboot
	// Unlisted are reboots under a grant of this policy on nodes that neither its ledger nor its
	// selector has, by node name. They are cancelled or finished like Reboots, but take no slot and
	// do not count as failures.
	Unlisted []underway.Reboot
	// Granted and Adopted are new entries for the ledger. Adopted ones already have a grant on
	// their Node.
	Granted, Adopted []v1alpha1.LedgerEntry
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
	// Invalid says what is wrong with the spec. If it is set, nothing is granted.
	Invalid string
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

	// notes is true if another policy's ledger has to record how far a reboot is, or since when.
	// The policy's own ledger is written with its status anyway.
	notes bool
	// learned is true if Seq has grown because of grants on Nodes. The ledger has to record that
	// before more grants can be adopted.
	learned bool
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
		Limit: f.limits.Least(), LimitOf: f.limits.Of, SharedLimit: f.Ledger.LimitAfter(f.limits.Ledger), SharedWith: f.Ledger.With, Unshared: f.Ledger.Missing,
		Seq: max(f.Policy.Status.Seq, f.Ledger.Policy.Status.Seq), InLedgerOf: f.Ledger.Policy.Name, Others: f.entries.Others, Reboots: reboots,
		Window: f.windowState(), Halt: f.halt, Invalid: f.invalid, Conflicts: governor.Conflicts(f.conflicts, func(name string) bool { return f.byName[name].NeedsReboot() }),
	}}
	for i, t := range c.plan.Reboots {
		was := f.entries.Own[i]
		c.plan.notes = c.plan.notes || f.Ledger.Apart() && ((t.Entry.RebootingAt == nil) != (was.RebootingAt == nil) || !t.Entry.At.Equal(&was.At))
	}
	for _, n := range f.unlisted {
		c.plan.Unlisted = append(c.plan.Unlisted, f.reboot(f.entry(n)))
	}
	return c
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
	if len(p.Ledger())+len(p.Blocked) > 0 {
		p.Batch = c.slots.Batch()
	}
	if waitsForGates(p, c.waiting) {
		p.WaitsForGates, p.Gates = c.gates.Any(), c.gates.Status()
	}
	p.Next = c.next(agents.MissedAt)
}

// UnderWay returns the Reboots and the Unlisted.
func (p *Plan) UnderWay() []underway.Reboot { return slices.Concat(p.Reboots, p.Unlisted) }

// Entries returns all entries of the ledger after the plan, including those of other policies.
// Their order is the same in every policy's plan.
func (p *Plan) Entries() []v1alpha1.LedgerEntry {
	if len(p.Others) == 0 {
		return p.Ledger()
	}
	entries := slices.Concat(p.Others, p.Ledger())
	slices.SortStableFunc(entries, func(a, b v1alpha1.LedgerEntry) int { return cmp.Compare(a.Seq, b.Seq) })
	return entries
}

// Enter puts the ledger after the plan into the status of a policy, if that policy has it.
func (p *Plan) Enter(policy string, status *v1alpha1.RebootPolicyStatus) {
	if policy == p.InLedgerOf {
		status.Limit, status.Seq, status.Grants = p.SharedLimit, p.Seq, p.Entries()
	}
}

// Together says how many slots of a shared limit are in use, or returns "" if the policy shares
// with nobody.
func (p *Plan) Together() string {
	if p.SharedWith == nil {
		return ""
	}
	return fmt.Sprintf("policies %s have %d of at most %d together", list(p.SharedWith), len(p.Entries()), p.SharedLimit)
}

// Ledger returns the policy's entries after the plan.
func (p *Plan) Ledger() []v1alpha1.LedgerEntry {
	var ledger []v1alpha1.LedgerEntry
	for _, t := range p.Reboots {
		if t.Action != underway.ReleaseEntry {
			ledger = append(ledger, t.Entry)
		}
	}
	return slices.Concat(ledger, p.Adopted, p.Granted)
}

// StatusMoves reports whether the plan changes the ledger or the stage of the run's hooks. Such a
// change has to be written before the next plan.
func (p *Plan) StatusMoves() bool { return p.RunMoves || p.LedgerChanges() }

// LedgerChanges reports whether the plan changes the ledger.
func (p *Plan) LedgerChanges() bool {
	withdraws := func(t underway.Reboot) bool { return t.Action == underway.WithdrawGrant }
	return p.learned || p.notes || len(p.Granted)+len(p.Adopted)+len(p.Released()) > 0 || slices.ContainsFunc(p.Reboots, withdraws)
}

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
// so cancelled. The API server refuses new numbers above the limit, so what does not fit is adopted
// once the ledger has recorded its number. Until then it counts against the limit.
func (c *choice) adopt() {
	p := &c.plan
	before, entries := c.Ledger.Policy.Status.Seq, len(p.Others)+len(c.entries.Own)-len(p.Released())
	for _, n := range c.orphans {
		e := c.tagged(protocol.Adopt(n.Record, n.Name, c.Now), n)
		p.Seq = max(p.Seq, e.Seq)
		if e.Seq > before && entries >= int(p.SharedLimit) || entries >= v1alpha1.MaxGrants {
			p.learned = p.learned || e.Seq > before
			continue
		}
		entries++
		p.Adopted = append(p.Adopted, e)
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
		e := c.tagged(protocol.Enter(c.plan.Seq, n.Record, n.Name, n.BootID, c.Now), n)
		e.NeedSince, e.OSVersion, e.KernelVersion, e.Try = n.NeedSince(), n.OSVersion, n.Kernel, c.pods.Tries(n) > 0
		c.plan.Seq, c.plan.Granted = e.Seq, append(c.plan.Granted, e)
	}
}
