// Package controllers is the manager: it gathers a snapshot of a RebootPolicy and the nodes, has controllers/plan decide,
// and applies the plan to Nodes and to the policy's status.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/gate"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// reconcileTimeout bounds one pass; a pass that hangs must not outlive two leases.
const reconcileTimeout = time.Minute

// conflictPause lets the cache catch up with somebody else's write before the next decision; listPause does where that lists
// all nodes.
const conflictPause, listPause = 50 * time.Millisecond, time.Second

// errorPause and errorPauseMax space passes that end with an error. Time goes on meanwhile: windows open and close, and what
// gates said grows old.
const errorPause, errorPauseMax = 50 * time.Millisecond, 30 * time.Second

// farAhead is the longest delay that is asked for: the next opening may be centuries away.
const farAhead = 30 * 24 * time.Hour

// RebootPolicyReconciler decides about one policy at a time. It has one worker, because a decision about the limit looks
// at all nodes of a policy at once. Two of them running at the same time waste work and grant nothing twice: every write
// that matters is a compare-and-swap.
type RebootPolicyReconciler struct {
	// Client reads from the cache and writes; it must read its own writes.
	Client client.Client
	// Live reads from the API server, for what must not be stale.
	Live client.Reader
	// Recorder emits events on Nodes and policies.
	Recorder events.EventRecorder
	// Clock is the only source of time.
	Clock clock.PassiveClock
	// Gates ask for spec.gates.prometheus. Nil: nobody does, and policies with such gates grant nothing.
	Gates *gate.Evaluator
	// Notifier tells services of spec.notify. Nil: nobody is told.
	Notifier *notify.Notifier
	// AgentNamespace is where the agents' pods are. Empty: nobody knows, and nothing is said about them.
	AgentNamespace string
	// Paces are how long what is not urgent waits. The zero value: the defaults.
	Paces Paces

	// adopted are the policies whose nodes this process has listed live since it leads. It only ever saves a LIST.
	adopted map[types.UID]bool
	// wrote is when this process last wrote a policy's status, to pace writes that change counts alone.
	wrote map[types.UID]time.Time
	// estimates is when this process last made a policy's estimate, to pace those that a slot waits for.
	estimates map[types.UID]time.Time
	// freed is when a slot last became free, by policy; for a metric alone.
	freed map[string]time.Time
	// freeing are the policies of which a slot can be handed over.
	freeing freeing
	// deaf are the Nodes that were not told why they wait, unmarkable those that took no mark: they have refused it.
	deaf, unmarkable refusals
	// refused are the answers to writes about granted reboots that were refused, by policy and node. Each pass makes these writes
	// again, so a new leader has the answers after its first pass.
	refused map[types.UID]map[string]plan.Refusal
	// shelf is where the cache has its Nodes, nil: it lets nobody look, or nobody has looked yet; and views are what decisions
	// look at of them.
	cache cache.Cache
	shelf shelf
	views nodeViews
	// agents are the agents' pods.
	agents agentPods
}

