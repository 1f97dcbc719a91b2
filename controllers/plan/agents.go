package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// agentGrace is how long an agent may take to work after its pod changed or its node became Ready: a rollout of agents
// replaces each of them.
const agentGrace = 30 * time.Second

// Agents is what the pods of the agents report.
type Agents struct {
	// Unknown says why the pods cannot be read. Empty: Pods has all of them.
	Unknown string
	// Pods are by node; of several on one node, one that is Ready.
	Pods map[string]AgentPod
}

// AgentPod is the pod of one agent.
type AgentPod struct {
	Ready bool
	// Since is when it became so.
	Since time.Time
}

// countAgent notes whether the agent of a node that this policy governs works: it has reported whether a reboot is needed,
// and its pod is Ready. A report alone says little, because it outlives its agent.
func (f *fleet) countAgent(n *Node, held bool) {
	reports := n.Required == corev1.ConditionTrue || n.Required == corev1.ConditionFalse
	if reports {
		f.reporting++
	}
	if f.Agents == nil {
		return
	}
	pod := f.Agents.Pods[n.Name]
	switch {
	case reports && (pod.Ready || f.Agents.Unknown != ""):
		f.working++
	case held, !n.Ready, n.Deleting: // the agent is down with its node
	default:
		f.missAgent(n, pod.Since)
	}
}

// missAgent: a time ahead of this clock is not believed, else the node would never be missed.
func (f *fleet) missAgent(n *Node, changed time.Time) {
	since := n.ReadySince
	if changed.After(since) {
		since = changed
	}
	due := since.Add(agentGrace)
	switch {
	case since.After(f.Now) || !f.Now.Before(due):
		f.missing = append(f.missing, n.Name)
	case f.missedAt.IsZero() || due.Before(f.missedAt):
		f.missedAt = due
	}
}

// agents is what status.agents and condition AgentsReady should be; nil: not known yet, they stay as they are.
func (f *fleet) agents() *AgentsReport {
	if f.Agents == nil {
		return nil
	}
	slices.Sort(f.missing)
	r := &AgentsReport{
		AgentsStatus: v1alpha1.AgentsStatus{
			Summary: fmt.Sprintf("%d/%d", f.working, f.selected),
			Desired: int32(f.selected), Ready: int32(f.working), Missing: int32(len(f.missing)),
			Nodes: slices.Clone(f.missing[:min(len(f.missing), maxNames)]),
		},
		Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonAgentsReady, Message: "every node that is in service has an agent that works",
	}
	unknown := f.Agents.Unknown
	switch {
	case len(f.missing) > 0:
		r.Status, r.Reason = corev1.ConditionFalse, v1alpha1.ReasonAgentsMissing
		r.Message = fmt.Sprintf("%d of %d nodes have no agent that works, so whether they need a reboot is not known: %s",
			len(f.missing), f.selected, someOf(f.missing))
		if len(f.Agents.Pods) == 0 && unknown == "" {
			r.Message += "; there is no pod of an agent at all: see whether DaemonSet reboot-operator-agent exists"
		}
	case unknown != "":
		r.Status, r.Reason = corev1.ConditionUnknown, v1alpha1.ReasonAgentsUnknown
		r.Message = "every node has reported, but whether its agent still runs is not known"
	}
	if unknown != "" {
		r.Message += "; " + unknown
	}
	return r
}

// AgentsReport is what is known of the agents of a policy's nodes.
type AgentsReport struct {
	v1alpha1.AgentsStatus

	// Status, Reason and Message are those of condition AgentsReady.
	Status  corev1.ConditionStatus
	Reason  v1alpha1.Reason
	Message string
}
