// Package controllers implements the manager. It builds a snapshot of a RebootPolicy and the nodes,
// lets controllers/plan decide, and applies the plan to Nodes and the policy's status.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/gate"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// reconcileTimeout is the time-out of one pass. A pass that hangs must not outlive two leases.
const reconcileTimeout = time.Minute

// conflictPause lets the cache catch up after a conflict before the next decision. listPause is
// used instead if that decision lists all nodes. They double with each conflict in a row, up to
// errorPauseMax.
const conflictPause, listPause = 50 * time.Millisecond, time.Second

// errorPause and errorPauseMax limit the back-off of passes that end with an error. The limit is
// short because windows open and close, and results of gates expire.
const errorPause, errorPauseMax = 50 * time.Millisecond, 30 * time.Second

// farAhead is the longest delay that is requested, because timers do not notice a clock that is set
// or a machine that was suspended.
const farAhead = 10 * time.Minute

// maxRounds is the number of plans that one pass makes at most: finish, ledger, publish, and one
// that finds nothing to do, doubled for safety.
const maxRounds = 8

// RebootPolicyReconciler decides about one policy at a time. It has one worker, because a decision
// about the limit depends on all nodes of a policy. Two workers would waste effort but grant
// nothing twice, because every important write is a compare-and-swap.
type RebootPolicyReconciler struct {
	// Client reads from the cache and writes. It must read its own writes.
	Client client.Client
	// Live reads from the API server, for what must not be stale.
	Live client.Reader
	// Recorder emits events on Nodes and policies.
	Recorder events.EventRecorder
	// Clock is the only source of time.
	Clock clock.PassiveClock
	// Gates queries spec.gates.prometheus and spec.gates.objects. If it is nil, policies with such
	// gates grant nothing.
	Gates *gate.Evaluator
	// Notifier notifies the services of spec.notify. It may be nil.
	Notifier *notify.Notifier
	// AgentNamespace is the namespace of the agents' pods. If it is empty, nothing is reported
	// about them.
	AgentNamespace string
	// Paces are the delays of changes that are not urgent.
	Paces Paces
	// RebootInterval is the time that a node must be back in service before it may be rebooted
	// again.
	RebootInterval time.Duration
	// Metrics are updated after decisions and writes.
	Metrics *Metrics

	// fleet reads, and nodes and ledger write. Both writers report through announce.
	fleet    fleetReader
	nodes    nodeWriter
	ledger   ledgerWriter
	announce announcer
}

// assemble creates the parts of the reconciler from its exported fields.
func (r *RebootPolicyReconciler) assemble() {
	r.announce = announcer{recorder: r.Recorder, notifier: r.Notifier, clock: r.Clock, metrics: r.Metrics, freedAt: map[string]time.Time{}}
	r.fleet = fleetReader{client: r.Client, live: r.Live, paces: r.Paces, nodes: newState(nil)}
	r.nodes = nodeWriter{
		client: r.Client, clock: r.Clock, freedSlot: r.fleet.freedSlot, reread: r.fleet.reread, refused: map[types.UID]map[string]underway.Refusal{}, announce: &r.announce,
	}
	r.ledger = ledgerWriter{client: r.Client, clock: r.Clock, paces: r.Paces, announce: &r.announce, memories: map[types.UID]*memory{}}
}

// Reconcile gathers, decides, applies and reports for one policy and its nodes. The empty name
// stands for the nodes that no policy selects.
func (r *RebootPolicyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.fleet.beginPass(req.Name)
	if req.Name == "" {
		return r.reconcileUngoverned(ctx)
	}
	s, err := r.gather(ctx, req.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p, err := r.converge(ctx, s)
	if err == nil {
		r.ledger.noteAdopted(s.Policy.UID)
		r.Metrics.observe(s.Policy, p, s.Window, attention.Of(&p, s.Policy, s.Now)...)
		err = r.report(ctx, s, p)
	} else if nodepatch.IsRefusal(err) { // Nodes still show why they wait if the ledger cannot be written.
		r.announce.ofPolicy(s.Policy, corev1.EventTypeWarning, v1alpha1.EventPolicyWriteRefused, "WriteStatus", answerOf(err))
		err = errors.Join(err, r.nodes.writeConditions(ctx, s, p.Waiting()))
	}
	known := r.ledger.of(s.Policy.UID)
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(4).Info("The policy has changed; deciding again", "reason", err.Error())
		known.conflicts++
		return ctrl.Result{RequeueAfter: timing.Backoff(known.conflicts, s.conflictPause(), errorPauseMax)}, nil
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(err, s.refused)
	}
	known.conflicts = 0
	next := p.Next
	if p.WaitsForGates {
		next = timing.Earliest(next, r.Gates.Ask(ctx, s.Policy))
	}
	s.putOffUntil(next, r.Clock.Now())
	if s.refused != nil && (s.later == 0 || s.later > errorPauseMax) {
		return ctrl.Result{}, s.refused
	}
	if s.refused != nil {
		ctrl.LoggerFrom(ctx).Error(s.refused, "Some writes failed; trying again after work that is due sooner")
	}
	return ctrl.Result{RequeueAfter: s.later}, nil
}

