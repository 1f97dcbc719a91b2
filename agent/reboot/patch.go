package reboot

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// progressPatch writes the progress if nothing has changed on the Node since.
func progressPatch(node *corev1.Node, progress protocol.Progress) *nodepatch.Patch {
	return nodepatch.New(node.ResourceVersion).Annotate(v1alpha1.AnnotationProgress, progress.String())
}

// addReport adds what of a report the Node does not show yet, and reports whether there was anything.
func addReport(p *nodepatch.Patch, node *corev1.Node, r step.NodeStatus, now time.Time) bool {
	conditions := changed(node.Status.Conditions, r.Conditions, now)
	labels, annotations := differing(node.Labels, r.Labels), differing(node.Annotations, r.Annotations)
	if len(conditions)+len(labels)+len(annotations) == 0 {
		return false
	}
	if len(conditions) > 0 {
		p.Status = &nodepatch.Status{Conditions: conditions}
		if answered(node.Status.Conditions, r.Conditions) {
			p.RemoveCondition(v1alpha1.NodeRebootPermitted)
		}
		if planOver(node.Status.Conditions, r.Conditions) {
			p.RemoveCondition(corev1.NodeMaintenancePlanned)
		}
	}
	p.Metadata.Labels = labels
	if p.Metadata.Annotations == nil {
		p.Metadata.Annotations = annotations
	} else {
		maps.Copy(p.Metadata.Annotations, annotations)
	}
	if removes(p.Metadata.Annotations, v1alpha1.AnnotationRebootRequested) || removes(p.Metadata.Labels, v1alpha1.LabelRebootRequested) {
		// Somebody may be writing another request just now: that one must not be removed.
		p.Metadata.ResourceVersion = node.ResourceVersion
	}
	if _, reports := annotations[v1alpha1.AnnotationReport]; reports {
		// A part of it may be as it was read, and another process of the agent may have written it since.
		p.Metadata.ResourceVersion = node.ResourceVersion
	}
	return true
}

// removes reports whether a patch of annotations or labels removes a key.
func removes(patch map[string]*string, key string) bool {
	value, found := patch[key]
	return found && value == nil
}

// answered reports whether the need falls, and the manager's answer to it is there still: it goes with the question, so that
// nobody sees the one without the other, and the manager need not write for it.
func answered(have, want []corev1.NodeCondition) bool {
	before, next := step.Observation{Conditions: have}, step.Observation{Conditions: want}
	falls := before.Is(v1alpha1.NodeRebootRequired) && !next.Is(v1alpha1.NodeRebootRequired) && next.Condition(v1alpha1.NodeRebootRequired).Type != ""
	return falls && before.Condition(v1alpha1.NodeRebootPermitted).Type != ""
}

// planOver reports whether the maintenance is over that the manager has announced on the node: with MaintenanceInProgress, so that the
// manager need not write for it.
func planOver(have, want []corev1.NodeCondition) bool {
	before, next := step.Observation{Conditions: have}, step.Observation{Conditions: want}
	ends := before.Is(corev1.NodeMaintenanceInProgress) && next.Condition(corev1.NodeMaintenanceInProgress).Status == corev1.ConditionFalse
	return ends && v1alpha1.IsPlanned(before.Condition(corev1.NodeMaintenancePlanned))
}

// changed are the wanted conditions that are not there yet, with their times. The transition time moves with the status.
func changed(have, want []corev1.NodeCondition, now time.Time) []any {
	var conditions []any
	for _, c := range want {
		before := step.Observation{Conditions: have}.Condition(c.Type)
		if c.Status == before.Status && c.Reason == before.Reason && c.Message == before.Message {
			continue
		}
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		if c.Status == before.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// differing are the wanted values that are not there yet, and the unwanted ones that are; nil where there are none.
func differing(have map[string]string, want map[string]*string) map[string]*string {
	patch := map[string]*string{}
	for key, value := range want {
		before, found := have[key]
		if found != (value != nil) || found && before != *value {
			patch[key] = value
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}
