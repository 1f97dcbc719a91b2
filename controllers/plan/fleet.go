package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/hours"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/plan/run"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Snapshot is everything that a decision about one policy reads, taken at one instant.
type Snapshot struct {
	Now time.Time
	// Policy is the policy to decide about. Its status is the ledger as last read.
	Policy *v1alpha1.RebootPolicy
	// Ledger is the ledger that counts for the policy.
	Ledger ledger.Ledger
	// Governor knows every policy of the cluster.
	Governor governor.Governor
	// Nodes are all nodes of the cluster, in any order: a node in the ledger may be governed by
	// another policy now. They are shared with other snapshots, so do not change them.
	Nodes []*record.Node
	// Window is the state of the policy's windows at Now.
	Window window.State
	// Schedule returns the state of the windows at any other time. Only forecasts use it.
	Schedule window.Schedule
	// WindowInvalid says what is wrong with windows or blackouts. If it is set, nothing is granted.
	WindowInvalid string
	// GatesInvalid names the expression of gates.objects that does not compile. If it is set,
	// nothing is granted.
	GatesInvalid string
	// Gates are the last results of the policy's gates. A gate is missing if it was not queried
	// lately.
	Gates []v1alpha1.GateStatus
	// Agents are the pods of the agents, or nil if they have not been read yet.
	Agents *report.Agents
	// Refused are the writes about granted reboots that the API server refused last, by node.
	Refused map[string]underway.Refusal
	// RebootInterval is the least time between a node's return to service and its next grant. 0
	// means no limit.
	RebootInterval time.Duration
	// Unread are the nodes that could not be read live. They keep their slots, because an entry is
	// released only after a live reading.
	Unread map[string]bool
}

// fleet is a snapshot sorted by what one policy has to do with each node.
type fleet struct {
	Snapshot
	name string
	// byName are the nodes that are looked up by name: those in the ledger, with an outstanding
	// grant, or in a conflict. They are few.
	byName map[string]*record.Node
	// governed are the nodes that this policy governs, except those at rest, in no order. There may
	// be thousands, so only the reported ones are sorted.
	governed []*record.Node
	// selected are all nodes that this policy governs, including those at rest.
	selected []*record.Node
	// conflicts are the nodes that several policies of the same priority select, this one among
	// them. The values are those policies.
	conflicts map[string][]string
	// controlPlane are all control-plane nodes of the cluster, by name.
	controlPlane []*record.Node
	// entries are those of the ledger. orphans are the nodes with an outstanding grant that the
	// ledger has lost.
	entries ledger.Entries
	orphans []*record.Node
	// others are the nodes of other policies that the limit counts, too.
	others slots.Others
	// unlisted are nodes with an outstanding grant of this policy that neither its ledger nor its
	// selector has. The policy finishes or cancels each, and none of them takes a slot.
	unlisted []*record.Node
	// believedFrom is the time when the first record dated in the future becomes credible, on any
	// node, because its grant may be this policy's. It is zero if no record is.
	believedFrom time.Time
	// limits are the limits in nodes.
	limits slots.Limits
	// order sorts nodes by their turns.
	order queue.Order
	// gates are the gates of the policy, and pods are the agents' reports about the pods on its nodes.
	gates gates.Gates
	pods  gates.Pods
	// invalid says why the spec cannot be used, so that nothing is granted, or is nil. Admission
	// should have refused most such specs.
	invalid *block.Block
	halt    Halt
	// hours are the windows and blackouts.
	hours hours.Hours
	// conditions is the wanted annotation node-conditions of the governed nodes.
	conditions string
	attempts   record.Attempts
	// run holds the state of the run's hooks.
	run run.Hooks
}

