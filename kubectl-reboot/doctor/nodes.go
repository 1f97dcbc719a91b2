package doctor

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// coordinators finds nodes whose agents report another program that may reboot the host. If the
// node needs a reboot, the program is in the agent's report, and otherwise in the message of
// RebootRequired.
func coordinators(c Cluster, f *findings) {
	c.eachMessage(f, func(node *corev1.Node, _ *record.Node) (message, command string) {
		report, err := protocol.ParseAgentReport(node.Annotations)
		if err == nil {
			for _, o := range report.BlockedBy {
				if o.Reason == v1alpha1.ReasonCoordinatorConflict {
					return o.Message, ""
				}
			}
		}
		before, _, found := strings.Cut(v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired).Message, v1alpha1.CoordinatorAdvice)
		if !found {
			return "", ""
		}
		return before + v1alpha1.CoordinatorAdvice + ".", ""
	})
}

// engines finds nodes whose need for a reboot is unknown.
func engines(c Cluster, f *findings) {
	c.eachMessage(f, func(node *corev1.Node, n *record.Node) (message, command string) {
		switch {
		case !n.Ready, !c.wantsAgent(n):
			return "", "" // its agent is down with it, or it has none
		case n.Required == "":
			return "no agent has ever reported", c.agentLogs()
		case n.Required == corev1.ConditionUnknown:
			return v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired).Message, "kubectl reboot explain " + n.Name
		}
		return "", ""
	})
}

// agentLogs returns the command that shows the last log lines of the agents, or the agents
// themselves if their DaemonSet is unknown.
func (c Cluster) agentLogs() string {
	agent := c.Agent()
	if agent == nil {
		return attention.LookAtAgents
	}
	return "kubectl logs -n " + agent.Namespace + " -l " + partLabel + "=" + agentPart + " --tail=20"
}

// eachMessage adds one problem for each message, with all nodes that have it and the command of the
// first of them. Nodes with an empty message have no problem.
func (c Cluster) eachMessage(f *findings, about func(*corev1.Node, *record.Node) (message, command string)) {
	var texts []string
	commands, nodes := map[string]string{}, map[string][]string{}
	for _, n := range c.Fleet.Views() {
		node, _ := c.Fleet.Node(n.Name)
		text, command := about(node, n)
		if text == "" {
			continue
		}
		if len(nodes[text]) == 0 {
			texts, commands[text] = append(texts, text), command
		}
		nodes[text] = append(nodes[text], n.Name)
	}
	for _, text := range texts {
		f.add(Problem, message.Some(nodes[text])+": "+text, commands[text], nodes[text]...)
	}
}

// A kubelet renews its Lease every 10 seconds, and the node controller considers the node lost
// after 40.
const (
	ahead  = 10 * time.Second
	behind = 50 * time.Second
)

// clocks compares the clocks of this machine and the kubelets with that of the API server. Windows
// open by the manager's clock.
func clocks(c Cluster, f *findings) {
	if c.ServerTime.IsZero() {
		return
	}
	if d := c.Fleet.Now.Sub(c.ServerTime); d > ahead || d < -ahead {
		f.add(Warning, fmt.Sprintf("the clock of this machine is %s that of the API server, so kubectl reboot shows wrong times", clockDifference(d)), "")
	}
	for i := range c.Leases {
		lease := &c.Leases[i]
		_, node := c.Fleet.Node(lease.Name)
		if node == nil || lease.Spec.RenewTime == nil || !node.Ready {
			continue
		}
		if d := lease.Spec.RenewTime.Sub(c.ServerTime); d > ahead || d < -behind {
			f.add(Problem, fmt.Sprintf("the clock of %s is %s that of the API server, according to its kubelet's Lease, so its times are ignored; synchronise it (chronyc makestep)",
				lease.Name, clockDifference(d)), "", lease.Name)
		}
	}
}

// clockDifference formats the difference between two clocks.
func clockDifference(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Second).String() + " behind"
	}
	return d.Round(time.Second).String() + " ahead of"
}
