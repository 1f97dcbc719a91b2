package snapshot

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// Transform is Trim for an informer of Nodes; what is no Node passes.
func Transform(also ...corev1.NodeConditionType) func(any) (any, error) {
	return func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return Trim(node, also...), nil
		}
		return object, nil
	}
}

// decisive are the conditions that decisions look at.
var decisive = []corev1.NodeConditionType{
	corev1.NodeReady, v1alpha1.NodeRebootRequired, v1alpha1.NodeRebootPermitted, v1alpha1.NodeRebootFailed, corev1.NodeMaintenanceInProgress,
	corev1.NodeMaintenancePlanned,
}

// Trim keeps what a decision looks at, about a seventh of a Node. Two versions of a Node that differ in a heartbeat
// alone are equal afterwards. It keeps the conditions of also beside those, for what people are shown and nothing decides on.
func Trim(node *corev1.Node, also ...corev1.NodeConditionType) *corev1.Node {
	trimmed := &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp,
		},
		// All taints: a Node is written with the whole list or with none.
		Spec:   corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID}},
	}
	asked := asked(node.Annotations)
	for key, value := range node.Annotations {
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") || plan.IsAnswer(value) || plan.IsAutoscalerAnnotation(key) || slices.Contains(asked, v1alpha1.AnnotationKey(key)) {
			if trimmed.Annotations == nil {
				trimmed.Annotations = map[string]string{}
			}
			trimmed.Annotations[key] = value
		}
	}
	for _, c := range node.Status.Conditions {
		if slices.Contains(decisive, c.Type) || slices.Contains(also, c.Type) {
			c.LastHeartbeatTime = metav1.Time{}
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, c)
		}
	}
	return trimmed
}

// asked are the hooks that the node is asked for: what they report counts, also where it is no answer.
func asked(annotations map[string]string) []v1alpha1.AnnotationKey {
	if phase, err := protocol.ParseHookPhase(annotations); err == nil && phase != nil {
		return phase.Hooks
	}
	return nil
}