// newFleet sorts a snapshot. If halt is nil, it is computed from all nodes of the snapshot.
func newFleet(s Snapshot, halt *Halt) *fleet {
	f := &fleet{
		Snapshot: s, name: s.Policy.Name, entries: s.Ledger.Entries(),
		hours: hours.Hours{Now: s.Now, Policy: s.Policy, Window: s.Window, Zone: s.Schedule.Zone(), Reserve: hours.Reserve(s.Policy)}, gates: gates.Of(s.Policy, s.Gates), pods: gates.PodsOf(s.Policy), attempts: record.Attempts{Policy: s.Policy, Now: s.Now, Interval: s.RebootInterval},
		conditions: protocol.FormatNodeConditions(&s.Policy.Spec),
		selected:   make([]*record.Node, 0, len(s.Nodes)), byName: map[string]*record.Node{}, conflicts: map[string][]string{},
	}
	rings, ringsErr := queue.RingsOf(s.Policy, s.Now)
	f.order = queue.Order{Rings: rings, Pods: f.pods, Attempts: f.attempts}
	numbers := record.NumbersOf(s.Nodes, max(s.Governor.Ledgers.Seq, s.Policy.Status.Seq))
	for _, n := range s.Nodes {
		f.add(n, numbers)
	}
	slices.SortFunc(f.controlPlane, byName)
	slices.SortFunc(f.orphans, func(a, b *record.Node) int { return cmp.Or(cmp.Compare(f.entry(a).Seq, f.entry(b).Seq), byName(a, b)) })
	slices.SortFunc(f.unlisted, byName)
	limits, limitsErr := slots.LimitsOf(s.Policy, s.Ledger, rings, f.selected, f.others.Governed)
	f.limits, f.invalid = limits, s.Ledger.Unusable
	if text := cmp.Or(textOf(limitsErr), textOf(ringsErr), s.WindowInvalid, s.GatesInvalid, s.Governor.Invalid[f.name]); text != "" {
		f.invalid = block.New(v1alpha1.ReasonInvalid, "%s", text)
	}
	if halt == nil {
		halt = new(haltOf(f.attempts, f.governed, f.reboots()))
	}
	f.halt, f.run = *halt, run.HooksOf(s.Policy, s.Now, s.Schedule.Zone())
	return f
}

// textOf returns the text of an error, or "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// reboots returns the granted reboots, in the order of the ledger.
func (f *fleet) reboots() []underway.Reboot {
	reboots := slices.Grow([]underway.Reboot(nil), len(f.entries.Own))
	for _, e := range f.entries.Own {
		reboots = append(reboots, f.reboot(e))
	}
	return reboots
}

// reboot decides what to do about one entry.
func (f *fleet) reboot(e v1alpha1.LedgerEntry) underway.Reboot {
	return underway.Pass{
		Now: f.Now, Policy: f.Policy, Zone: f.Schedule.Zone(), Ledger: f.Ledger, Refused: f.Refused, Unread: f.Unread, Checks: checks{f},
	}.Follow(e, f.byName[e.Node])
}

// paused reports whether the policy is paused and spec.urgent.all does not override that.
func (f *fleet) paused() bool { return f.Policy.Spec.PausedAt(f.Now) }

// windowState returns status.window. A halt takes precedence over a pause, and a pause over
// windows.
func (f *fleet) windowState() v1alpha1.WindowState {
	switch {
	case f.halt.Halted:
		return v1alpha1.WindowHalted
	case f.paused():
		return v1alpha1.WindowPaused
	case f.Window.Urgent:
		return v1alpha1.WindowUrgent
	case f.Window.Open && f.Window.Always:
		return v1alpha1.WindowAlways
	case f.Window.Open:
		return v1alpha1.WindowOpen
	}
	return v1alpha1.WindowClosed
}

func (f *fleet) dryRun() bool { return f.Policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun }

