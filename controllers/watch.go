package controllers

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// SetupWithManager registers the controller. The options apply except for those that it sets
// itself. Both replicas fill their caches, but only the leader reconciles.
func (r *RebootPolicyReconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.assemble()
	watch := ctrl.NewControllerManagedBy(mgr).
		Named("rebootpolicy").
		WithOptions(oneWorker(options)).
		Watches(&v1alpha1.RebootPolicy{}, handler.EnqueueRequestsFromMapFunc(r.fleet.allPolicies), policyChanges()).
		Watches(&v1alpha1.RebootPolicy{}, r.fleet.slotFreed()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.fleet.noteNode)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.fleet.policiesOf), nodeChanges())
	if r.Gates != nil {
		watch = watch.WatchesRawSource(source.Channel(r.Gates.Woken(), &handler.EnqueueRequestForObject{}))
	}
	if r.AgentNamespace != "" {
		pods, err := r.fleet.agentEvents(mgr, r.AgentNamespace)
		if err != nil {
			return err
		}
		watch = watch.WatchesRawSource(pods)
	}
	if err := watch.Complete(r); err != nil {
		return fmt.Errorf("registering the controller: %w", err)
	}
	return nil
}

// oneWorker returns the options of each controller: one pass at a time, with a time-out, and a
// short back-off after errors.
func oneWorker(o controller.Options) controller.Options {
	o.MaxConcurrentReconciles, o.EnableWarmup, o.ReconciliationTimeout = 1, new(true), reconcileTimeout
	o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](errorPause, errorPauseMax)
	return o
}

// allPolicies enqueues all policies, because a change of one policy's selector or priority may move
// nodes from or to any other.
func (f *fleetReader) allPolicies(ctx context.Context, changed client.Object) []reconcile.Request {
	requests := []reconcile.Request{request(""), request(changed.GetName())}
	policies := f.listForEvent(ctx)
	for i := range policies {
		if name := policies[i].Name; name != changed.GetName() {
			requests = append(requests, request(name))
		}
	}
	return requests
}

// listForEvent lists the policies, so that an event can queue those it concerns. It retries until it
// succeeds, because no other event may follow. It returns nil once ctx has ended.
func (f *fleetReader) listForEvent(ctx context.Context) []v1alpha1.RebootPolicy {
	var policies []v1alpha1.RebootPolicy
	delay := wait.Backoff{Duration: errorPause, Factor: 2, Steps: math.MaxInt, Cap: errorPauseMax}.DelayFunc()
	_ = delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var err error
		if policies, err = reading.Policies(ctx, f.client); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot determine which policies an event affects, and tries again")
		}
		return err == nil, nil
	})
	return policies
}

// slotFreed enqueues the policies whose nodes may wait for a slot that another policy's entry has
// freed in the ledger.
func (f *fleetReader) slotFreed() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		before, ok := e.ObjectOld.(*v1alpha1.RebootPolicy)
		after, ok2 := e.ObjectNew.(*v1alpha1.RebootPolicy)
		if !ok || !ok2 {
			return
		}
		for _, name := range f.waitForSlot(ctx, before, after) {
			queue.Add(request(name))
		}
	}}
}

// waitForSlot returns the policies whose nodes may wait for a slot, if entries have left the
// ledger.
func (f *fleetReader) waitForSlot(ctx context.Context, before, after *v1alpha1.RebootPolicy) []string {
	freed := slices.DeleteFunc(slices.Clone(before.Status.Grants), func(e v1alpha1.LedgerEntry) bool {
		return slices.ContainsFunc(after.Status.Grants, func(entry v1alpha1.LedgerEntry) bool { return entry.Node == e.Node && entry.Seq == e.Seq })
	})
	if len(freed) == 0 {
		return nil
	}
	governor, names := governor.Of(f.listForEvent(ctx)), map[string]bool{}
	for _, e := range freed {
		for _, name := range governor.Freed(after.Name, e, f.nodeForEvent(ctx, e.Node)) {
			names[name] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// nodeForEvent returns a Node of the cache, or nil if it is not there. Then another event follows.
func (f *fleetReader) nodeForEvent(ctx context.Context, name string) *record.Node {
	var node corev1.Node
	if err := f.client.Get(ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return new(record.Of(&node))
}

// policiesOf returns the policies whose plans depend on the node. It records the Node first,
// because the pass that it enqueues must see the change.
func (f *fleetReader) policiesOf(ctx context.Context, object client.Object) []reconcile.Request {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	f.noteNode(ctx, node)
	n := record.Of(node)
	if n.Grant != nil && n.Done(node.Status.NodeInfo.BootID) {
		f.freed.Store(n.Grant.Policy, true)
	}
	affected := governor.Of(f.listForEvent(ctx)).Affected(&n)
	requests := make([]reconcile.Request, len(affected))
	for i, name := range affected {
		requests[i] = request(name)
	}
	return requests
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// noteNode makes the next pass read a changed Node, even after a heartbeat, because a write must
// not carry an older resourceVersion. Its watch never blocks, while policiesOf may wait for the
// write of a policy.
func (f *fleetReader) noteNode(_ context.Context, node client.Object) []reconcile.Request {
	f.reread(node.GetName())
	return nil
}

// nodeChanges drops updates that do not change anything on which decisions depend, above all
// heartbeats.
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

// policyChanges drops updates of the status, which only the manager writes. It passes those in
// which the policy becomes valid or invalid, because they affect policies that select the same
// nodes.
func policyChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
		predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetDeletionTimestamp() != nil }),
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return acceptedReason(e.ObjectOld) != acceptedReason(e.ObjectNew) }},
	))
}

// acceptedReason returns the reason of condition Accepted of a policy.
func acceptedReason(object client.Object) string {
	if policy, ok := object.(*v1alpha1.RebootPolicy); ok {
		if c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAccepted); c != nil {
			return c.Reason
		}
	}
	return ""
}
