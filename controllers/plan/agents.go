package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// agentGrace is how long an agent may take to work after its pod changed or its node became Ready. A rollout of agents replaces each of
// them.
const agentGrace = 30 * time.Second

// Agents is what the pods of the agents report.
type Agents struct {
	// Unknown states why the pods cannot be read. Empty: Pods has all of them.
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

// agentCount counts the nodes of a policy by what is known of their agents.
type agentCount struct {
	// agents is what the agents' pods report. Nil: nothing is known yet.
	agents *Agents
	now    time.Time
	// reporting have reported whether a reboot is needed; working have an agent that works, missing have none: their names.
	reporting, working int
	missing            []string
	// missedAt is when the next node is missed; zero: none is about to be.
	missedAt time.Time
}

// add counts a node. Its agent works where it has reported whether a reboot is needed and its pod is Ready. A report alone proves
// little, because it outlives its agent.
func (c *agentCount) add(n *Node, held bool) {
	if n.Reports() {
		c.reporting++
	}
	if c.agents == nil {
		return
	}
	pod := c.agents.Pods[n.Name]
	switch {
	case n.Reports() && (pod.Ready || c.agents.Unknown != ""):
		c.working++
	case held, !n.Ready, n.Deleting: // the agent is down with its node
	default:
		c.miss(n, pod.Since)
	}
}

// miss counts a node without an agent that works once agentGrace is over. A time that is further ahead than clocks differ is not
// believed: otherwise the node would never be missed.
func (c *agentCount) miss(n *Node, changed time.Time) {
	since := timing.Latest(n.ReadySince, changed)
	due := since.Add(agentGrace)
	switch {
	case since.Sub(c.now) > clockOff || !c.now.Before(due):
		c.missing = append(c.missing, n.Name)
	default:
		c.missedAt = timing.Earliest(c.missedAt, due)
	}
}

// report is what status.agents and condition AgentsReady should be; nil: not known yet, they stay as they are.
func (c *agentCount) report(selected int) *AgentsHealth {
	if c.agents == nil {
		return nil
	}
	slices.Sort(c.missing)
	r := &AgentsHealth{
		AgentsStatus: v1alpha1.AgentsStatus{
			Summary: fmt.Sprintf("%d/%d", c.working, selected),
			Desired: int32(selected), Ready: int32(c.working), Missing: int32(len(c.missing)),
			Nodes: slices.Clone(c.missing[:min(len(c.missing), maxNames)]),
		},
		Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonAgentsReady, Message: "every node that is in service has an agent that works",
	}
	unknown := c.agents.Unknown
	switch {
	case len(c.missing) > 0:
		r.Status, r.Reason = corev1.ConditionFalse, v1alpha1.ReasonAgentsMissing
		r.Message = fmt.Sprintf("%d of %d nodes have no agent that works, so whether they need a reboot is not known: %s",
			len(c.missing), selected, someOf(c.missing))
		if len(c.agents.Pods) == 0 && unknown == "" {
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

// AgentsHealth is what is known of the agents of a policy's nodes.
type AgentsHealth struct {
	v1alpha1.AgentsStatus

	// Status, Reason and Message are those of condition AgentsReady.
	Status  corev1.ConditionStatus
	Reason  v1alpha1.Reason
	Message string
}
