// Package reboot is the core of the agent. It reports on the Node whether the host needs a reboot,
// and acts on the manager's grant. One reconcile observes, decides and applies:
//
//	Node, host, logind, engines, drain ──► Observation ──► Decide (pure) ──► next step ──► one write, one call or nothing
//	                                                             └─────────► status ─────► one patch of nodes/status, or none
//
// An attempt is stored only in the progress annotation. A process that was killed at any point
// continues from there.
//
//	               grant Active, unseen, for this boot
//	(none, Aborted, Rebooting of an earlier boot) ────────► Draining ────────► Rebooting ──► logind, the host goes down
//	                      ▲                                    │      drained, grant still Active
//	                      └──────────────── Aborted ◄──────────┘
//	                               cancelled, timed out, undrainable, uncordoned, inhibited
//
// Every write of the progress carries the Node's resourceVersion, so it is never based on an
// outdated grant. logind is called only in phase Rebooting, and only while the host still runs the
// boot in which the attempt began. A new boot ID proves a reboot, but a new process does not.
package reboot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	// conflictRetry lets the cache catch up after a conflict. It doubles with each conflict in a
	// row, up to conflictRetryMax.
	conflictRetry, conflictRetryMax = 100 * time.Millisecond, 10 * time.Second
	// errorRetry and errorRetryMax limit the back-off of failed reconciles, so that an API server
	// that is back is noticed within a minute.
	errorRetry, errorRetryMax = 100 * time.Millisecond, time.Minute
	// reconcileLimit is the time-out of a reconcile, in case logind or the API server does not
	// answer.
	reconcileLimit = time.Minute
)

// Logind is the host's logind, implemented by host.Logind.
type Logind interface {
	BlockInhibitors(ctx context.Context) ([]host.Inhibitor, error)
	Refuses(ctx context.Context) (why string, err error)
	Reboot(ctx context.Context, inhibitors v1alpha1.Obstacle) error
	GoingDown(ctx context.Context) (bool, error)
	Logins(ctx context.Context) ([]host.Login, error)
}

// HostCoordinators finds other programs that may reboot the host. It is implemented by
// host.Coordinators.
type HostCoordinators interface {
	Other(ctx context.Context) (*host.Coordinator, error)
}

// Finalizer finalizes a staged update that is locked, so that the next boot runs it.
type Finalizer func(ctx context.Context) error

// Host gives an agent access to its host. All fields but Finalize are required.
type Host struct {
	// BootIDFile is the file with the host's boot ID, such as /proc/sys/kernel/random/boot_id.
	BootIDFile string
	// UptimeFile is the file with the host's uptime, such as /proc/uptime.
	UptimeFile string
	// Root is the path at which the host's file system is mounted.
	Root string
	// Logind reboots the host.
	Logind Logind
	// Coordinators finds the other programs that may reboot it.
	Coordinators HostCoordinators
	// Finalize finalizes an update that a FleetLock client has staged but not finalized in time.
	Finalize Finalizer
}

// Config holds the dependencies of a Reconciler. All fields are required.
type Config struct {
	// Node is the name of the agent's own Node.
	Node string
	// Host is the host of the agent.
	Host Host
	// Client acts as the node. It reads the Node from a cache.
	Client client.Client
	// Live reads the Node past the cache, and the claims and volumes of its pods, as the node.
	Live client.Reader
	// Policies reads RebootPolicies past any cache, as the agent itself.
	Policies client.Reader
	// Drainer returns the Drainer for one drain. Its evictions count for the given policy.
	Drainer func(policy string) Drainer
	// Looker checks the node's pods before that.
	Looker Looker
	// Engines are the names of the update engines of the host.
	Engines []string
	// Recorder emits events as the node.
	Recorder events.EventRecorder
	// Clock is the only clock of the agent.
	Clock clock.Clock
}

// Reconciler acts on one Node. Everything that it and its parts remember may be lost with the
// process: the next process reads it from the Node and the host.
type Reconciler struct {
	Config

	// Wake triggers a reconcile. The parts below do so, too.
	Wake Wake
	// drains empties the node.
	drains *drains
	// lookout checks the node's pods before that.
	lookout *lookout
	// Reports holds what the engines report.
	Reports *Reports
	// announcer emits events as the node.
	announcer *announcer

	writer   *nodeWriter
	observer *observer
	refusals *refusals
	// conflicts counts the conflicts in a row.
	conflicts int
}

