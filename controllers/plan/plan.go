// Package plan decides which nodes may be rebooted now, and why each other node may not.
//
// It is pure: a Snapshot goes in, a Plan comes out, and the same snapshot always gives the same plan. It has no client,
// no context, no clock and no logger; a linter proves it. Conditions, status, events and metrics are views of a Plan.
//
// A plan names three kinds of writes, and the order in which they may happen is what keeps the limit:
//
//	begin hooks, publish, cancel, finish  on Nodes: only for entries that are in the ledger already
//	grant, adopt, withdraw, release       in the ledger (policy status), in one compare-and-swap
//	conditions and node markers           on Nodes: reports, which permit nothing
//
// The caller applies the first kind, plans again, applies the second, plans again, until a plan has nothing left to do.
// docs/design.md shows the states of one granted reboot.
package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Plan is everything decided about one policy from one snapshot.
type Plan struct {
	// Limit is maxUnavailable in nodes: the smaller one where the policy shares a limit and has one of its own.
	Limit int32
	// SharedLimit is that of the ledger's policy, in nodes of all policies that share it.
	SharedLimit int32
	// SharedWith are the policies that the limit counts, with this one, in order. Nil: this one alone.
	SharedWith []string
	// Unshared is why the policy has no limit to share. Empty: it has one, or needs none.
	Unshared string
	// Seq is the ledger's sequence number after this plan.
	Seq int64
	// InLedgerOf is the policy whose ledger has the entries. Empty: it is this one's own.
	InLedgerOf string
	// Others are entries of other policies in the same ledger.
	Others []v1alpha1.LedgerEntry
	// Reboots are the granted reboots and what is to be done about each, in the order of the ledger.
	Reboots []Reboot
	// Unlisted are reboots under a grant that names this policy, on nodes that neither its ledger nor its selector has. They are cancelled
	// or finished like Reboots, but take no slot and count as no failure. By node name.
	Unlisted []Reboot
	// Granted and Adopted are new entries for the ledger; Adopted ones are on Nodes already.
	Granted, Adopted []v1alpha1.LedgerEntry
	// Decisions are, for each node this policy answers for, what its condition RebootPermitted should be; by node name.
	Decisions []Decision
	// Markers are those of nodes that should show something else, in the order of the nodes' turns.
	Markers []Markers

	// Window sums up windows, pause and halt.
	Window  v1alpha1.WindowState
	Counts  v1alpha1.NodeCounts
	Blocked []v1alpha1.BlockedNodes
	// Versions are what the nodes run.
	Versions []v1alpha1.SystemVersions
	// Agents is what is known of the nodes' agents. Nil: nothing yet.
	Agents *AgentsHealth
	// Deadlines is what is known of the nodes' deadlines. Nil: the policy has none.
	Deadlines *DeadlinesHealth
	Halt      Halt
	// Invalid states what is wrong with the spec; then nothing is granted.
	Invalid string
	// Conflicts are nodes that this policy and its rivals select, by node name.
	Conflicts map[string][]string
	// Withheld are nodes that this policy selects and an invalid one of higher priority governs, by the name of that one.
	Withheld map[string][]string
	// Contested is one of Conflicts, if possible one that needs a reboot.
	Contested string
	// Holders names who uses the budget, and Unavailable those of them that use it up without a
	// grant.
	Holders     string
	Unavailable []Unavailable
	// Failures are the attempts that failed, of nodes that still need their reboot.
	Failures []Failure
	// Silent are the nodes in service that do not report whether they need a reboot, by name.
	Silent []string
	// Stall reports nodes that use the limit up without being rebooted. Nil: none do, or not for long.
	Stall *Stall
	// WaitsForGates reports that a node waits for its gates or its turn alone, so the gates must be asked.
	WaitsForGates bool
	// Gates are what status.gates should be.
	Gates []v1alpha1.GateStatus
	// RunHooks is how far the run is after the plan, in status.run.hooks. Nil: no run with hooks goes on. A stage that begins has no
	// instant yet.
	RunHooks *v1alpha1.RunHooks
	// RunMoves reports whether RunHooks differ from those of the status.
	RunMoves bool
	// RunWaits states which hooks of the run are waited for. Empty: none.
	RunWaits string
	// OldestPending is since when the longest-waiting node has needed its reboot; zero: none waits.
	OldestPending time.Time
	// Next is the instant at which time alone changes the answer; zero: never.
	Next time.Time

	// notes: another policy's ledger has to know how far a reboot is, or since when. The policy's own does with the next write of its status.
	notes bool
	// learned: Seq has grown by what is on Nodes, and the ledger must know before more can be adopted.
	learned bool
}

