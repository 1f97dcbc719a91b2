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

// Decision is the wanted condition RebootPermitted of one node. If Status is empty, the node should
// not have the condition.
type Decision struct {
	Node    string
	Status  corev1.ConditionStatus
	Reason  v1alpha1.Reason
	Message string
	// ShortLived is true if the decision changes within seconds. It is then not written on the
	// node.
	ShortLived bool
	// MachineLost is true if the node is overdue in its reboot and not Ready. A node that is Ready
	// still runs the previous boot: an inhibitor may delay its reboot, so a health controller must
	// not power it off.
	MachineLost bool
	// RemovePlanned is true if condition MaintenancePlanned must be removed, because no reboot of
	// the node is granted any more.
	RemovePlanned bool
	// Then is the reason that will block a node which waits for a window, empty if none is known.
	// ThenMessage is its sentence.
	Then        v1alpha1.Reason
	ThenMessage string
	// Preflight is the wanted annotation preflight, the request to the agent about pods. It is
	// empty if the annotation should not exist.
	Preflight string
}

// decisions returns the wanted conditions RebootPermitted of the nodes that this policy answers
// for. A node whose grant is not published is still waiting: publishing writes True.
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
		if ok && !rebooting[name] && rivals[0] == d.f.name { // the first policy of a conflict reports for all of them
			decisions = append(decisions, is)
		}
	}
	sortDecisions(decisions)
	return decisions
}

// rebooting returns the decision about a node that is being rebooted. Its condition is True from
// publishing the grant until the reboot is over or the agent has withdrawn the need. The request
// about its pods is kept up to date until the agent begins, because the agent checks the pods again
// before that.
func (d *Draft) rebooting(t Reboot) (Decision, bool) {
	is := Decision{Node: t.Entry.Node, Status: corev1.ConditionTrue, Reason: t.Reason, Message: t.Message}
	switch {
	case t.Action == Wait && t.Reason == v1alpha1.ReasonWaitingForHook && !t.Rebooting():
		is.Status = corev1.ConditionFalse
	case t.Action != Wait || !t.Node.Shows(t.Entry.Seq) || t.Node.Grant.State != protocol.GrantActive:
		return Decision{}, false
	case t.Reason == v1alpha1.ReasonGranted && !t.Node.NeedsReboot() && t.Node.Permitted == nil:
		return Decision{}, false // the agent has removed both conditions in one write
	case t.Reason == v1alpha1.ReasonGranted:
		is.Message = GrantedMessage(d.f.name, t.Entry.Seq)
	}
	is.MachineLost = t.Reason == v1alpha1.ReasonRebootTimedOut && !t.Node.Ready
	if is.Preflight = t.Node.Preflight; !t.begun() {
		is.Preflight = d.f.pods.annotation
	}
	return is, true
}

// RebootFailed returns the wanted condition RebootFailed. It is True while the machine is overdue
// from a granted reboot, with the reason and message of RebootPermitted. If Status is empty, the
// node should not have the condition.
func (d Decision) RebootFailed() Decision {
	if !d.MachineLost {
		return Decision{Node: d.Node}
	}
	return Decision{Node: d.Node, Status: corev1.ConditionTrue, Reason: d.Reason, Message: d.Message}
}

// GrantedMessage returns the message of RebootPermitted=True.
func GrantedMessage(policy string, seq int64) string {
	return fmt.Sprintf("granted by policy %s, number %d", policy, seq)
}

// decision returns the decision about a node without a granted reboot. If o, the reason to wait, is
// nil, the node's new grant is the decision.
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
	is.Preflight = d.f.pods.requestFor(o, d.f.Now)
	return is, true
}

// waits returns the decision that the node waits because of o.
func (n *Node) waits(o *Blocked) Decision {
	is := Decision{
		Node: n.Name, Status: corev1.ConditionFalse, Reason: o.Reason, Message: o.Message, ShortLived: o.shortLived, RemovePlanned: n.Planned != nil,
	}
	if o.then != nil {
		is.Then, is.ThenMessage = o.then.Reason, o.then.Message
	}
	return is
}

// noAnswer returns the decision that removes the manager's conditions, and whether the node has
// any.
func (n *Node) noAnswer() (Decision, bool) {
	return Decision{Node: n.Name, RemovePlanned: n.Planned != nil}, n.showsAnswer()
}

// ConflictMessage returns the message of a node that several policies select with the same
// priority.
func ConflictMessage(rivals []string) string {
	return fmt.Sprintf("policies %s select the node with the same priority; raise spec.priority of one", list(rivals))
}

// Ungoverned decides about nodes that no policy selects, and about those whose reboot no policy
// finishes. Other nodes in the middle of a reboot are left to the policy that granted it.
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

// sortDecisions sorts by node name. If one pass cannot write all decisions, the next one continues
// at the same place.
func sortDecisions(decisions []Decision) {
	slices.SortFunc(decisions, func(a, b Decision) int { return cmp.Compare(a.Node, b.Node) })
}

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
	Reboot *Reboot
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

// Responsible returns the policy whose plan answers for a node, or "". That is the policy that
// holds the node in its ledger or has granted its reboot. Otherwise it is the one that governs the
// node, or the first policy of a conflict.
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

// Explain explains one node, from the snapshot of the responsible policy, or from one without a
// policy. It returns the zero Explanation if the node needs no reboot or is not in the snapshot.
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

// overruled returns the message of a check that passes only because something is ignored: what
// would block, which field ignores it, and until when. It returns "" if nothing is ignored.
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

// overruledOnNode is overruled for pods and for the agent's own reasons.
func overruledOnNode(f *fleet, reason v1alpha1.Reason, n *Node) string {
	if reason == v1alpha1.ReasonUndrainablePod {
		if r := f.pods.result(n); r != nil && r.Closed != nil && f.tries(n) > 0 {
			return "cannot be drained: " + named(r.Closed) + "; tried after the nodes that can be drained (spec.drain.closedBudgets)"
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
