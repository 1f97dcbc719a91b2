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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/gate"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/timing"
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

// maxRounds is how many plans one pass makes: finish, ledger, ring, and one that finds nothing left, with room to spare.
const maxRounds = 8

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
	wait := r.wait(timing.Earliest(p.Next, r.askGates(ctx, s, p)), s.later)
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

// converge plans and applies until a plan has nothing left to do. In each round either Nodes are written, or the ledger;
// a freed slot so goes to the next node within one pass.
func (r *RebootPolicyReconciler) converge(ctx context.Context, s *state) (plan.Plan, error) {
	if err := r.hold(ctx, s); err != nil {
		return plan.Plan{}, err
	}
	tried := map[string]plan.Action{}
	for range maxRounds {
		begun, rest := plan.Begin(s.Snapshot)
		if r.applyFlights(ctx, s, begun, tried) {
			continue
		}
		p := rest()
		if !p.LedgerChanges() {
			s.slotWaits = false
			return p, r.finalize(ctx, s, p)
		}
		switch behind, err := r.confirmAdopted(ctx, s, p); {
		case err != nil:
			return p, err
		case behind, r.confirmGone(ctx, s, p):
			continue
		}
		s.slotWaits = handsOver(p)
		if len(p.Granted) > 0 {
			r.mark(ctx, s, p) // before the bell rings: the pods go somewhere within a second
		}
		if err := r.applyLedger(ctx, s, p); err != nil {
			return p, err
		}
	}
	p := plan.Reboots(s.Snapshot)
	if p.LedgerChanges() { // unconfirmed, it must not be written with what is reported
		return p, fmt.Errorf("deciding about policy %q: its nodes changed in each of %d rounds", s.Policy.Name, maxRounds)
	}
	return p, nil
}

// applyFlights writes what is due on Nodes, and tells whether it tried anything. A Node that refuses is not tried again
// in this pass, and keeps nobody else waiting.
func (r *RebootPolicyReconciler) applyFlights(ctx context.Context, s *state, p plan.Plan, tried map[string]plan.Action) bool {
	wrote := false
	for _, t := range p.UnderWay() {
		if !t.Action.WritesNode() || tried[t.Entry.Node] == t.Action {
			continue
		}
		wrote, tried[t.Entry.Node] = true, t.Action
		switch err := r.applyFlight(ctx, s, p, t); {
		case apierrors.IsNotFound(err):
			s.remove(t.Entry.Node)
		case apierrors.IsConflict(err):
			// Somebody wrote the Node in between. That may have been a heartbeat, of which no event comes.
			ctrl.LoggerFrom(ctx).V(1).Info("Lost a race for the node", "Node", klog.KRef("", t.Entry.Node), "step", t.Action)
			s.putOff(conflictPause)
		default:
			s.refused = errors.Join(s.refused, err)
		}
	}
	return wrote
}

// applyFlight does what is due about one granted reboot. It reads the Node live and decides again with it, because the
// cache may lag; the write carries the resourceVersion of that reading. A bell is rung by what the cache has, with its
// resourceVersion: that is all that the bell goes by, and hardly ever is it not the newest.
func (r *RebootPolicyReconciler) applyFlight(ctx context.Context, s *state, p plan.Plan, t plan.Flight) error {
	if t.Action == plan.RingBell {
		err := r.ring(ctx, s, s.nodes[s.index[t.Entry.Node]], t.Node, t)
		if !apierrors.IsConflict(err) {
			return r.noteAnswer(s, t.Entry.Node, err)
		}
	}
	live, err := r.liveNode(ctx, t.Entry.Node)
	if err != nil {
		return err
	}
	s.replace(snapshot.Trim(live))
	n := s.Nodes[s.index[t.Entry.Node]]
	now := p.Again(s.Snapshot, n, t.Entry)
	if now.Action != t.Action {
		return nil
	}
	switch now.Action {
	case plan.BeginHooks:
		err = r.beginHooks(ctx, s, live, n, now)
	case plan.RingBell:
		err = r.ring(ctx, s, live, n, now)
	case plan.CancelGrant:
		err = r.cancel(ctx, s, live, n, now)
	case plan.FinishGrant:
		err = r.finish(ctx, s, live, n, now)
	case plan.Wait, plan.ReleaseEntry:
	}
	return r.noteAnswer(s, t.Entry.Node, err)
}

// applyLedger writes grants, adoptions and releases in one compare-and-swap. Somebody else's write in between throws
// the whole plan away.
func (r *RebootPolicyReconciler) applyLedger(ctx context.Context, s *state, p plan.Plan) error {
	if err := r.writeStatus(ctx, s, p); err != nil {
		return err
	}
	r.observeReleases(s, p)
	return nil
}

// confirmGone asks the API server whether nodes that the cache has lost, or knows as others, are deleted for good, and reports
// whether one is not: then the plan is made again with it. A Node that cannot be read keeps its slot, as one of which nothing is
// known; the slots of others go on.
func (r *RebootPolicyReconciler) confirmGone(ctx context.Context, s *state, p plan.Plan) (behind bool) {
	for _, t := range p.Released() {
		if t.Reason != v1alpha1.ReasonNodeGone {
			continue
		}
		node, err := r.liveNode(ctx, t.Entry.Node)
		switch {
		case apierrors.IsNotFound(err), err == nil && plan.Gone(plan.NodeOf(node).Record, t.Entry):
			continue
		case err != nil:
			s.refused = errors.Join(s.refused, err)
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: t.Entry.Node, UID: t.Entry.NodeUID}}
		}
		s.put(snapshot.Trim(node))
		behind = true
	}
	return behind
}

// confirmAdopted asks the API server whether grants that a ledger takes back stand on their Nodes, and tells whether it knows
// better than the cache: a leader that was held up sees grants as active that another one has ended and released meanwhile.
func (r *RebootPolicyReconciler) confirmAdopted(ctx context.Context, s *state, p plan.Plan) (bool, error) {
	behind := false
	for _, e := range p.Adopted {
		node, err := r.liveNode(ctx, e.Node)
		switch {
		case apierrors.IsNotFound(err):
			s.remove(e.Node)
			behind = true
		case err != nil:
			return false, err
		case !new(plan.NodeOf(node)).Holds(e):
			s.replace(snapshot.Trim(node))
			behind = true
		}
	}
	return behind, nil
}

// report tells what was decided: conditions on the nodes, the status where the ledger did not change it already, and marks.
func (r *RebootPolicyReconciler) report(ctx context.Context, s *state, p plan.Plan) error {
	later, err := r.writeConditions(ctx, s, p.Decisions)
	if err != nil {
		return err
	}
	s.putOff(later)
	if later, err = r.reportStatus(ctx, s, p); err != nil {
		return err
	}
	s.putOff(later)
	if err := r.consumeResume(ctx, s); err != nil {
		return err
	}
	r.mark(ctx, s, p)
	return nil
}
