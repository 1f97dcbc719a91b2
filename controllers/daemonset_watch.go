package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/config/agent"
	"github.com/reboot-operator/reboot-operator/controllers/agentset"
)

// SetupAgents registers the controller of the agents' DaemonSet where the flags ask for it.
func SetupAgents(mgr ctrl.Manager, o Options, edit ...func(*controller.Options)) error {
	if !o.ManageAgents {
		return nil
	}
	r := &DaemonSetReconciler{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: brief{mgr.GetEventRecorder(v1alpha1.FieldOwnerManager)},
		Template: agentset.Template{Manifest: agent.Manifest(), Namespace: o.Namespace, Image: o.AgentImage, Args: o.AgentArgs},
	}
	return r.SetupWithManager(mgr, edit...)
}

// SetupWithManager registers the controller. Only the leader reconciles.
func (r *DaemonSetReconciler) SetupWithManager(mgr ctrl.Manager, edit ...func(*controller.Options)) error {
	warm := true
	options := controller.Options{MaxConcurrentReconciles: 1, EnableWarmup: &warm, ReconciliationTimeout: reconcileTimeout}
	for _, e := range edit {
		e(&options)
	}
	only := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: r.Template.Namespace, Name: agentset.Name}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("daemonset").
		WithOptions(options).
		Watches(&appsv1.DaemonSet{}, only, daemonSetChanges()).
		Watches(&v1alpha1.RebootPolicy{}, only, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Node{}, only, nodeMoves()).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of the agents: %w", err)
	}
	return nil
}

// daemonSetChanges drops updates of the status, which follow every pod.
func daemonSetChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
}

// nodeMoves are the events that may make a difference to a node that no policy selects: labels, and the two ends of an
// attempt. The DaemonSet controller follows all others by itself.
func nodeMoves() builder.Predicates {
	needs := func(object client.Object) bool {
		node, ok := object.(*corev1.Node)
		return ok && agentset.NeedsAgent(node)
	}
	labels := predicate.LabelChangedPredicate{}
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return needs(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return needs(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return labels.Update(e) || needs(e.ObjectOld) != needs(e.ObjectNew)
		},
	})
}
