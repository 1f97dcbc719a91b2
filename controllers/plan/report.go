package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// report adds what is only shown, and when the plan changes by itself.
func (c *choice) report() {
	p := &c.plan
	p.Window = c.windowState()
	p.Conflicts = governor.Conflicts(c.Conflicts, func(name string) bool { return c.ByName[name].NeedsReboot() })
	if p.RunHooks != nil && c.run.Waits != nil {
		p.RunWaits = c.run.Waits.Message
	}
	p.Holders, p.Unavailable, p.Stall = c.slots.Holders(), c.slots.Unavailable(c.Nodes, guards(c)), stallOf(c)
	p.Failures, p.Silent, p.Ignored = failuresOf(c), silentNodes(c), ignoredConditions(c)
	p.Unexpected = unexpected(c)
	agents := report.CountAgents(c.Agents, c.Now)
	for _, n := range c.Governed {
		agents.Add(n, c.Held(n))
	}
	p.Versions, p.Agents, p.Deadlines = report.Versions(c.Governed), agents.Report(len(c.Governed)), report.Deadlines(c.Policy, c.active, c.Now, c.Schedule.Zone())
	p.Withheld = c.Governor.Withheld(c.Nodes, c.Policy.Name)
	c.count(agents.Reporting)
	if len(p.Ledger.Own())+len(p.Blocked) > 0 {
		p.Batch = c.slots.Batch()
	}
	p.Next = c.next(agents.MissedAt)
}

// count computes the numbers for status and metrics, given the number of nodes that have reported
// whether they need a reboot.
func (c *choice) count(reporting int) {
	p, counts := &c.plan, &c.plan.Counts
	*counts = v1alpha1.NodeCounts{
		Selected: int32(len(c.Governed)), Reporting: int32(reporting), Granted: int32(len(p.Ledger.Own())), Unavailable: int32(c.slots.Used()),
	}
	if p.Deadlines != nil {
		counts.Overdue = p.Deadlines.Passed
	}
	failed := map[string]bool{}
	for _, n := range c.active {
		if n.NeedsReboot() {
			counts.RebootRequired++
		}
		if n.NeedsReboot() && (n.HasFailed() && !n.FailedTry() || n.HookRefused()) {
			failed[n.Name] = true
		}
		if c.waiting[n.Name] != nil {
			p.OldestPending = timing.Earliest(p.OldestPending, n.WaitsSince())
		}
	}
	for _, t := range p.Reboots {
		if t.Rebooting() && t.Action != underway.ReleaseEntry {
			counts.Rebooting++
		}
		if !t.FailedAt.IsZero() {
			failed[t.Entry.Node] = true
		}
	}
	counts.Failed = int32(len(failed))
	blocked := blockedBy(p.Decisions)
	for _, b := range blocked {
		counts.Blocked += b.Count
	}
	p.Blocked = blocked[:min(len(blocked), maxBlocked)]
}

// maxBlocked is the number of reasons in a status. There are fewer unless agents report unknown
// reasons.
const maxBlocked = 32

func blockedBy(decisions []Decision) []v1alpha1.BlockedNodes {
	at := map[v1alpha1.Reason]int{}
	var blocked []v1alpha1.BlockedNodes
	for _, d := range decisions {
		if d.Status != corev1.ConditionFalse {
			continue
		}
		i, ok := at[d.Reason]
		if !ok {
			i = len(blocked)
			at[d.Reason], blocked = i, append(blocked, v1alpha1.BlockedNodes{Reason: d.Reason})
		}
		blocked[i].Count++
		if len(blocked[i].Nodes) < message.Few {
			blocked[i].Nodes = append(blocked[i].Nodes, d.Node)
		}
	}
	slices.SortFunc(blocked, func(a, b v1alpha1.BlockedNodes) int {
		last := func(b v1alpha1.BlockedNodes) int { // 1 if the reason comes last
			if needNoAction[b.Reason] {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return blocked
}

// next returns the next time at which the plan changes by itself, given the time when the next node
// counts as missing its agent.
func (c *choice) next(missedAt time.Time) time.Time {
	var next time.Time
	consider := func(instants ...time.Time) {
		for _, t := range instants {
			if t.After(c.Now) {
				next = timing.Earliest(next, t)
			}
		}
	}
	consider(c.Window.Next, missedAt, c.run.Until, c.BelievedFrom, record.NextComes(c.Policy, c.Now))
	if deadlines := c.plan.Deadlines; deadlines != nil {
		consider(deadlines.Next)
	}
	if closes := c.Window.ClosesAt; !closes.IsZero() {
		consider(closes.Add(1 - c.hours.Reserve)) // the first instant at which the window is too short
	}
	if pause := c.Policy.Spec.Pause; pause != nil && pause.Until != nil {
		consider(pause.Until.Time)
	}
	for _, t := range c.plan.UnderWay() {
		consider(t.Until, t.HookPatienceEnds())
	}
	for _, u := range c.plan.Unavailable {
		consider(u.Since.Add(slots.Patience))
	}
	for _, o := range c.waiting {
		consider(o.Until, o.looksFrom(), o.StallsAt)
	}
	for _, failed := range c.plan.Failures {
		consider(failed.RetryAt)
	}
	for _, n := range c.active {
		consider(n.CredibleFrom(c.Now), c.downForLongAt(n))
		if !c.Held(n) {
			consider(c.annotationsUntil(n))
		}
	}
	for _, n := range c.ByName {
		consider(n.CredibleFrom(c.Now))
	}
	return next
}

// silentNodes returns the nodes that should have reported by now whether they need a reboot, by
// name.
func silentNodes(c *choice) []string {
	var names []string
	for _, n := range c.Governed {
		if n.Reports() || n.Windows || !n.Ready || n.Deleting || c.Held(n) || c.Now.Sub(n.ReadySince) < report.AgentGrace {
			continue
		}
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// waitsForGates reports whether a node depends on the gates, because no earlier check holds it
// back. Only then are gates queried.
func waitsForGates(p *Plan, waiting map[string]*Blocked) bool {
	if len(p.Ledger.Granted) > 0 || slices.ContainsFunc(p.UnderWay(), func(t underway.Reboot) bool { return t.NeedsGates }) {
		return true
	}
	for _, o := range waiting {
		if o.reaches(gateChecks) {
			return true
		}
	}
	return false
}

// ignoredConditions returns the nodes with a condition that lasts and does not count, by name.
func ignoredConditions(c *choice) []string {
	var names []string
	for _, n := range c.Governed {
		if n.RequiredReason == v1alpha1.ReasonConditionIgnored {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}
