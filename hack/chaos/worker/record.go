package worker

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
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
func settled(node *corev1.Node) bool { return !attempted(node) && len(judge.Unfinished(node)) == 0 }

// attempted reports whether a Node has a grant for an attempt.
func attempted(node *corev1.Node) bool {
	grant, err := protocol.ParseGrant(node.Annotations)
	return err == nil && grant != nil && grant.State == protocol.GrantActive
}