// New returns a Reconciler with its parts.
func New(config Config) *Reconciler {
	wake := newWake(config.Node)
	drains := newDrains(config.Node, config.Drainer, config.Clock, wake)
	lookout := newLookout(config.Node, config.Looker, config.Policies, config.Clock, wake)
	reports := newReports(wake, config.Engines...)
	return &Reconciler{
		Config: config, Wake: wake, drains: drains, lookout: lookout, Reports: reports, announcer: newAnnouncer(config.Recorder),
		refusals: &refusals{clock: config.Clock},
		writer:   &nodeWriter{name: config.Node, client: config.Client, live: config.Live, clock: config.Clock, wake: wake},
		observer: &observer{
			node: config.Node, host: config.Host, live: config.Live, policies: config.Policies, drains: drains, lookout: lookout,
			reports: reports, clock: config.Clock,
		},
	}
}

// SetupWithManager adds the reconciler and its background tasks to a manager. The options apply
// except for those that it sets itself.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if err := errors.Join(mgr.Add(r.drains), mgr.Add(r.lookout)); err != nil {
		return fmt.Errorf("adding the drains and the lookout: %w", err)
	}
	// Background tasks read the Node, too, so the informer must not wait for the controller.
	_, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the Node: %w", err)
	}
	options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](errorRetry, errorRetryMax)
	options.ReconciliationTimeout = reconcileLimit
	err = ctrl.NewControllerManagedBy(mgr).
		Named("agent").
		For(&corev1.Node{}, ofInterest()).
		WatchesRawSource(r.Wake.source()).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the agent's controller: %w", err)
	}
	return nil
}

// CheckWrites implements healthz.Checker. It fails while the API server refuses the agent's writes
// to its Node.
func (r *Reconciler) CheckWrites(request *http.Request) error { return r.refusals.check(request) }

// Reconcile observes, decides and applies. A decision may require more facts first. The request is
// ignored, because there is only one Node.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	node, err := r.writer.node(ctx)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, errors.Join(r.drains.stop(ctx), r.lookout.ask(ctx, nil))
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the Node: %w", err)
	}
	o, err := r.observer.observe(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := step.Decide(o)
	for ; d.Missing != step.FactNone; d = step.Decide(o) {
		r.observer.find(ctx, &o, d.Missing)
	}
	r.announcer.notice(node, o, r.drains.of(o.Record.Last().Seq).blocked)
	err = r.apply(ctx, node, o, d)
	r.refusals.note(err)
	r.announcer.unwritten(node, d.Next, err)
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(4).Info("The Node has changed; deciding again", "reason", err.Error())
		r.writer.refused()
		r.conflicts++
		return ctrl.Result{RequeueAfter: timing.Backoff(r.conflicts, conflictRetry, conflictRetryMax)}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.conflicts = 0
	return ctrl.Result{RequeueAfter: until(d, r.Clock.Now())}, nil
}

// until returns the time until the next change without an event, or 0 if none is expected.
func until(d step.Decision, now time.Time) time.Duration {
	due := d.Status.Again
	if wait, ok := d.Next.(step.Wait); ok {
		due = timing.Earliest(due, wait.Until)
	}
	if due.IsZero() {
		return 0
	}
	return max(due.Sub(now), time.Millisecond)
}

// Wake lets events outside the API server, such as an engine's report or the end of a drain,
// trigger a reconcile.
type Wake struct {
	node     string
	triggers chan event.GenericEvent
}

// newWake returns a Wake for the agent of a node.
func newWake(node string) Wake { return Wake{node: node, triggers: make(chan event.GenericEvent, 1)} }

// Trigger causes a reconcile that begins after now. It never blocks, because one pending reconcile
// is enough.
func (w Wake) Trigger() {
	select {
	case w.triggers <- event.GenericEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node}}}:
	default:
	}
}

func (w Wake) source() source.Source {
	return source.Channel(w.triggers, &handler.EnqueueRequestForObject{})
}
