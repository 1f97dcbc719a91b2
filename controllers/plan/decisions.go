package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Decision is what condition RebootPermitted of one node should be. An empty Status means there should be none.
type Decision struct {
	Node    string
	Status  corev1.ConditionStatus
	Reason  v1alpha1.Reason
	Message string
	// ShortLived reports whether the answer changes within seconds: it is not written on the node.
	ShortLived bool
	// MachineLost reports that the node is overdue in its reboot, and not Ready. One that is Ready still runs the previous boot. A
	// health controller must not power it off, because an inhibitor may hold the reboot up.
	MachineLost bool
	// RemovePlanned reports that condition MaintenancePlanned has to go: no reboot of the node is granted any more.
	RemovePlanned bool
	// Preflight is what the node's agent should be asked about its pods: annotation preflight. Empty: nothing.
	Preflight string
}

// decisions states what condition RebootPermitted should be on each node this policy answers for. A node whose grant
// is not published is still waiting: publishing it writes True.
func (d *Draft) decisions() []Decision {
	var decisions []Decision
	rebooting := map[string]bool{}
	for _, t := range d.plan.UnderWay() {
		rebooting[t.Entry.Node] = true
		if is, ok := d.rebooting(t); ok {
			decisions = append(decisions, is)
		}
	}
	for _, n := range d.f.governed {
		if is, ok := d.decision(n, d.waiting[n.Name]); ok && !rebooting[n.Name] {
			decisions = append(decisions, is)
		}
	}
	for name, rivals := range d.f.conflicts {
		is, ok := d.decision(d.f.byName[name], blocked(v1alpha1.ReasonPolicyConflict, "%s", ConflictMessage(rivals)))
		if ok && !rebooting[name] && rivals[0] == d.f.name { // the first of the rivals answers for all of them
			decisions = append(decisions, is)
		}
	}
	sortDecisions(decisions)
	return decisions
}

// rebooting is what a node that is being rebooted should report. It is True from when the grant is published until it is over, or the
// agent has withdrawn the need for it. The request about its pods stays, and is kept up to date until the agent begins. The agent
// looks at the pods once more before that.
func (d *Draft) rebooting(t Reboot) (Decision, bool) {
	is := Decision{Node: t.Entry.Node, Status: corev1.ConditionTrue, Reason: t.Reason, Message: t.Message}
	switch {
	case t.Action == Wait && t.Reason == v1alpha1.ReasonWaitingForHook && !t.Rebooting():
		is.Status = corev1.ConditionFalse
	case t.Action != Wait || !t.Node.Shows(t.Entry.Seq) || t.Node.Grant.State != protocol.GrantActive:
		return Decision{}, false
	case t.Reason == v1alpha1.ReasonGranted && !t.Node.NeedsReboot() && t.Node.Permitted == nil:
		return Decision{}, false // the agent has taken request and answer away in one write
	case t.Reason == v1alpha1.ReasonGranted:
		is.Message = GrantedMessage(d.f.name, t.Entry.Seq)
	}
	is.MachineLost = t.Reason == v1alpha1.ReasonRebootTimedOut && !t.Node.Ready
	if is.Preflight = t.Node.Preflight; !t.begun() {
		is.Preflight = d.f.pods.annotation
	}
	return is, true
}

// RebootFailed is what condition RebootFailed of the node should be. It is True while its machine is not back in time from a granted
// reboot, with reason and message of RebootPermitted. An empty Status: there should be none.
func (d Decision) RebootFailed() Decision {
	if !d.MachineLost {
		return Decision{Node: d.Node}
	}
	return Decision{Node: d.Node, Status: corev1.ConditionTrue, Reason: d.Reason, Message: d.Message}
}

// GrantedMessage is the message of RebootPermitted=True.
func GrantedMessage(policy string, seq int64) string {
	return fmt.Sprintf("granted by policy %s, number %d", policy, seq)
}

// decision is that about a node without a granted reboot, and why it waits. Nil: its grant is the answer.
func (d *Draft) decision(n *Node, o *Blocked) (Decision, bool) {
	switch {
	case d.f.held(n):
		return Decision{}, false
	case !n.NeedsReboot():
		return n.noAnswer()
	case o == nil:
		return Decision{}, false
	}
	is := n.waits(o)
	is.Preflight = d.f.pods.requestFor(o)
	return is, true
}

