package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// nodeChanges drops updates in which nothing that a decision looks at has changed: heartbeats above all.
func nodeChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		return !ok || !ok2 || !sameNode(before, after)
	}})
}

func sameNode(before, after *corev1.Node) bool {
	a, b := *snapshot.Trim(before), *snapshot.Trim(after)
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
