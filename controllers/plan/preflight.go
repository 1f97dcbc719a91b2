package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// PreflightOf is what the agents of a policy's nodes are asked before a slot is spent, as the value of its annotation. It
// changes with what the policy specifies about pods, and with nothing else.
func PreflightOf(policy *v1alpha1.RebootPolicy) string { return podCheckOf(policy).annotation }

// podCheck is the check that a policy's agents make of the pods of their nodes.
type podCheck struct {
	request protocol.Preflight
	// annotation is the request as the value of annotation preflight.
	annotation string
}

func podCheckOf(policy *v1alpha1.RebootPolicy) podCheck {
	request := protocol.Preflight{Policy: policy.Name, Revision: policy.Spec.PodsRevision()}
	return podCheck{request: request, annotation: request.String()}
}

// requestFor is the annotation on a node that waits. An agent checks once its node's turn may come: while an earlier check
// holds the node back, its pods come and go, and the result is not needed.
func (c podCheck) requestFor(o *Blocked) string {
	if o.reaches(podChecks) {
		return c.annotation
	}
	return ""
}

// result is the agent's answer to the request, in this boot. Nil: there is none, and nothing is known.
func (c podCheck) result(n *Node) *protocol.PreflightReport {
	r := n.PreflightReport
	if r == nil || r.BootID != n.BootID || (protocol.Preflight{Policy: r.Policy, Revision: r.Revision}) != c.request {
		return nil
	}
	return r
}

// Supposing is for looking ahead: where nothing is known of the pods on a node, its agent is supposed to find nothing in the way.
// Without gates.blockingPods a missing answer means just that, and the nodes are returned as they are. Their order stays.
func Supposing(policy *v1alpha1.RebootPolicy, nodes []*Node) []*Node {
	check := podCheckOf(policy)
	if len(policy.Spec.BlockingPods()) == 0 {
		return nodes
	}
	supposed := slices.Clone(nodes)
	for i, n := range supposed {
		if check.result(n) == nil {
			other := *n
			other.PreflightReport = &protocol.PreflightReport{Policy: policy.Name, Revision: policy.Spec.PodsRevision(), BootID: n.BootID}
			supposed[i] = &other
		}
	}
	return supposed
}

// undrainablePod: a drain that must fail is not begun. Where a drain that takes too long ends in a reboot all the same,
// pods that no eviction can remove are no reason to wait; see order.
func undrainablePod(v view, n *Node) *Blocked {
	r, drain := v.pods.result(n), v.Policy.Spec.DrainOrDefault()
	switch {
	case r == nil:
		return nil
	case r.Kept != nil:
		return blocked(v1alpha1.ReasonUndrainablePod, "can never be drained: %s", named(r.Kept))
	case r.Guarded != nil && drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort:
		return blocked(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s", named(r.Guarded))
	}
	return nil
}

// guarded reports whether a drain of the node could only end by its time-out.
func (c podCheck) guarded(n *Node) bool {
	r := c.result(n)
	return r != nil && r.Guarded != nil
}

func blockingPod(v view, n *Node) *Blocked {
	if r := v.pods.result(n); r != nil && r.Blocking != nil && len(v.Policy.Spec.BlockingPods()) > 0 {
		return blocked(v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy %s waits for %s", v.name, named(r.Blocking))
	}
	return nil
}

// blockingPodOrUnknown also blocks a new grant while the answer is unknown. An unknown answer takes no grant back: the agent looks
// again before it begins.
func blockingPodOrUnknown(v view, n *Node) *Blocked {
	if o := blockingPod(v, n); o != nil || len(v.Policy.Spec.BlockingPods()) == 0 {
		return o
	}
	switch r := v.pods.result(n); {
	case r == nil:
		return blocked(v1alpha1.ReasonGateUnreachable, "the node's agent has not reported yet whether pods of gates.blockingPods run on it; "+
			"where this stays, see whether the agent's pod runs")
	case r.Problem != "":
		return blocked(v1alpha1.ReasonGateUnreachable, "the node's agent cannot determine whether pods of gates.blockingPods run on it: %s", r.Problem)
	}
	return nil
}

// named names pods, each with why it is in the way.
func named(pods *protocol.NamedPods) string {
	names := make([]string, 0, len(pods.Pods))
	for _, p := range pods.Pods {
		if p.Why != "" {
			p.Pod += " (" + p.Why + ")"
		}
		names = append(names, p.Pod)
	}
	text := strings.Join(names, ", ")
	if more := int(pods.Count) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return message.Shorten(maxMessage, text)
}
