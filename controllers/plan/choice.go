package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/controllers/plan/hours"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/run"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// choice is a plan in the making: the snapshot, sorted by what one policy has to do with each node,
// what the policy says about it, and what is chosen so far. Checks do not change it.
type choice struct {
	Snapshot
	governor.Sorted
	rules

	// active are the governed nodes except those at rest, in no order. There may be thousands, so only
	// the reported ones are sorted.
	active []*record.Node

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

// rules holds what a policy says about the reboots of its nodes. Each field has its own package.
type rules struct {
	limits slots.Limits
	order  queue.Order
	gates  gates.Gates
	// pods are the agents' reports about the pods on the nodes.
	pods     gates.Pods
	hours    hours.Hours
	attempts record.Attempts
	// run holds the state of the run's hooks.
	run run.Hooks
	// conditions is the wanted annotation node-conditions of the governed nodes.
	conditions string
	// invalid says why the spec cannot be used, so that nothing is granted, or is nil. Admission
	// should have refused most such specs.
	invalid *block.Block
	halt    halt.State
}

// newChoice sorts a snapshot. If halted is nil, it is computed from all nodes of the snapshot.
func newChoice(s Snapshot, halted *halt.State) *choice {
	c := &choice{Snapshot: s, Sorted: s.Governor.Sort(s.Policy, s.Ledger, s.Nodes, s.Now), waiting: map[string]*Blocked{}}
	c.rules = rulesOf(s, c.Sorted)
	for _, n := range c.Governed {
		if c.Held(n) || c.order.Rings.Holds(n, s.Now) || !n.AtRest(needsOf(c, n)) {
			c.active = append(c.active, n)
		}
	}
	if halted == nil {
		halted = new(halt.Of(c.attempts, c.active, c.reboots()))
	}
	c.halt = *halted
	return c
}

// rulesOf returns the rules of the snapshot's policy, without the halt.
func rulesOf(s Snapshot, nodes governor.Sorted) rules {
	zone := s.Schedule.Zone()
	r := rules{
		gates: gates.Of(s.Policy, s.Gates), pods: gates.PodsOf(s.Policy), conditions: protocol.FormatNodeConditions(&s.Policy.Spec),
		hours:    hours.Hours{Now: s.Now, Policy: s.Policy, Window: s.Window, Zone: zone, Reserve: hours.Reserve(s.Policy)},
		attempts: record.Attempts{Policy: s.Policy, Now: s.Now, Interval: s.RebootInterval}, run: run.HooksOf(s.Policy, s.Now, zone), invalid: s.Ledger.Unusable,
	}
	rings, ringsErr := queue.RingsOf(s.Policy, s.Now)
	r.order = queue.Order{Rings: rings, Pods: r.pods, Attempts: r.attempts}
	var limitsErr error
	r.limits, limitsErr = slots.LimitsOf(s.Policy, s.Ledger, rings, nodes)
	if text := cmp.Or(textOf(limitsErr), textOf(ringsErr), s.WindowInvalid, s.GatesInvalid, s.Governor.Invalid[s.Policy.Name]); text != "" {
		r.invalid = block.New(v1alpha1.ReasonInvalid, "%s", text)
	}
	return r
}

// textOf returns the text of an error, or "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// reboots returns the granted reboots, in the order of the ledger.
func (c *choice) reboots() []underway.Reboot {
	reboots := slices.Grow([]underway.Reboot(nil), len(c.Entries.Own))
	for _, e := range c.Entries.Own {
		reboots = append(reboots, c.reboot(e))
	}
	return reboots
}

// reboot decides what to do about one entry.
func (c *choice) reboot(e v1alpha1.LedgerEntry) underway.Reboot {
	return underway.Pass{
		Now: c.Now, Policy: c.Policy, Zone: c.Schedule.Zone(), Ledger: c.Ledger, Refused: c.Refused, Unread: c.Unread, Checks: checks{c},
	}.Follow(e, c.ByName[e.Node])
}

// paused reports whether the policy is paused and spec.urgent.all does not override that.
func (c *choice) paused() bool { return c.Policy.Spec.PausedAt(c.Now) }

// windowState returns status.window. An invalid spec takes precedence over a halt, a halt over a
// pause, and a pause over windows.
func (c *choice) windowState() v1alpha1.WindowState {
	switch {
	case c.invalid != nil:
		return v1alpha1.WindowInvalid
	case c.halt.Halted:
		return v1alpha1.WindowHalted
	case c.paused():
		return v1alpha1.WindowPaused
	case c.Window.Urgent:
		return v1alpha1.WindowUrgent
	case c.Window.Open && c.Window.Always:
		return v1alpha1.WindowAlways
	case c.Window.Open:
		return v1alpha1.WindowOpen
	}
	return v1alpha1.WindowClosed
}

func (c *choice) dryRun() bool { return c.Policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun }

// entry returns the ledger entry that an outstanding record should have.
func (c *choice) entry(n *record.Node) v1alpha1.LedgerEntry { return c.tagged(n.Entry(n.Name), n) }

// tagged adds to the node's entry what the ledger holds besides the record: policy and ring.
func (c *choice) tagged(e v1alpha1.LedgerEntry, n *record.Node) v1alpha1.LedgerEntry {
	e.Policy, e.Ring = c.Ledger.Tag(), c.order.Rings.Name(n)
	return record.Dated(e, c.Now)
}

func (c *choice) domain(n *record.Node) string { return queue.Domain(c.Policy, n) }

// annotationsUntil returns when the autoscaler annotations are removed from a node whose grant is
// over, or zero if the grant has left none.
func (c *choice) annotationsUntil(n *record.Node) time.Time {
	g := n.Grant
	if g == nil || len(g.Annotations) == 0 {
		return time.Time{}
	}
	ended := g.At.Time
	if g.State == protocol.GrantActive && n.In(g.Seq, protocol.PhaseAborted) {
		_, ended = c.attempts.Ended(n)
	}
	return ended.Add(c.Policy.Spec.AutoscalerGraceOrDefault())
}

// needsOf returns the annotations that a governed node should show.
func needsOf(c *choice, n *record.Node) record.Needs {
	needs := record.Needs{Conditions: c.conditions}
	if most := record.MaxUptime(&c.Policy.Spec, n.Name); most > 0 {
		needs.MaxUptime = most.String()
	}
	return needs
}
