package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// maxNames is how many names a status lists for one reason, and a message at all.
const maxNames = 5

// count sums the plan up for status and metrics.
func (d *Draft) count() {
	p, c := &d.plan, &d.plan.Counts
	*c = v1alpha1.NodeCounts{
		Selected: int32(len(d.f.selected)), Reporting: int32(d.f.agents.reporting), Permitted: int32(len(p.Ledger())), Unavailable: int32(len(d.slots.used)),
	}
	if p.Deadlines != nil {
		c.Overdue = p.Deadlines.Passed
	}
	failed := map[string]bool{}
	for _, n := range d.f.governed {
		if n.NeedsReboot() {
			c.RebootRequired++
		}
		if n.NeedsReboot() && (n.failed() || n.hookRefused()) {
			failed[n.Name] = true
		}
		if d.waiting[n.Name] != nil {
			p.OldestPending = timing.Earliest(p.OldestPending, n.WaitsSince())
		}
	}
	for _, t := range p.Reboots {
		if t.Rebooting() && t.Action != ReleaseEntry {
			c.Rebooting++
		}
		if !t.FailedAt.IsZero() {
			failed[t.Entry.Node] = true
		}
	}
	c.Failed = int32(len(failed))
	blocked := blockedBy(p.Decisions)
	for _, b := range blocked {
		c.Blocked += b.Count
	}
	p.Blocked = blocked[:min(len(blocked), maxBlocked)]
}

// maxBlocked is how many reasons a status holds. There are fewer, unless agents report unknown reasons.
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
		if len(blocked[i].Nodes) < maxNames {
			blocked[i].Nodes = append(blocked[i].Nodes, d.Node)
		}
	}
	slices.SortFunc(blocked, func(a, b v1alpha1.BlockedNodes) int {
		return cmp.Or(compareBools(passes[a.Reason], passes[b.Reason]), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return blocked
}

// passes are the reasons that need no action: they end by themselves, or a person has asked for them. In the status they come
// last, because `kubectl get` shows the first one only.
var passes = map[v1alpha1.Reason]bool{
	v1alpha1.ReasonNodePaused: true, v1alpha1.ReasonPaused: true, v1alpha1.ReasonBlackout: true, v1alpha1.ReasonWindowClosed: true,
	v1alpha1.ReasonWindowTooShort: true, v1alpha1.ReasonBackingOff: true, v1alpha1.ReasonRingWaits: true, v1alpha1.ReasonBlockingPod: true, v1alpha1.ReasonWaitingForHook: true,
	v1alpha1.ReasonControlPlaneGuard: true, v1alpha1.ReasonDomainBusy: true, v1alpha1.ReasonBudgetExhausted: true, v1alpha1.ReasonSpacing: true, v1alpha1.ReasonDryRun: true,
}

// next is the earliest instant at which time alone changes something.
func (d *Draft) next() time.Time {
	var next time.Time
	consider := func(instants ...time.Time) {
		for _, t := range instants {
			if t.After(d.f.Now) {
				next = timing.Earliest(next, t)
			}
		}
	}
	consider(d.f.Window.Next, d.f.agents.missedAt, d.f.run.until, resumedAt(d.f.Policy).Add(-clockOff))
	if deadlines := d.plan.Deadlines; deadlines != nil {
		consider(deadlines.Next)
	}
	if closes := d.f.Window.ClosesAt; !closes.IsZero() {
		consider(closes.Add(1 - d.f.reserve)) // the first instant at which the window is too short
	}
	if pause := d.f.Policy.Spec.Pause; pause != nil && pause.Until != nil {
		consider(pause.Until.Time)
	}
	if last := d.f.Policy.Status.LastRebootAt; last != nil {
		consider(last.Add(-clockOff))
	}
	for _, past := range d.f.Policy.Status.History {
		consider(past.EndedAt.Add(-clockOff))
	}
	for _, t := range d.plan.UnderWay() {
		consider(t.Until)
	}
	for _, o := range d.waiting {
		consider(o.Until)
	}
	for _, n := range d.f.governed {
		consider(n.credibleFrom(d.f.Now))
		if !d.f.held(n) {
			consider(d.f.annotationsUntil(n))
		}
	}
	for _, n := range d.f.byName {
		consider(n.credibleFrom(d.f.Now))
	}
	return next
}