// Reconcile brings one policy and its nodes one step on: gather, decide, apply, report. The empty name stands for the
// nodes that no policy selects.
func (r *RebootPolicyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.freeing.begin(req.Name)
	if req.Name == "" {
		return r.reconcileUngoverned(ctx)
	}
	s, err := r.gather(ctx, req.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p, err := r.converge(ctx, s)
	if err == nil {
		r.adopted[s.Policy.UID] = true
		err = r.report(ctx, s, p)
	}
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(1).Info("Lost a race for the policy; deciding again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: s.conflictPause()}, nil
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(err, s.refused)
	}
	observe(s.Policy, p, s.Window)
	wait := r.wait(earlier(p.Next, r.askGates(ctx, s, p)), s.later)
	if s.refused != nil && (wait == 0 || wait > errorPauseMax) {
		return ctrl.Result{}, s.refused
	}
	if s.refused != nil {
		ctrl.LoggerFrom(ctx).Error(s.refused, "Some Nodes refused what was written; others are due soon")
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// wait turns the next instant, and what was put off, into a delay; 0 means until something changes.
func (r *RebootPolicyReconciler) wait(next time.Time, delayed time.Duration) time.Duration {
	if next.IsZero() {
		return delayed
	}
	// A hair more: a pass that is early decides nothing.
	until := min(max(next.Sub(r.Clock.Now()), 0), farAhead) + 10*time.Millisecond
	if delayed > 0 {
		return min(until, delayed)
	}
	return until
}

func (r *RebootPolicyReconciler) reconcileUngoverned(ctx context.Context) (ctrl.Result, error) {
	policies, err := r.policies(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	s, err := r.cachedNodes(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.keepViews(policies)
	s.Snapshot = snapshot.Of(nil, policies, s.Nodes, r.Clock.Now())
	decisions := plan.Ungoverned(s.Governor, s.Nodes)
	later, err := r.writeConditions(ctx, s, decisions)
	if err != nil {
		return ctrl.Result{}, err
	}
	observeUngoverned(decisions)
	s.putOff(later)
	later, err = r.writeMarks(ctx, s, plan.UngovernedMarks(s.Governor, s.Nodes))
	s.putOff(later)
	if err = errors.Join(err, s.refused); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.later}, nil
}

// SetupWithManager registers the controller. Both replicas warm their caches; only the leader reconciles.
func (r *RebootPolicyReconciler) SetupWithManager(mgr ctrl.Manager, edit ...func(*controller.Options)) error {
	r.adopted, r.freed = map[types.UID]bool{}, map[string]time.Time{}
	r.wrote, r.estimates = map[types.UID]time.Time{}, map[types.UID]time.Time{}
	r.cache = mgr.GetCache()
	warm := true
	options := controller.Options{
		MaxConcurrentReconciles: 1, EnableWarmup: &warm, ReconciliationTimeout: reconcileTimeout,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](errorPause, errorPauseMax),
	}
	for _, e := range edit {
		e(&options)
	}
	watch := ctrl.NewControllerManagedBy(mgr).
		Named("rebootpolicy").
		WithOptions(options).
		Watches(&v1alpha1.RebootPolicy{}, handler.EnqueueRequestsFromMapFunc(r.allPolicies), policyChanges()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.policiesOf), nodeChanges())
	if r.Gates != nil {
		watch = watch.WatchesRawSource(source.Channel(r.Gates.Woken(), &handler.EnqueueRequestForObject{}))
	}
	if r.AgentNamespace != "" {
		pods, err := newAgentCache(mgr, r.AgentNamespace)
		if err != nil {
			return err
		}
		r.agents = agentPods{cache: pods, namespace: r.AgentNamespace}
		watch = watch.WatchesRawSource(source.Func(r.watchAgents))
	}
	if err := watch.Complete(r); err != nil {
		return fmt.Errorf("registering the controller: %w", err)
	}
	return nil
}

// Unnamed lets several managers run in one process, as tests do: metrics of one name are registered once otherwise.
func Unnamed(o *controller.Options) { o.SkipNameValidation = new(true) }

// allPolicies: a change of one policy's selector or priority may hand nodes to or from any other.
func (r *RebootPolicyReconciler) allPolicies(ctx context.Context, changed client.Object) []reconcile.Request {
	requests := []reconcile.Request{request(""), request(changed.GetName())}
	policies, err := r.policies(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listed no policies for a changed policy")
		return requests
	}
	for i := range policies {
		if name := policies[i].Name; name != changed.GetName() {
			requests = append(requests, request(name))
		}
	}
	return requests
}

// policiesOf: the policy that governs the node by its labels, its rivals, and the one whose grant the node carries.
func (r *RebootPolicyReconciler) policiesOf(ctx context.Context, object client.Object) []reconcile.Request {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	policies, err := r.policies(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listed no policies for a changed node")
		return nil
	}
	names := map[string]bool{}
	g := plan.NewGovernor(policies).Govern(node.GetLabels())
	for _, rival := range g.Rivals {
		names[rival] = true
	}
	if len(g.Rivals) == 0 {
		names[g.Policy] = true
	}
	if grant, err := v1alpha1.ParseGrant(node.GetAnnotations()); err == nil && grant != nil {
		names[grant.Policy] = true
		if freesSlot(node, grant) {
			r.freeing.note(grant.Policy)
		}
	}
	for i := range policies {
		if holds(&policies[i], node.GetName()) {
			names[policies[i].Name] = true
		}
	}
	requests := make([]reconcile.Request, 0, len(names))
	for name := range names {
		requests = append(requests, request(name))
	}
	return requests
}

func holds(policy *v1alpha1.RebootPolicy, node string) bool {
	for _, e := range policy.Status.Grants {
		if e.Node == node {
			return true
		}
	}
	return false
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