// Of decides about one policy.
func Of(s Snapshot) Plan { return Begin(s).Complete() }

// WithBlocked is Of, and beside the plan why each node waits, by its name.
func WithBlocked(s Snapshot) (Plan, map[string]*Blocked) {
	d := Begin(s)
	return d.Complete(), d.waiting
}

// Draft is a plan that has been begun. It belongs to one snapshot: after a write, begin another one.
type Draft struct {
	f *fleet

	plan  Plan
	slots *slots
	// lent: slots were taken for nodes that go next, and are not granted yet.
	lent bool
	// waiting is why each node waits, by its name.
	waiting map[string]*Blocked
}

// Begin decides about the granted reboots alone.
func Begin(s Snapshot) *Draft {
	f := newFleet(s, nil)
	reboots := f.reboots()
	crowdOut(f, reboots)
	d := &Draft{f: f, waiting: map[string]*Blocked{}, plan: Plan{
		Limit: f.limit, SharedLimit: f.sharedLimit(), SharedWith: f.limited.with, Unshared: f.Governor.unshared[f.name],
		Seq: s.Policy.Status.Seq, Others: f.limited.others, Reboots: reboots,
		Window: f.windowState(), Halt: f.halt, Invalid: f.invalid, Conflicts: f.conflicts, Withheld: f.withheld,
	}}
	if f.own != nil {
		d.plan.Limit = min(f.limit, *f.own)
	}
	if s.Ledger != nil {
		d.plan.InLedgerOf, d.plan.Seq = s.Ledger.Name, max(d.plan.Seq, s.Ledger.Status.Seq)
	}
	for i, t := range d.plan.Reboots {
		was := f.entries[i]
		d.plan.notes = d.plan.notes || s.Ledger != nil && ((t.Entry.RebootingAt == nil) != (was.RebootingAt == nil) || !t.Entry.At.Equal(&was.At))
	}
	for _, n := range f.unlisted {
		d.plan.Unlisted = append(d.plan.Unlisted, f.reboot(f.entry(n)))
	}
	return d
}

// InProgress is what a draft has before it is complete: of the plan, the Reboots, the Unlisted and what holds for all nodes.
func (d *Draft) InProgress() Plan { return d.plan }

// Complete also decides about the nodes that wait. Call it once.
func (d *Draft) Complete() Plan {
	d.adopt()
	d.slots = slotsOf(d.f, d.plan.Reboots)
	d.grant()
	p := &d.plan
	p.RunHooks = d.nextRun()
	if d.lent {
		d.slots = slotsOf(d.f, d.plan.Reboots) // the slots that were given away are free again
	}
	p.RunMoves = !sameStage(d.f.Policy.Status.Run, p.RunHooks)
	if p.RunHooks != nil && d.f.run.waits != nil {
		p.RunWaits = d.f.run.waits.Message
	}
	p.Holders, p.Unavailable, p.Stall = d.slots.holders(), d.slots.unavailable(d.f), stallOf(d)
	p.Failures, p.Silent, p.Contested = failuresOf(d), silentNodes(d.f), contested(d.f)
	p.Decisions, p.Markers = d.decisions(), markersOf(d)
	p.Versions, p.Agents, p.Deadlines = versionsOf(d.f.selected), d.f.agents.report(len(d.f.selected)), deadlinesOf(d.f)
	d.count()
	if waitsForGates(p, d.waiting) {
		p.WaitsForGates, p.Gates = len(d.f.gates) > 0, gateStatus(d.f)
	}
	p.Next = d.next()
	return d.plan
}

// UnderWay are the Reboots and the Unlisted.
func (p *Plan) UnderWay() []Reboot { return slices.Concat(p.Reboots, p.Unlisted) }

// Entries are all of the ledger after the plan, also of other policies: in one order, whichever policy's plan it is.
func (p *Plan) Entries() []v1alpha1.LedgerEntry {
	if len(p.Others) == 0 {
		return p.Ledger()
	}
	entries := slices.Concat(p.Others, p.Ledger())
	slices.SortStableFunc(entries, func(a, b v1alpha1.LedgerEntry) int { return cmp.Compare(a.Seq, b.Seq) })
	return entries
}

