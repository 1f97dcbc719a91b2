package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

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

// rebooting is what a node that is being rebooted should report: True from when the grant is published until it is over, or the agent has
// withdrawn the need for it. The question about its pods stays, and is kept up to date until the agent begins: the agent looks at the pods
// once more before that.
func (d *Draft) rebooting(t Reboot) (Decision, bool) {
	is := Decision{Node: t.Entry.Node, Status: corev1.ConditionTrue, Reason: t.Reason, Message: t.Message}
	switch {
	case t.Action == Wait && t.Reason == v1alpha1.ReasonWaitingForHook && !t.Rebooting():
		is.Status = corev1.ConditionFalse
	case t.Action != Wait || !t.Node.Shows(t.Entry.Seq) || t.Node.Grant.State != protocol.GrantActive:
		return Decision{}, false
	case t.Reason == v1alpha1.ReasonGranted && !t.Node.NeedsReboot() && t.Node.Permitted == nil:
		return Decision{}, false // the agent has taken question and answer away in one write
	case t.Reason == v1alpha1.ReasonGranted:
		is.Message = GrantedMessage(d.f.name, t.Entry.Seq)
	}
	is.MachineLost = t.Reason == v1alpha1.ReasonRebootTimedOut && !t.Node.Ready
	if is.Preflight = t.Node.Preflight; !t.begun() {
		is.Preflight = d.f.pods.annotation
	}
	return is, true
}

// RebootFailed is what condition RebootFailed of the node should be: True while its machine is not back in time from a granted
// reboot, with what condition RebootPermitted reports. An empty Status: there should be none.
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
		Node: n.Name, Status: corev1.ConditionFalse, Reason: o.Reason, Message: o.Message, ShortLived: o.shortLived, PlanOver: n.Planned != nil,
	}
}

// noAnswer is that a node shows no answer any more, and whether it shows one.
func (n *Node) noAnswer() (Decision, bool) {
	return Decision{Node: n.Name, PlanOver: n.Planned != nil}, n.showsAnswer()
}

// ConflictMessage states why a node waits that several policies select with the same priority.
func ConflictMessage(rivals []string) string {
	return fmt.Sprintf("policies %s select the node with the same priority; raise spec.priority of one", list(rivals))
}

// Ungoverned decides about nodes that no policy selects. Those in the middle of a reboot are the affair of the policy that granted it.
func Ungoverned(g Governor, nodes []*Node) []Decision {
	var decisions []Decision
	for _, n := range nodes {
		switch {
		case g.abandons(n):
			decisions = append(decisions, Decision{
				Node: n.Name, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoPolicy, Preflight: n.Preflight,
				Message: "the policy that granted the reboot of this node does not exist any more, and no other one selects it: nothing puts it back in service, " +
					"or takes the grant back; create a RebootPolicy that selects it" + g.unread(),
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
