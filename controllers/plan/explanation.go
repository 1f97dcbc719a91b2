package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// Result is the result of a check.
type Result string

const (
	// Passed means the check passes.
	Passed Result = "Passed"
	// Blocks means the check blocks the node.
	Blocks Result = "Blocks"
	// NotReached means an earlier check blocks the node.
	NotReached Result = "NotReached"
)

// Outcome is the result of one check of the fixed order for one node.
type Outcome struct {
	// Check is the check's entry in docs/reasons.md.
	Check v1alpha1.Reason
	// Result is Passed, Blocks or NotReached.
	Result Result
	// Message says why the check passes or blocks. It is empty if the check was not reached.
	Message string
}

// Explanation says why one node is not rebooted now, or how far its reboot is. It comes from the
// same checks as a Plan.
type Explanation struct {
	// Decision is the wanted condition RebootPermitted. Its Status is empty if the node should not
	// have one, or if publishing a grant will write it.
	Decision Decision
	// Until is the time when the block ends by itself, or zero if unknown or if somebody has to
	// act.
	Until time.Time
	// Reboot is the granted reboot, or nil if the node holds no grant.
	Reboot *underway.Reboot
	// Due is true if no check blocks, so the manager's next pass grants the reboot.
	Due bool
	// Checks holds every check in order. It is nil if none ran, because the node needs no reboot or
	// holds a grant.
	Checks []Outcome
}

// before lists the checks that come before those of any policy.
var before = []check{
	{reason: v1alpha1.ReasonNoPolicy, passed: "a policy selects the node"},
	{reason: v1alpha1.ReasonPolicyConflict, passed: "one policy has the highest priority"},
}

// Explain explains one node, from the snapshot of the responsible policy, or from one without a
// policy. It returns the zero Explanation if the node needs no reboot or is not in the snapshot.
func Explain(s Snapshot, node string) Explanation {
	if s.Policy == nil {
		return ungoverned(decisionFor(Ungoverned(s.Governor, s.Nodes), node))
	}
	c := choose(s)
	e := Explanation{Decision: decisionFor(c.plan.Decisions, node), Reboot: rebootOf(c, node)}
	passed := func(check check) string { return cmp.Or(overruled(c, check.reason, node), check.passed) }
	switch o := c.waiting[node]; {
	case e.Reboot != nil:
	case o != nil:
		e.Until, e.Checks = o.Until, outcomes(o.check, o.Message, passed)
	case slices.ContainsFunc(c.plan.Ledger.Granted, func(g v1alpha1.LedgerEntry) bool { return g.Node == node }):
		e.Due, e.Checks = true, outcomes("", "", passed)
	default:
		return ungoverned(e.Decision)
	}
	return e
}

// rebootOf returns the node's reboot unless it is over, even if the ledger still has to take it
// back.
func rebootOf(c *choice, node string) *underway.Reboot {
	for _, t := range c.plan.UnderWay() {
		if t.Entry.Node == node && t.Action != underway.ReleaseEntry {
			return &t
		}
	}
	for _, n := range c.Orphans {
		if n.Name == node {
			t := c.reboot(c.entry(n))
			return &t
		}
	}
	return nil
}

// ungoverned explains a node that no policy governs, or that several select.
func ungoverned(d Decision) Explanation {
	if d.Status != corev1.ConditionFalse {
		return Explanation{Decision: d}
	}
	return Explanation{Decision: d, Checks: outcomes(d.Reason, d.Message, func(c check) string { return c.passed })}
}

// overruled returns the message of a check that passes only because something is ignored: what
// would block, which field ignores it, and until when. It returns "" if nothing is ignored.
func overruled(c *choice, reason v1alpha1.Reason, name string) string {
	i := slices.IndexFunc(c.active, func(n *record.Node) bool { return n.Name == name })
	if i < 0 {
		return ""
	}
	n, spec, w := c.active[i], &c.Policy.Spec, c.Window
	urgently := func(what string, ignores v1alpha1.UrgentIgnore) string {
		all := spec.UrgentOrDefault().All
		if !all.Ignores(ignores, c.Now) {
			return ""
		}
		return what + " until " + c.instant(all.Until.Time)
	}
	switch reason {
	case v1alpha1.ReasonPaused:
		if spec.Pause.InForce(c.Now) {
			return urgently("the policy is paused; spec.urgent.all ignores that", v1alpha1.UrgentIgnoresPause)
		}
	case v1alpha1.ReasonBlackout:
		if w.Blackout {
			return "blackout " + w.Name + " is in force; " + c.hours.Ignores(n, v1alpha1.UrgentIgnoresBlackouts)
		}
		return urgently("spec.urgent.all ignores blackouts", v1alpha1.UrgentIgnoresBlackouts)
	case v1alpha1.ReasonWindowClosed, v1alpha1.ReasonWindowTooShort:
		switch {
		case !w.Open:
			return "no window is open; " + c.hours.Ignores(n, v1alpha1.UrgentIgnoresWindows)
		case reason == v1alpha1.ReasonWindowTooShort && !w.ClosesAt.IsZero() && c.Now.Add(c.hours.Reserve).After(w.ClosesAt):
			return "the window closes " + c.instant(w.ClosesAt) + "; " + c.hours.Ignores(n, v1alpha1.UrgentIgnoresWindows)
		}
		return urgently("spec.urgent.all ignores windows", v1alpha1.UrgentIgnoresWindows)
	default:
		return overruledOnNode(c, reason, n)
	}
	return ""
}

// overruledOnNode is overruled for pods and for the agent's own reasons.
func overruledOnNode(c *choice, reason v1alpha1.Reason, n *record.Node) string {
	if reason == v1alpha1.ReasonUndrainablePod {
		if closed := c.pods.Closed(n); closed != "" && c.pods.Tries(n) > 0 {
			return "cannot be drained: " + closed + "; tried after the nodes that can be drained (spec.drain.closedBudgets)"
		}
		return ""
	}
	for _, o := range n.BlockedBy {
		if field := ignoredBy(c.Policy, reason); o.Reason == reason && field != "" {
			return o.Message + "; spec.reboot." + field + " ignores that"
		}
	}
	return ""
}

func decisionFor(decisions []Decision, node string) Decision {
	if i := slices.IndexFunc(decisions, func(d Decision) bool { return d.Node == node }); i >= 0 {
		return decisions[i]
	}
	return Decision{}
}

// outcomes returns the whole order with the one check that blocks, or with none if blocking is
// empty. passed returns the message of a check that passes.
func outcomes(blocking v1alpha1.Reason, message string, passed func(check) string) []Outcome {
	all := slices.CompactFunc(slices.Concat(before, inOrder), func(a, b check) bool { return a.reason == b.reason })
	list, result := make([]Outcome, 0, len(all)), Passed
	for _, c := range all {
		o := Outcome{Check: c.reason, Result: result}
		switch {
		case c.reason == blocking:
			o.Result, o.Message, result = Blocks, message, NotReached
		case result == Passed:
			o.Message = passed(c)
		}
		list = append(list, o)
	}
	return list
}
