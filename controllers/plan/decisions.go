package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// maxNames is how many nodes status names for one reason.
const maxNames = 5

// decisions says what condition RebootPermitted should be on each node this policy answers for. A node whose bell has
// not rung is still waiting: the bell itself writes True.
func (d *draft) decisions() []Decision {
	var decisions []Decision
	flying := map[string]bool{}
	for _, t := range d.plan.UnderWay() {
		flying[t.Entry.Node] = true
		if is, ok := d.flying(t); ok {
			decisions = append(decisions, is)
		}
	}
	for _, n := range d.governed {
		if is, ok := d.decision(n); ok && !flying[n.Name] {
			decisions = append(decisions, is)
		}
	}
	for name, rivals := range d.conflicts {
		if is, ok := d.conflictDecision(d.byName[name], rivals); ok && !flying[name] {
			decisions = append(decisions, is)
		}
	}
	slices.SortFunc(decisions, func(a, b Decision) int { return cmp.Compare(a.Node, b.Node) })
	return decisions
}

// flying is what a node in flight should say. What was asked about its pods stands, and is brought up to date until the agent
// has begun: it looks once more before that.
func (d *draft) flying(t Flight) (Decision, bool) {
	is, ok := t.decision(d.name)
	if !ok {
		return is, false
	}
	is.Preflight = t.Node.Preflight
	if !t.begun() {
		is.Preflight = d.pods.annotation
	}
	return is, true
}

// begun tells whether the agent has used the grant.
func (t Flight) begun() bool { return t.Node.Progress != nil && t.Node.Progress.Seq >= t.Entry.Seq }

// decision is True from the bell until the grant is over, or the agent has withdrawn the need for it.
func (t Flight) decision(policy string) (Decision, bool) {
	if t.Action == Wait && t.Reason == v1alpha1.ReasonWaitingForHook && !t.Rebooting() {
		return Decision{Node: t.Entry.Node, Status: corev1.ConditionFalse, Reason: t.Reason, Message: t.Message}, true
	}
	if t.Action != Wait || !t.Node.Shows(t.Entry.Seq) || t.Node.Grant.State != v1alpha1.GrantActive {
		return Decision{}, false
	}
	d := Decision{Node: t.Entry.Node, Status: corev1.ConditionTrue, Reason: t.Reason, Message: t.Message}
	if d.Reason == v1alpha1.ReasonGranted {
		if !t.Node.NeedsReboot() && t.Node.Permitted == nil { // the agent has taken question and answer away in one write
			return Decision{}, false
		}
		d.Message = GrantedMessage(policy, t.Entry.Seq)
	}
	return d, true
}

// GrantedMessage is the message of RebootPermitted=True.
func GrantedMessage(policy string, seq int64) string {
	return fmt.Sprintf("granted by policy %s, number %d", policy, seq)
}

// decision is that about a node without a granted reboot.
func (d *draft) decision(n *Node) (Decision, bool) {
	switch o := d.waiting[n.Name]; {
	case o != nil:
		return Decision{
			Node: n.Name, Status: corev1.ConditionFalse, Reason: o.Reason, Message: o.Message, Brief: o.brief, Preflight: d.pods.requestFor(o),
		}, true
	case d.held(n) || n.NeedsReboot():
		return Decision{}, false
	}
	return Decision{Node: n.Name}, n.told()
}

// told tells whether something that is for nodes that need a reboot stands on the node.
func (n *Node) told() bool { return n.Permitted != nil || n.Preflight != "" }

// conflictDecision: the first of the rivals speaks for all of them.
func (d *draft) conflictDecision(n *Node, rivals []string) (Decision, bool) {
	if rivals[0] != d.name || d.held(n) {
		return Decision{}, false
	}
	if !n.NeedsReboot() {
		return Decision{Node: n.Name}, n.told()
	}
	return Decision{Node: n.Name, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonPolicyConflict, Message: conflictMessage(rivals)}, true
}

func conflictMessage(rivals []string) string {
	return fmt.Sprintf("policies %s select the node with the same priority; raise spec.priority of one", list(rivals))
}

