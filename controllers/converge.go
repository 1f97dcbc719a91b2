package controllers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// maxRounds is how many plans one pass makes: finish, ledger, ring, and one that finds nothing left, with room to spare.
const maxRounds = 8

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

// hold puts the finalizer on a policy that may grant, before its ledger can have an entry.
func (r *RebootPolicyReconciler) hold(ctx context.Context, s *state) error {
	grants := s.Policy.Spec.ModeOrDefault() == v1alpha1.ModeEnforce && s.Policy.DeletionTimestamp == nil
	if !grants || controllerutil.ContainsFinalizer(s.Policy, v1alpha1.Finalizer) {
		return nil
	}
	before := s.Policy.DeepCopy()
	controllerutil.AddFinalizer(s.Policy, v1alpha1.Finalizer)
	return r.patchPolicy(ctx, s.Policy, before)
}

// finalize lets a policy go that is being deleted and has no grant left. First the nodes lose what they carry for no
// policy any more: the manager may be uninstalled next.
func (r *RebootPolicyReconciler) finalize(ctx context.Context, s *state, p plan.Plan) error {
	if s.Policy.DeletionTimestamp == nil || len(p.Ledger()) > 0 || !controllerutil.ContainsFinalizer(s.Policy, v1alpha1.Finalizer) {
		return nil
	}
	later, err := r.writeMarks(ctx, s, plan.UngovernedMarks(s.Governor, s.Nodes))
	s.putOff(later)
	if later > 0 || err != nil {
		return err
	}
	before := s.Policy.DeepCopy()
	controllerutil.RemoveFinalizer(s.Policy, v1alpha1.Finalizer)
	return client.IgnoreNotFound(r.patchPolicy(ctx, s.Policy, before))
}

// patchPolicy writes metadata with the resourceVersion that was read.
func (r *RebootPolicyReconciler) patchPolicy(ctx context.Context, policy, before *v1alpha1.RebootPolicy) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, policy, patch, client.FieldOwner(v1alpha1.FieldOwnerManager)); err != nil {
		return fmt.Errorf("writing policy %q: %w", policy.Name, err)
	}
	return nil
}
