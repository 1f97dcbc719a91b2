package judge

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Unfinished lists the signs of an unfinished reboot on a Node: the operator's taint and an
// attempt.
func Unfinished(n *corev1.Node) (description []string) {
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintPending }) {
		description = append(description, "is tainted")
	}
	if attemptOf(n).disrupts {
		description = append(description, "is in mid-attempt: "+n.Annotations[v1alpha1.AnnotationProgress])
	}
	return description
}

// Unsettled lists everything that a Node must not show once all is well: signs of an unfinished
// reboot, a need, and all other traces of a reboot.
func Unsettled(n *corev1.Node) []string {
	description := Unfinished(n)
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue,
			c.Type == v1alpha1.NodeRebootRequired && c.Status != corev1.ConditionFalse,
			c.Type == v1alpha1.NodeRebootPermitted, c.Type == v1alpha1.NodeRebootFailed, c.Type == corev1.NodeMaintenanceInProgress && c.Status == corev1.ConditionTrue,
			c.Type == corev1.NodeMaintenancePlanned, c.Type == corev1.NodeDrainInProgress && c.Status == corev1.ConditionTrue:
			description = append(description, fmt.Sprintf("has %s=%s: %s %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	if Outstanding(n) {
		description = append(description, "has grant "+n.Annotations[v1alpha1.AnnotationGrant])
	}
	for _, key := range []string{v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt, v1alpha1.AnnotationRebootRequested} {
		if _, ok := n.Annotations[key]; ok {
			description = append(description, "has annotation "+key)
		}
	}
	return description
}

// Outstanding reports whether a grant may still be used, or cannot be read.
func Outstanding(n *corev1.Node) bool {
	grant, err := protocol.ParseGrant(n.Annotations)
	if grant == nil || err != nil || grant.State != protocol.GrantActive {
		return err != nil
	}
	progress, err := protocol.ParseProgress(n.Annotations)
	aborted := err == nil && progress != nil && progress.Seq == grant.Seq && progress.Phase == protocol.PhaseAborted
	return !aborted
}

// UnsettledPolicy lists everything that a policy must not show once all is well.
func UnsettledPolicy(p *v1alpha1.RebootPolicy) (description []string) {
	if len(p.Status.Grants) > 0 {
		description = append(description, fmt.Sprintf("has grants %v", p.Status.Grants))
	}
	if slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionHalted && c.Status == metav1.ConditionTrue
	}) {
		description = append(description, "is halted")
	}
	if p.DeletionTimestamp != nil {
		description = append(description, "is being deleted")
	}
	return description
}
