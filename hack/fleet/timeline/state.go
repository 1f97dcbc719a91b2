package timeline

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/step"
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

// look reports what a node is doing and why, from one revision of it alone.
func look(node *corev1.Node) (State, string) {
	grant, err := protocol.ParseGrant(node.Annotations)
	if err != nil {
		return Unavailable, err.Error()
	}
	progress, err := protocol.ParseProgress(node.Annotations)
	if err != nil {
		return Unavailable, err.Error()
	}
	if grant != nil && grant.State == protocol.GrantActive {
		return underGrant(node, grant, progress)
	}
	required := condition(node, v1alpha1.NodeRebootRequired)
	switch {
	case !isReady(node):
		return Unavailable, "not Ready"
	case node.Spec.Unschedulable:
		return Unavailable, "cordoned"
	case required.Status == corev1.ConditionTrue:
		return Waiting, whyNot(node, required)
	}
	return UpToDate, cmp.Or(required.Message, required.Reason, "no agent yet")
}

func underGrant(node *corev1.Node, grant *protocol.Grant, progress *protocol.Progress) (State, string) {
	if progress == nil || progress.Seq != grant.Seq {
		return Granted, "it is this node's turn"
	}
	switch {
	case progress.Phase == protocol.PhaseAborted:
		return Waiting, "aborted: " + string(progress.Reason)
	case progress.Phase == protocol.PhaseDraining:
		return Draining, pods(condition(node, corev1.NodeDrainInProgress))
	case progress.BootID == node.Status.NodeInfo.BootID && isReady(node):
		return Rebooting, "logind was asked"
	case !isReady(node):
		return Rebooting, "down"
	}
	return Settling, "up again, boot " + short(node.Status.NodeInfo.BootID)
}

// pods states what the drain waits for; the condition comes only with a drain that takes a while.
func pods(draining corev1.NodeCondition) string {
	if draining.Status != corev1.ConditionTrue {
		return "pods are leaving"
	}
	return cmp.Or(draining.Message, "pods are leaving")
}

func whyNot(node *corev1.Node, required corev1.NodeCondition) string {
	permitted := condition(node, v1alpha1.NodeRebootPermitted)
	if permitted.Reason == "" {
		return required.Reason + ": " + step.WithoutOrigin(required.Message)
	}
	return strings.TrimSuffix(permitted.Reason+": "+permitted.Message, ": ")
}

func condition(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func isReady(node *corev1.Node) bool {
	return condition(node, corev1.NodeReady).Status == corev1.ConditionTrue
}

// isAvailable is the users' view: the node runs pods and takes new ones.
func isAvailable(node *corev1.Node) bool { return isReady(node) && !node.Spec.Unschedulable }

// short is enough of a boot ID for people to distinguish two.
func short(bootID string) string { return bootID[:min(8, len(bootID))] }
