package controllers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TrimNode is the transform of the Node informer: it keeps what a decision looks at, about a seventh of a Node. Two
// versions of a Node that differ in a heartbeat alone are equal afterwards.
func TrimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		return trimNode(node), nil
	}
	return object, nil
}

func trimNode(node *corev1.Node) *corev1.Node {
	trimmed := &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec:   corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID}},
	}
	for key, value := range node.Annotations {
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") || answer(value) {
			if trimmed.Annotations == nil {
				trimmed.Annotations = map[string]string{}
			}
			trimmed.Annotations[key] = value
		}
	}
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady, v1alpha1.NodeRebootRequired, v1alpha1.NodeRebootPermitted, corev1.NodeMaintenanceInProgress:
			c.LastHeartbeatTime = metav1.Time{}
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, c)
		}
	}
	return trimmed
}

// answer tells whether an annotation may be the answer of a hook: their keys are the users'.
func answer(value string) bool {
	return value == "true" || value == "false" || strings.HasPrefix(value, "failed")
}

// nodeChanges drops updates in which nothing that a decision looks at has changed: heartbeats above all.
func nodeChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		return !ok || !ok2 || !sameNode(before, after)
	}})
}

func sameNode(before, after *corev1.Node) bool {
	a, b := *trimNode(before), *trimNode(after)
	a.ResourceVersion, b.ResourceVersion = "", ""
	return equality.Semantic.DeepEqual(a, b)
}

// policyChanges drops updates of the status, which only the manager writes.
func policyChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
		deletionBegins(),
	))
}

func deletionBegins() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetDeletionTimestamp() != nil })
}
