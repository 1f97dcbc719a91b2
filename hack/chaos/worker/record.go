package worker

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// quiet reports whether a Node shows nothing of a reboot.
func quiet(node *corev1.Node, cordoned bool) bool {
	return node.Spec.Unschedulable == cordoned && !needs(node) && settled(node)
}

// needs reports whether a Node asks for a reboot, or does not know.
func needs(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodeRebootRequired && c.Status != corev1.ConditionFalse {
			return true
		}
	}
	return false
}

// settled reports whether a Node is in no attempt, and has no taint of one.
func settled(node *corev1.Node) bool {
	grant, err := protocol.ParseGrant(node.Annotations)
	if err != nil || grant != nil && grant.State == protocol.GrantActive {
		return false
	}
	progress, err := protocol.ParseProgress(node.Annotations)
	if err != nil {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1alpha1.TaintPending {
			return false
		}
	}
	return progress == nil || progress.Phase == protocol.PhaseAborted || grant != nil && (grant.Seq > progress.Seq || grant.Seq == progress.Seq && grant.State == protocol.GrantFinished)
}

// attempted reports whether a Node is in an attempt.
func attempted(node *corev1.Node) bool {
	grant, err := protocol.ParseGrant(node.Annotations)
	return err == nil && grant != nil && grant.State == protocol.GrantActive
}