// add sorts a node by what the policy has to do with it, once its record is judged.
func (f *fleet) add(n *record.Node, numbers record.Numbers) {
	if f.entries.OwnOf(n.Name) == nil { // the ledger vouches for a record
		var from time.Time
		n, from = numbers.Judge(n, f.Now)
		f.believedFrom = timing.Earliest(f.believedFrom, from)
	}
	held := f.held(n)
	if held {
		f.byName[n.Name] = n
	}
	g := f.Governor.Govern(n)
	switch {
	case g.Policy == f.name:
		f.govern(n, held)
	case slices.Contains(g.Rivals, f.name):
		f.byName[n.Name], f.conflicts[n.Name] = n, g.Rivals
	case g.IsOf(f.Ledger.With):
		f.others.Add(n, g.Policy != "", len(f.Governor.Ledgers.Owners(n.Name)) > 0)
	}
	if n.ControlPlane {
		f.controlPlane = append(f.controlPlane, n)
	}
	if !n.Outstanding() || f.entries.Has(n.Name) || f.Ledger.HeldInAnother(n) || !f.Ledger.AnswersFor(n, g.Policy == f.name) {
		return
	}
	if g.Policy == f.name || f.selects(n) {
		f.orphans = append(f.orphans, n)
	} else {
		f.unlisted = append(f.unlisted, n)
	}
}

// govern counts a node that this policy governs, and keeps it if there may be something to report
// about it.
func (f *fleet) govern(n *record.Node, held bool) {
	f.selected = append(f.selected, n)
	if held || f.order.Rings.Holds(n, f.Now) || !n.AtRest(needsOf(f, n)) {
		f.governed = append(f.governed, n)
	}
}

// selects reports whether this policy selects the node, even if another policy governs it. A policy
// that is being deleted governs nothing but selects its nodes until it is gone.
func (f *fleet) selects(n *record.Node) bool {
	selector, err := f.Policy.Spec.NodeSelector.Selector()
	return err == nil && selector.Matches(labels.Set(n.Labels))
}

// held reports whether the node is in the middle of a reboot, under any policy.
func (f *fleet) held(n *record.Node) bool {
	return n.Outstanding() || f.entries.Has(n.Name)
}

// keepsBusy reports whether a node with a grant keeps its domain busy. A node that another policy
// governs does not: only the limit is shared. Neither does a node that moved to this policy during
// its reboot, or that several policies select by now, once the granting policy reports it as lost.
func (f *fleet) keepsBusy(n *record.Node) bool {
	if f.entries.OwnOf(n.Name) != nil || slices.Contains(f.orphans, n) {
		return true
	}
	_, conflicts := f.conflicts[n.Name]
	return (conflicts || f.Governor.Govern(n).Policy == f.name) && !n.ReportedLost()
}

func byName(a, b *record.Node) int { return cmp.Compare(a.Name, b.Name) }

// entry returns the ledger entry that an outstanding record should have.
func (f *fleet) entry(n *record.Node) v1alpha1.LedgerEntry { return f.tagged(n.Entry(n.Name), n) }

// tagged adds to the node's entry what the ledger holds besides the record: policy and ring.
func (f *fleet) tagged(e v1alpha1.LedgerEntry, n *record.Node) v1alpha1.LedgerEntry {
	e.Policy, e.Ring = f.Ledger.Tag(), f.order.Rings.Name(n)
	return record.Dated(e, f.Now)
}

func (f *fleet) domain(n *record.Node) string { return queue.Domain(f.Policy, n) }

// annotationsUntil returns when the autoscaler annotations are removed from a node whose grant is
// over, or zero if the grant has left none.
func (f *fleet) annotationsUntil(n *record.Node) time.Time {
	g := n.Grant
	if g == nil || len(g.Annotations) == 0 {
		return time.Time{}
	}
	ended := g.At.Time
	if g.State == protocol.GrantActive && n.In(g.Seq, protocol.PhaseAborted) {
		_, ended = f.attempts.Ended(n)
	}
	return ended.Add(f.Policy.Spec.AutoscalerGraceOrDefault())
}

// instant formats a time for status messages, in the time zone of the policy's first window.
func (s Snapshot) instant(t time.Time) string { return timing.InstantIn(t, s.Schedule.Zone()) }