// waits is that a node has to wait.
func (n *Node) waits(o *Blocked) Decision {
	return Decision{
		Node: n.Name, Status: corev1.ConditionFalse, Reason: o.Reason, Message: o.Message, ShortLived: o.shortLived, RemovePlanned: n.Planned != nil,
	}
}

// noAnswer is that a node shows no answer any more, and whether it shows one.
func (n *Node) noAnswer() (Decision, bool) {
	return Decision{Node: n.Name, RemovePlanned: n.Planned != nil}, n.showsAnswer()
}

// ConflictMessage states why a node waits that several policies select with the same priority.
func ConflictMessage(rivals []string) string {
	return fmt.Sprintf("policies %s select the node with the same priority; raise spec.priority of one", list(rivals))
}

// Ungoverned decides about nodes that no policy selects, and those whose reboot no policy sees to its end. About others in the middle
// of a reboot the policy decides that granted it.
func Ungoverned(g Governor, nodes []*Node) []Decision {
	var decisions []Decision
	for _, n := range nodes {
		switch o := g.abandons(n); {
		case o != nil:
			decisions = append(decisions, Decision{
				Node: n.Name, Status: corev1.ConditionFalse, Reason: o.Reason, Message: o.Message, Preflight: n.Preflight,
			})
		case !g.leaves(n):
		case n.NeedsReboot():
			decisions = append(decisions, n.waits(blocked(v1alpha1.ReasonNoPolicy, "no RebootPolicy selects this node%s", g.unread())))
		default:
			if is, ok := n.noAnswer(); ok {
				decisions = append(decisions, is)
			}
		}
	}
	sortDecisions(decisions)
	return decisions
}

// sortDecisions puts them in the order of the nodes' names: where one pass cannot write all, the next one begins where it ended.
func sortDecisions(decisions []Decision) {
	slices.SortFunc(decisions, func(a, b Decision) int { return cmp.Compare(a.Node, b.Node) })
}

// Result is how a check went.
type Result string

const (
	// Passed means the check passes.
	Passed Result = "Passed"
	// Blocks means the check blocks the node.
	Blocks Result = "Blocks"
	// NotReached means an earlier check blocks the node.
	NotReached Result = "NotReached"
)

// Outcome is how one check of the fixed order went for one node.
type Outcome struct {
	// Check is the check's reason in docs/reasons.md.
	Check v1alpha1.Reason
	// Result is Passed, Blocks or NotReached.
	Result Result
	// Message states what is well, or what blocks the node. Empty: not reached.
	Message string
}

// Explanation is why one node is not rebooted now, or how far its reboot is. It comes from the same checks as a Plan.
type Explanation struct {
	// Decision is what condition RebootPermitted should be. An empty Status: there should be none, or the grant that is
	// due writes it.
	Decision Decision
	// Until is the instant at which it ends by itself. Zero: none, or it needs an action.
	Until time.Time
	// Reboot is the granted reboot. Nil: the node holds no grant.
	Reboot *Reboot
	// Due reports that no check blocks: the manager's next pass grants the reboot.
	Due bool
	// Checks is every check in its order. Nil: none was asked, as the node needs no reboot or holds a grant.
	Checks []Outcome
}

// before are the checks that come before those of any policy.
var before = []check{
	{reason: v1alpha1.ReasonNoPolicy, passed: "a policy selects the node"},
	{reason: v1alpha1.ReasonPolicyConflict, passed: "one policy has the highest priority"},
}

// Responsible is the policy whose plan answers for a node. It holds the node in its ledger or has granted its reboot. Otherwise it
// governs the node, or is the first of its rivals. Empty: none.
func Responsible(policies []v1alpha1.RebootPolicy, g Governor, n *Node) string {
	for i := range policies {
		if e := slices.IndexFunc(policies[i].Status.Grants, func(e v1alpha1.LedgerEntry) bool { return e.Node == n.Name }); e >= 0 {
			return g.OwnerOf(policies[i].Name, policies[i].Status.Grants[e])
		}
	}
	if n.Grant != nil && n.Outstanding() && g.knows(n.Grant.Policy) {
		return n.Grant.Policy
	}
	at := g.Govern(n)
	if len(at.Rivals) > 0 {
		return at.Rivals[0]
	}
	return at.Policy
}

