// Package report counts what is only reported about the nodes of a policy: their agents, versions
// and deadlines. Nothing is decided from it.
package report

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// AgentGrace is the time that an agent has to start working after its pod changed or its node
// became Ready. A rollout restarts every agent.
const AgentGrace = 30 * time.Second

// Agents holds the pods of the agents.
type Agents struct {
	// Unknown says why the pods cannot be read. If it is empty, Pods is complete.
	Unknown string
	// Pods holds one pod per node. If a node has several, it is one that is Ready.
	Pods map[string]AgentPod
}

// AgentPod is the pod of one agent.
type AgentPod struct {
	Ready bool
	// Since is the time when Ready last changed.
	Since time.Time
}

// AgentCount counts the nodes of a policy by the state of their agents.
type AgentCount struct {
	// agents are the agents' pods, or nil if they have not been read yet.
	agents *Agents
	now    time.Time
	// Reporting is the number of nodes that have reported whether they need a reboot, and working
	// the number with a working agent. missing are the names of the nodes without one.
	Reporting, working int
	missing            []string
	// MissedAt is the time when the next node counts as missing its agent, or zero.
	MissedAt time.Time
}

// CountAgents begins to count, with the agents' pods or nil if they have not been read yet.
func CountAgents(agents *Agents, now time.Time) AgentCount {
	return AgentCount{agents: agents, now: now}
}

// Add counts a node. Its agent works if it has reported whether a reboot is needed and its pod is
// Ready. A report alone proves little, because it outlives the agent.
func (c *AgentCount) Add(n *record.Node, held bool) {
	if n.Reports() {
		c.Reporting++
	}
	if c.agents == nil {
		return
	}
	pod := c.agents.Pods[n.Name]
	switch {
	case n.Reports() && (pod.Ready || c.agents.Unknown != ""):
		c.working++
	case held, !n.Ready, n.Deleting: // the agent is expected to be down with its node
	default:
		c.miss(n, pod.Since)
	}
}

// miss counts a node without a working agent once agentGrace is over. A time too far in the future
// is ignored, otherwise the node would never be counted.
func (c *AgentCount) miss(n *record.Node, changed time.Time) {
	since := timing.Latest(n.ReadySince, changed)
	due := since.Add(AgentGrace)
	switch {
	case !record.HasCome(since, c.now) || !c.now.Before(due):
		c.missing = append(c.missing, n.Name)
	default:
		c.MissedAt = timing.Earliest(c.MissedAt, due)
	}
}

// Report returns the wanted status.nodes.agents and condition AgentsReady, or nil if both stay as they
// are because the pods are not known yet.
func (c *AgentCount) Report(selected int) *AgentsHealth {
	if c.agents == nil {
		return nil
	}
	slices.Sort(c.missing)
	r := &AgentsHealth{
		AgentsStatus: v1alpha1.AgentsStatus{
			Summary: fmt.Sprintf("%d/%d", c.working, selected),
			Ready:   int32(c.working), Missing: int32(len(c.missing)),
			Nodes: slices.Clone(c.missing[:min(len(c.missing), message.Few)]),
		},
		Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonAgentsReady, Message: "every node in service has a working agent",
	}
	unknown := c.agents.Unknown
	switch {
	case len(c.missing) > 0:
		r.Status, r.Reason = corev1.ConditionFalse, v1alpha1.ReasonAgentsMissing
		r.Message = fmt.Sprintf("%d of %d nodes have no working agent, so it is unknown whether they need a reboot: %s",
			len(c.missing), selected, message.Some(c.missing))
		if len(c.agents.Pods) == 0 && unknown == "" {
			r.Message += "; no agent pod exists; check DaemonSet reboot-operator-agent"
		}
	case unknown != "":
		r.Status, r.Reason = corev1.ConditionUnknown, v1alpha1.ReasonAgentsUnknown
		r.Message = "every node has reported, but it is unknown whether the agents still run"
	}
	if unknown != "" {
		r.Message += "; " + unknown
	}
	return r
}

// AgentsHealth sums up the agents of a policy's nodes.
type AgentsHealth struct {
	v1alpha1.AgentsStatus

	// Status, Reason and Message are those of condition AgentsReady.
	Status  corev1.ConditionStatus
	Reason  v1alpha1.Reason
	Message string
}