// Ledger is the list of the policy's entries after the plan.
func (p *Plan) Ledger() []v1alpha1.LedgerEntry {
	var ledger []v1alpha1.LedgerEntry
	for _, t := range p.Reboots {
		if t.Action != ReleaseEntry {
			ledger = append(ledger, t.Entry)
		}
	}
	return slices.Concat(ledger, p.Adopted, p.Granted)
}

// StatusMoves reports whether the ledger, or how far the hooks of the run are, differs after the plan: either is written before the
// next plan.
func (p *Plan) StatusMoves() bool { return p.RunMoves || p.LedgerChanges() }

// LedgerChanges reports whether the ledger differs after the plan.
func (p *Plan) LedgerChanges() bool {
	withdraws := func(t Reboot) bool { return t.Action == WithdrawGrant }
	return p.learned || p.notes || len(p.Granted)+len(p.Adopted)+len(p.Released()) > 0 || slices.ContainsFunc(p.Reboots, withdraws)
}

// Waiting are the decisions about nodes that must wait, whether the ledger can be written or not.
func (p *Plan) Waiting() []Decision {
	return slices.DeleteFunc(slices.Clone(p.Decisions), func(d Decision) bool { return d.Status != corev1.ConditionFalse })
}

// Released are the reboots whose entries leave the ledger.
func (p *Plan) Released() []Reboot {
	return slices.DeleteFunc(slices.Clone(p.Reboots), func(t Reboot) bool { return t.Action != ReleaseEntry })
}

// adopt takes outstanding grants back into a ledger that has lost them: after a new leader's first look, or when the status was lost.
// One that the agent has not begun is withdrawn, and so cancelled. The API server refuses new numbers above the limit. What does not
// fit is adopted once the ledger has learned its number, and counts against the budget until then.
func (d *Draft) adopt() {
	p := &d.plan
	before, entries := d.f.Holder().Status.Seq, len(p.Others)+len(d.f.entries)-len(p.Released())
	for _, n := range d.f.orphans {
		e := d.f.tagged(protocol.Adopt(n.Record, n.Name, d.f.Now), n)
		p.Seq = max(p.Seq, e.Seq)
		if e.Seq > before && entries >= int(p.SharedLimit) || entries >= v1alpha1.MaxGrants {
			p.learned = p.learned || e.Seq > before
			continue
		}
		entries++
		p.Adopted = append(p.Adopted, e)
	}
}

// grant chooses among the nodes that need a reboot, and states why each other one waits.
func (d *Draft) grant() {
	sees := view{fleet: d.f, slots: d.slots}
	for i, ring := range d.f.rings.split(d.f.governed) {
		d.grantAmong(ring, sees)
		if sees.unfinished == nil && i < len(d.f.rings.order) {
			sees.unfinished = unfinished(d, d.f.rings.order[i], ring)
		}
	}
}

// grantAmong chooses among the nodes of one ring.
func (d *Draft) grantAmong(ring []*Node, sees view) {
	var candidates []*Node
	for _, n := range ring {
		if !n.NeedsReboot() || d.f.held(n) {
			continue
		}
		if o := sees.first(beforeGrant, n); o != nil {
			d.waiting[n.Name] = o
			continue
		}
		candidates = append(candidates, n)
	}
	d.f.order(candidates)
	for _, n := range candidates {
		o := sees.first(turn, n)
		if o.reaches(fleetChecks) {
			// Its turn has come. What keeps all nodes from being granted may block it still. The next node is judged as if this one were down,
			// and keeps what it reports.
			d.slots.take(n.Name, d.f.rings.Of(n), d.f.domain(n))
			d.lent = d.lent || o != nil
		}
		if o != nil {
			d.waiting[n.Name] = o
			if sees.ahead == nil && o.Reason == v1alpha1.ReasonDomainBusy {
				sees.ahead = n
			}
			continue
		}
		e := d.f.tagged(protocol.Enter(d.plan.Seq, n.Record, n.Name, n.BootID, d.f.Now), n)
		e.NeedSince, e.OSVersion, e.Try = n.needSince(), n.OSVersion, d.f.tries(n) > 0
		d.plan.Seq, d.plan.Granted = e.Seq, append(d.plan.Granted, e)
	}
}

// rebootOf is the reboot of the node that is not over, also where the ledger has to take it back first.
func (d *Draft) rebootOf(node string) *Reboot {
	for _, t := range d.plan.UnderWay() {
		if t.Entry.Node == node && t.Action != ReleaseEntry {
			return &t
		}
	}
	for _, n := range d.f.orphans {
		if n.Name == node {
			t := d.f.reboot(d.f.entry(n))
			return &t
		}
	}
	return nil
}
