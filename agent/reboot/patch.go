package reboot

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	}
	for _, kind := range r.Removed {
		p.RemoveCondition(kind)
	}
	p.Metadata.Labels = labels
	if p.Metadata.Annotations == nil {
		p.Metadata.Annotations = annotations
	} else {
		maps.Copy(p.Metadata.Annotations, annotations)
	}
	for _, key := range r.Versioned {
		_, label := labels[key]
		_, annotation := annotations[key]
		if label || annotation {
			p.Metadata.ResourceVersion = node.ResourceVersion
		}
	}
	return true
}

// changed are the wanted conditions that are not there yet, with their times.
func changed(have, want []corev1.NodeCondition, now time.Time) []any {
	var conditions []any
	for _, c := range want {
		before := step.Observation{Conditions: have}.Condition(c.Type)
		if c.Status == before.Status && c.Reason == before.Reason && c.Message == before.Message {
			continue
		}
		conditions = append(conditions, nodepatch.Dated(c, before, now))
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