// Ungoverned decides about nodes that no policy selects.
func Ungoverned(g Governor, nodes []*Node) []Decision {
	var decisions []Decision
	for _, n := range nodes {
		if at := g.Govern(n.Labels); at.Policy != "" || len(at.Rivals) > 0 || n.Outstanding() {
			continue
		}
		switch {
		case n.NeedsReboot():
			decisions = append(decisions, Decision{
				Node: n.Name, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoPolicy,
				Message: "no RebootPolicy selects this node" + g.unread(),
			})
		case n.told():
			decisions = append(decisions, Decision{Node: n.Name})
		}
	}
	return decisions
}

// unread names the policies that might select a node, if anybody could evaluate their selectors.
func (g Governor) unread() string {
	if len(g.Invalid) == 0 {
		return ""
	}
	return "; nobody can evaluate spec.nodeSelector of " + someOf(slices.Sorted(maps.Keys(g.Invalid)))
}

// count sums the plan up for status and metrics.
func (d *draft) count() (v1alpha1.NodeCounts, []v1alpha1.BlockedNodes) {
	c := v1alpha1.NodeCounts{
		Selected: int32(d.selected), Reporting: int32(d.agents.reporting),
		Permitted: int32(len(d.plan.Ledger())), Unavailable: int32(len(d.slots.used)),
	}
	failed := map[string]bool{}
	for _, n := range d.governed {
		if n.NeedsReboot() {
			c.RebootRequired++
		}
		if n.NeedsReboot() && (n.failed() || n.hookRefused()) {
			failed[n.Name] = true
		}
	}
	for _, t := range d.plan.Flights {
		if t.Rebooting() && t.Action != ReleaseEntry {
			c.Rebooting++
		}
		if !t.FailedAt.IsZero() {
			failed[t.Entry.Node] = true
		}
	}
	c.Failed = int32(len(failed))
	blocked := blockedBy(d.plan.Decisions)
	for _, b := range blocked {
		c.Blocked += b.Count
	}
	return c, blocked[:min(len(blocked), maxBlocked)]
}

// maxBlocked is how many reasons a status holds. There are fewer, unless agents make up their own.
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

// passes are the reasons that need nobody: they end by themselves, or are what somebody has asked for. In the status they come
// last, because `kubectl get` shows the first one only.
var passes = map[v1alpha1.Reason]bool{
	v1alpha1.ReasonNodePaused: true, v1alpha1.ReasonPaused: true, v1alpha1.ReasonBlackout: true, v1alpha1.ReasonWindowClosed: true,
	v1alpha1.ReasonWindowTooShort: true, v1alpha1.ReasonBackingOff: true, v1alpha1.ReasonBlockingPod: true, v1alpha1.ReasonWaitingForHook: true,
	v1alpha1.ReasonControlPlaneGuard: true, v1alpha1.ReasonDomainBusy: true, v1alpha1.ReasonBudgetExhausted: true, v1alpha1.ReasonDryRun: true,
}

// oldestPending is since when the node has waited that has waited longest.
func (d *draft) oldestPending() time.Time {
	var oldest time.Time
	for _, n := range d.governed {
		if d.waiting[n.Name] != nil && (oldest.IsZero() || n.WaitsSince().Before(oldest)) {
			oldest = n.WaitsSince()
		}
	}
	return oldest
}

// next is the earliest instant at which time alone changes something.
func (d *draft) next() time.Time {
	var next time.Time
	consider := func(t time.Time) {
		if t.After(d.Now) {
			next = timing.Earliest(next, t)
		}
	}
	consider(d.Window.Next)
	consider(d.agents.missedAt)
	if closes := d.Window.ClosesAt; !closes.IsZero() {
		consider(closes.Add(1 - d.reserve)) // the first instant at which the window is too short
	}
	if pause := d.Policy.Spec.Pause; pause != nil && pause.Until != nil {
		consider(pause.Until.Time)
	}
	for _, t := range d.plan.UnderWay() {
		consider(t.Until)
	}
	for _, o := range d.waiting {
		consider(o.Until)
	}
	for _, n := range d.governed {
		consider(n.credibleFrom(d.Now))
	}
	for _, n := range d.byName {
		consider(n.credibleFrom(d.Now))
	}
	return next
}