func (r *RebootPolicyReconciler) reconcileUngoverned(ctx context.Context) (ctrl.Result, error) {
	policies, err := reading.Policies(ctx, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	s, err := r.fleet.cachedNodes(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.look(nil, policies, r.Clock.Now())
	decisions := plan.Ungoverned(s.Governor, s.Nodes)
	if err := r.nodes.writeConditions(ctx, s, decisions); err != nil {
		return ctrl.Result{}, err
	}
	r.Metrics.gauges.setUngoverned(decisions)
	_, err = r.nodes.writeMarkers(ctx, s, plan.UngovernedMarkers(s.Governor, s.Nodes))
	if err = errors.Join(err, s.refused); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.later}, nil
}

// gather reads everything on which a decision about the policy depends. It returns nil if the
// policy is gone.
func (r *RebootPolicyReconciler) gather(ctx context.Context, name string) (*state, error) {
	policies, err := reading.Policies(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
	if i < 0 {
		r.forget(name, policies)
		return nil, nil
	}
	policy := policies[i].DeepCopy()
	nodes := r.fleet.cachedNodes
	if !r.ledger.isAdopted(policy.UID) {
		nodes = r.fleet.liveNodes
	}
	s, err := nodes(ctx)
	if err != nil {
		return nil, err
	}
	s.look(policy, policies, r.Clock.Now())
	s.RebootInterval = r.RebootInterval
	s.Gates, s.GatesInvalid = r.Gates.Answers(&policy.Spec), r.Gates.Invalid(&policy.Spec)
	s.Refused = r.nodes.refusedWrites(policy.UID, s.Ledger.Policy.Status.Grants)
	if s.Agents, err = r.fleet.readAgents(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// forget drops what is remembered of a policy that is gone.
func (r *RebootPolicyReconciler) forget(name string, remaining []v1alpha1.RebootPolicy) {
	exists := make(map[types.UID]bool, len(remaining))
	for i := range remaining {
		exists[remaining[i].UID] = true
	}
	isGone := func(uid types.UID) bool { return !exists[uid] }
	r.ledger.forget(isGone)
	r.nodes.forget(isGone)
	r.announce.forget(name)
}

// converge plans and applies until nothing is left to do: it finishes what is under way on Nodes, or
// else writes the ledger, or else is done. So a freed slot goes to the next node within one pass.
func (r *RebootPolicyReconciler) converge(ctx context.Context, s *state) (plan.Plan, error) {
	tried := map[string]underway.Action{}
	for range maxRounds {
		p := plan.Of(s.Snapshot)
		if r.applyReboots(ctx, s, p, tried) {
			continue
		}
		if err := r.ledger.hold(ctx, s, p); err != nil {
			return p, err
		}
		if !p.StatusMoves() {
			s.handOver(false)
			s.fail(s.unheld)
			return p, r.ledger.finalize(ctx, s, p, &r.nodes)
		}
		if err := r.applyLedger(ctx, s, p); err != nil {
			return p, err
		}
	}
	p := plan.Of(s.Snapshot)
	if p.StatusMoves() { // an unconfirmed ledger must not be written with the report
		return p, fmt.Errorf("deciding about policy %q: its nodes changed in each of %d rounds", s.Policy.Name, maxRounds)
	}
	s.fail(s.unheld)
	return p, nil
}

// applyLedger writes the ledger, unless a live read shows that the plan was made with older Nodes.
func (r *RebootPolicyReconciler) applyLedger(ctx context.Context, s *state, p plan.Plan) error {
	behind, err := r.fleet.confirmAdopted(ctx, s, p)
	if err != nil || behind || r.fleet.confirmReleased(ctx, s, p) {
		return err
	}
	s.handOver(handsOver(p))
	if len(p.Ledger.Granted) > 0 {
		r.nodes.writePlanMarkers(ctx, s, p) // before the grant is published, because its pods are rescheduled within a second
	}
	if err := r.ledger.writeLedger(ctx, s, p); err != nil {
		return err // after a conflict the whole plan is invalid
	}
	r.announce.observeReleases(ctx, s, p)
	return nil
}

// report writes the decision: the status if it was not written with the ledger, conditions on the
// nodes, and markers. The status comes first, because nothing else can explain why no Node can be
// written while a webhook is down. A refused status does not prevent the writes of Nodes.
func (r *RebootPolicyReconciler) report(ctx context.Context, s *state, p plan.Plan) error {
	var err error
	if s.Policy.DeletionTimestamp == nil || len(s.Policy.Finalizers) > 0 { // otherwise the policy is gone
		err = r.ledger.reportStatus(ctx, s, p)
		if err == nil {
			err = r.ledger.consumeResume(ctx, s)
		}
	}
	if err != nil && !nodepatch.IsRefusal(err) {
		return err
	}
	if err := errors.Join(err, r.nodes.writeConditions(ctx, s, p.Decisions)); err != nil {
		return err
	}
	r.nodes.writePlanMarkers(ctx, s, p)
	return nil
}
