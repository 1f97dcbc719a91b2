package timeline

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// State is what a node is doing, in one word for people.
type State string

// The states of a node, in the order in which a reboot goes through them.
const (
	// UpToDate nodes need no reboot and have had none since the timeline began.
	UpToDate State = "up to date"
	// Waiting nodes need a reboot and have no grant.
	Waiting State = "waiting"
	// Granted nodes may reboot and have not begun.
	Granted State = "granted"
	// Draining nodes are cordoned and their pods are leaving.
	Draining State = "draining"
	// Rebooting nodes have passed the point of no return.
	Rebooting State = "rebooting"
	// Settling nodes are up on a new boot ID and not yet back in service.
	Settling State = "settling"
	// Back nodes have been rebooted and are in service.
	Back State = "back"
	// Unavailable nodes are not Ready, or cordoned, and not by a reboot of ours.
	Unavailable State = "unavailable"
)

// look reports what a node is doing, from one revision of it alone.
func look(node *corev1.Node) State {
	grant, unreadable := protocol.ParseGrant(node.Annotations)
	progress, err := protocol.ParseProgress(node.Annotations)
	switch {
	case unreadable != nil || err != nil:
		return Unavailable
	case grant != nil && grant.State == protocol.GrantActive:
		return underGrant(node, grant, progress)
	case !isAvailable(node):
		return Unavailable
	case Condition(node, v1alpha1.NodeRebootRequired).Status == corev1.ConditionTrue:
		return Waiting
	}
	return UpToDate
}

func underGrant(node *corev1.Node, grant *protocol.Grant, progress *protocol.Progress) State {
	switch {
	case progress == nil || progress.Seq != grant.Seq:
		return Granted
	case progress.Phase == protocol.PhaseAborted:
		return Waiting
	case progress.Phase == protocol.PhaseDraining:
		return Draining
	case progress.BootID == node.Status.NodeInfo.BootID || !isReady(node):
		return Rebooting
	}
	return Settling
}

// why is the reason that the operator reports on the Node.
func why(node *corev1.Node) string {
	permitted := Condition(node, v1alpha1.NodeRebootPermitted)
	return strings.Trim(permitted.Reason+": "+permitted.Message, ": ")
}

// Condition is a Node's condition; the zero one where it has none of that kind.
func Condition(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func isReady(node *corev1.Node) bool {
	return Condition(node, corev1.NodeReady).Status == corev1.ConditionTrue
}

// isAvailable is the users' view: the node runs pods and takes new ones.
func isAvailable(node *corev1.Node) bool { return isReady(node) && !node.Spec.Unschedulable }
