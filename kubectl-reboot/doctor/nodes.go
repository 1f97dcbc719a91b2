package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// coordinators finds the nodes whose agents report another program that may reboot the host. An agent that asks for a reboot
// objects; one that does not reports it in the message of RebootRequired.
func coordinators(c Cluster) []Finding {
	return c.onNodes(func(node *corev1.Node, _ *plan.Node) (message, command string) {
		report, err := protocol.ParseAgentReport(node.Annotations)
		if err == nil {
			for _, o := range report.Objection.All() {
				if o.Reason == v1alpha1.ReasonCoordinatorConflict {
					return o.Message, ""
				}
			}
		}
		before, _, found := strings.Cut(condition(node, v1alpha1.NodeRebootRequired).Message, v1alpha1.CoordinatorAdvice)
		if !found {
			return "", ""
		}
		return before + v1alpha1.CoordinatorAdvice + ".", ""
	})
}

// engines finds the nodes of which it is not known whether they need a reboot.
func engines(c Cluster) []Finding {
	return c.onNodes(func(node *corev1.Node, n *plan.Node) (message, command string) {
		switch {
		case !n.Ready:
			return "", "" // its agent is down with it
		case n.Required == "":
			return "no agent has ever reported", "kubectl logs -n reboot-operator-system -l " + partLabel + "=" + agentPart + " --tail=20"
		case n.Required == corev1.ConditionUnknown:
			return condition(node, v1alpha1.NodeRebootRequired).Message, "kubectl reboot explain " + n.Name
		}
		return "", ""
	})
}

// onNodes are the findings of byMessage, each with its nodes before the message.
func (c Cluster) onNodes(about func(*corev1.Node, *plan.Node) (message, command string)) []Finding {
	found := c.byMessage(about)
	for i := range found {
		found[i].Message = terminal.Some(found[i].Nodes) + ": " + found[i].Message
	}
	return found
}

// byMessage makes one problem of all nodes with the same message; the first of them gives the command. An empty message: the
// node has none.
func (c Cluster) byMessage(about func(*corev1.Node, *plan.Node) (message, command string)) []Finding {
	var found []Finding
	for _, n := range c.Fleet.Views() {
		node, _ := c.Fleet.Node(n.Name)
		message, command := about(node, n)
		if message == "" {
			continue
		}
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Message == message })
		if i < 0 {
			i, found = len(found), append(found, Finding{Level: Problem, Message: message, Command: command})
		}
		found[i].Nodes = append(found[i].Nodes, n.Name)
	}
	return found
}

func condition(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// A kubelet renews its lease every 10 seconds, and the node controller calls the node lost after 40.
const (
	ahead  = 10 * time.Second
	behind = 50 * time.Second
)

// clocks compares this machine's and the kubelets' clocks with the API server's. A window opens by the manager's clock.
func clocks(c Cluster) []Finding {
	if c.ServerTime.IsZero() {
		return nil
	}
	var found []Finding
	if d := c.Fleet.Now.Sub(c.ServerTime); d > ahead || d < -ahead {
		found = append(found, Finding{Level: Warning, Message: fmt.Sprintf("the clock of this machine is %s that of the API server: the times that kubectl reboot shows are off", beside(d))})
	}
	for i := range c.Leases {
		lease := &c.Leases[i]
		_, node := c.Fleet.Node(lease.Name)
		if node == nil || lease.Spec.RenewTime == nil || !node.Ready {
			continue
		}
		if d := lease.Spec.RenewTime.Sub(c.ServerTime); d > ahead || d < -behind {
			found = append(found, Finding{
				Level:   Problem,
				Message: fmt.Sprintf("the clock of %s is %s that of the API server, by the lease of its kubelet: its times are not believed; synchronise it (chronyc makestep)", lease.Name, beside(d)),
				Nodes:   []string{lease.Name},
			})
		}
	}
	return found
}

// beside states how far a clock is from another one.
func beside(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Second).String() + " behind"
	}
	return d.Round(time.Second).String() + " ahead of"
}
