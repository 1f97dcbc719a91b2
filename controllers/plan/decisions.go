package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
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
	// Endless is true if the node waits for a window, and none opens within 400 days, or for a ring
	// that only a person can get going again.
	Endless bool
	// Preflight is the wanted annotation preflight, the request to the agent about pods. It is
	// empty if the annotation should not exist.
	Preflight string
}

// decisions returns the wanted conditions RebootPermitted of the nodes that this policy answers
// for. A node whose grant is not published is still waiting: publishing writes True.
func decisions(c *choice) []Decision {
	var decisions []Decision
	busy := map[string]bool{}
	for _, t := range c.plan.UnderWay() {
		busy[t.Entry.Node] = true
		if is, ok := rebooting(c, t); ok {
			decisions = append(decisions, is)
		}
	}
	for _, n := range c.active {
		if is, ok := decision(c, n, c.waiting[n.Name]); ok && !busy[n.Name] {
			decisions = append(decisions, is)
		}
	}
	for name, rivals := range c.Conflicts {
		is, ok := decision(c, c.ByName[name], &Blocked{Block: *block.New(v1alpha1.ReasonPolicyConflict, "%s", governor.ConflictMessage(rivals))})
		if ok && !busy[name] && rivals[0] == c.Policy.Name { // the first policy of a conflict reports for all of them
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
func rebooting(c *choice, t underway.Reboot) (Decision, bool) {
	is := Decision{Node: t.Entry.Node, Status: corev1.ConditionTrue, Reason: t.Reason, Message: t.Message}
	switch {
	case t.Action == underway.Wait && t.Reason == v1alpha1.ReasonWaitingForHook && !t.Rebooting():
		is.Status = corev1.ConditionFalse
	case t.Action != underway.Wait || !t.Node.Shows(t.Entry.Seq) || t.Node.Grant.State != protocol.GrantActive:
		return Decision{}, false
	case t.Reason == v1alpha1.ReasonGranted && !t.Node.NeedsReboot() && t.Node.Permitted == nil:
		return Decision{}, false // the agent has removed both conditions in one write
	case t.Reason == v1alpha1.ReasonGranted:
		is.Message = GrantedMessage(c.Policy.Name, t.Entry.Seq)
	}
	is.MachineLost = machineLost(t)
	if is.Preflight = t.Node.Preflight; !t.Begun() {
		is.Preflight = c.pods.Preflight()
	}
	return is, true
}

// isLost reports whether the machine of a node has not come back from its reboot in time.
func isLost(c *choice, n *record.Node) bool {
	return slices.ContainsFunc(c.plan.UnderWay(), func(t underway.Reboot) bool { return t.Entry.Node == n.Name && machineLost(t) })
}

// machineLost reports whether the machine of a reboot has not come back in time. A node that is Ready still runs
// the boot before.
func machineLost(t underway.Reboot) bool {
	return t.Reason == v1alpha1.ReasonRebootTimedOut && t.Node != nil && !t.Node.Ready
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
func decision(c *choice, n *record.Node, o *Blocked) (Decision, bool) {
	switch {
	case c.Held(n):
		return Decision{}, false
	case !n.NeedsReboot():
		return withoutAnswer(n)
	case o == nil:
		return Decision{}, false
	}
	is := waits(n, o)
	is.Endless = o.Endless || (o.check == v1alpha1.ReasonBlackout || o.check == v1alpha1.ReasonWindowClosed) && o.Until.IsZero()
	is.Preflight = c.pods.Request(n, o.reaches(podChecks) || record.Reached(o.looksFrom(), c.Now))
	return is, true
}

// waits returns the decision that the node waits because of o.
func waits(n *record.Node, o *Blocked) Decision {
	is := Decision{
		Node: n.Name, Status: corev1.ConditionFalse, Reason: o.Reason, Message: o.Message, ShortLived: o.ShortLived, RemovePlanned: n.Planned != nil,
	}
	if o.then != nil {
		is.Then, is.ThenMessage = o.then.Reason, o.then.Message
	}
	return is
}

// withoutAnswer returns the decision that removes the manager's conditions, and whether the node has
// any.
func withoutAnswer(n *record.Node) (Decision, bool) {
	return Decision{Node: n.Name, RemovePlanned: n.Planned != nil}, n.ShowsAnswer()
}

// Ungoverned decides about nodes that no policy selects, and about those whose reboot no policy
// finishes. Other nodes in the middle of a reboot are left to the policy that granted it.
func Ungoverned(g governor.Governor, nodes []*record.Node) []Decision {
	var decisions []Decision
	for _, n := range nodes {
		switch o := g.Abandons(n); {
		case o != nil:
			decisions = append(decisions, Decision{
				Node: n.Name, Status: corev1.ConditionFalse, Reason: o.Reason, Message: o.Message, Preflight: n.Preflight,
			})
		case !g.Leaves(n):
		case n.NeedsReboot():
			decisions = append(decisions, waits(n, &Blocked{Block: *block.New(v1alpha1.ReasonNoPolicy, "no RebootPolicy selects this node%s", g.Unread())}))
		default:
			if is, ok := withoutAnswer(n); ok {
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