// Explain answers for one node, from the snapshot of the policy that is responsible for it, or one without a policy. The
// zero Explanation: there is nothing to report, as the node needs no reboot or is not in the snapshot.
func Explain(s Snapshot, node string) Explanation {
	if s.Policy == nil {
		return ungoverned(decisionFor(Ungoverned(s.Governor, s.Nodes), node))
	}
	d := Begin(s)
	d.Complete()
	e := Explanation{Decision: decisionFor(d.plan.Decisions, node), Reboot: d.rebootOf(node)}
	passed := func(c check) string { return cmp.Or(overruled(d.f, c.reason, node), c.passed) }
	switch o := d.waiting[node]; {
	case e.Reboot != nil:
	case o != nil:
		e.Until, e.Checks = o.Until, outcomes(o.check, o.Message, passed)
	case slices.ContainsFunc(d.plan.Granted, func(g v1alpha1.LedgerEntry) bool { return g.Node == node }):
		e.Due, e.Checks = true, outcomes("", "", passed)
	default:
		return ungoverned(e.Decision)
	}
	return e
}

// ungoverned explains a node that no policy governs, or that several select.
func ungoverned(d Decision) Explanation {
	if d.Status != corev1.ConditionFalse {
		return Explanation{Decision: d}
	}
	return Explanation{Decision: d, Checks: outcomes(d.Reason, d.Message, func(c check) string { return c.passed })}
}

// overruled states of a check that passes what would block the node, by what that is ignored, and until when. Empty: nothing is ignored.
func overruled(f *fleet, reason v1alpha1.Reason, node string) string {
	i := slices.IndexFunc(f.governed, func(n *Node) bool { return n.Name == node })
	if i < 0 {
		return ""
	}
	n, spec, w := f.governed[i], &f.Policy.Spec, f.Window
	urgently := func(what string, ignores v1alpha1.UrgentIgnore) string {
		all := spec.UrgentOrDefault().All
		if !all.Ignores(ignores, f.Now) {
			return ""
		}
		return what + " until " + f.instant(all.Until.Time)
	}
	switch reason {
	case v1alpha1.ReasonPaused:
		if spec.Pause.InForce(f.Now) {
			return urgently("the policy is paused; spec.urgent.all ignores that", v1alpha1.UrgentIgnoresPause)
		}
	case v1alpha1.ReasonBlackout:
		if w.Blackout {
			return "blackout " + w.Name + " is in force; " + ignoresHours(f, n, v1alpha1.UrgentIgnoresBlackouts)
		}
		return urgently("spec.urgent.all ignores blackouts", v1alpha1.UrgentIgnoresBlackouts)
	case v1alpha1.ReasonWindowClosed, v1alpha1.ReasonWindowTooShort:
		switch {
		case !w.Open:
			return "no window is open; " + ignoresHours(f, n, v1alpha1.UrgentIgnoresWindows)
		case reason == v1alpha1.ReasonWindowTooShort && !w.ClosesAt.IsZero() && f.Now.Add(f.reserve).After(w.ClosesAt):
			return "the window closes " + f.instant(w.ClosesAt) + "; " + ignoresHours(f, n, v1alpha1.UrgentIgnoresWindows)
		}
		return urgently("spec.urgent.all ignores windows", v1alpha1.UrgentIgnoresWindows)
	default:
		return overruledOnNode(f, reason, n)
	}
	return ""
}

// overruledOnNode is overruled for what the agent reports.
func overruledOnNode(f *fleet, reason v1alpha1.Reason, n *Node) string {
	if reason == v1alpha1.ReasonUndrainablePod {
		if r := f.pods.result(n); r != nil && r.Closed != nil && f.tries(n) > 0 {
			return "cannot be drained: " + named(r.Closed) + "; tried after the nodes that can go (spec.drain.closedBudgets)"
		}
		return ""
	}
	for _, o := range n.BlockedBy {
		if field := ignoredBy(f.Policy, reason); o.Reason == reason && field != "" {
			return o.Message + "; spec.reboot." + field + " ignores that"
		}
	}
	return ""
}

// ignoresHours explains why windows or blackouts do not count for a node, and until when.
func ignoresHours(f *fleet, n *Node, hours v1alpha1.UrgentIgnore) string {
	from := IgnoredFrom(f.Policy, n, hours)
	if from.Equal(atOnce) {
		return "the urgent request ignores that until the node is rebooted"
	}
	return "spec.urgent.overdue ignores that since " + f.instant(from) + ", until the node is rebooted"
}

func decisionFor(decisions []Decision, node string) Decision {
	if i := slices.IndexFunc(decisions, func(d Decision) bool { return d.Node == node }); i >= 0 {
		return decisions[i]
	}
	return Decision{}
}

// outcomes is the whole order with the one check that blocks; empty: no check blocks. passed is the message of a check that passes.
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
