package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

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

// ring tells the node of its grant: permission and condition in one write.
func (r *RebootPolicyReconciler) ring(ctx context.Context, s *state, live *corev1.Node, n *plan.Node, t plan.Flight) error {
	grant, ok := plan.Ring(n.Record, t.Entry, s.Policy.Name, s.Now)
	if !ok {
		return nil
	}
	grant.Need, grant.Shields = n.RequiredReason, n.Raise()
	patch := newNodePatch(live.ResourceVersion).annotate(v1alpha1.AnnotationGrant, grant.String()).shield(n).
		annotate(v1alpha1.AnnotationPreflight, plan.Question(s.Policy)).
		condition(r.permitted(plan.Decision{
			Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonGranted, Message: plan.GrantedMessage(s.Policy.Name, t.Entry.Seq),
		}, n.Permitted))
	endHooks(patch, n, t.Entry.Seq)
	if err := r.patchNode(ctx, s, live, patch); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Granted a reboot", "Node", klog.KObj(live), "seq", t.Entry.Seq, "bootID", t.Entry.BootID)
	r.granted(s, live, n, t)
	return nil
}

// cancel takes the grant back on the Node first; the ledger entry goes once the agent cannot start any more.
func (r *RebootPolicyReconciler) cancel(ctx context.Context, s *state, live *corev1.Node, n *plan.Node, t plan.Flight) error {
	grant, ok := plan.Cancel(n.Record, t.Entry, s.Policy.Name, s.Now)
	if !ok {
		return nil
	}
	grant.Reason, grant.Message = t.Reason, t.CancelMessage()
	patch := newNodePatch(live.ResourceVersion).annotate(v1alpha1.AnnotationGrant, grant.String()).unshield(n)
	if n.Permitted != nil {
		patch.removeCondition(v1alpha1.NodeRebootPermitted)
	}
	endHooks(patch, n, t.Entry.Seq)
	if err := r.patchNode(ctx, s, live, patch); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Cancelled a grant", "Node", klog.KObj(live), "seq", t.Entry.Seq, "reason", t.Reason)
	r.cancelled(s, live, t)
	return nil
}

// finish puts the node back in service: the uncordon, the end of the grant and that of all it brought are one write.
func (r *RebootPolicyReconciler) finish(ctx context.Context, s *state, live *corev1.Node, n *plan.Node, t plan.Flight) error {
	grant, ok := plan.Finish(n.Record, t.Entry, s.Policy.Name, n.BootID, s.Now)
	if !ok {
		return nil
	}
	grant.Need = n.Grant.Need
	patch := newNodePatch(live.ResourceVersion).annotate(v1alpha1.AnnotationGrant, grant.String()).unshield(n)
	if n.Preflight != "" {
		patch.remove(v1alpha1.AnnotationPreflight)
	}
	uncordon := n.Progress.Cordoned && live.Spec.Unschedulable && v1alpha1.CordonIsAgents(live)
	if uncordon {
		patch.uncordon()
	}
	if n.Pending {
		patch.taint(plan.WithPending(live.Spec.Taints, false))
	}
	if patch.Spec == nil && n.Permitted != nil {
		patch.removeCondition(v1alpha1.NodeRebootPermitted)
	}
	endHooks(patch, n, t.Entry.Seq)
	if err := r.patchNode(ctx, s, live, patch); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Confirmed a reboot", "Node", klog.KObj(live), "seq", t.Entry.Seq, "bootID", n.BootID)
	r.finished(s, live, n, t, uncordon)
	return nil
}

func (r *RebootPolicyReconciler) liveNode(ctx context.Context, name string) (*corev1.Node, error) {
	var node corev1.Node
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return nil, fmt.Errorf("reading node %q: %w", name, err)
	}
	return &node, nil
}

// patchNode writes a Node and puts what came back into the state. What only the metadata and the status change goes to
// the status endpoint, which takes both for a Node; spec goes to the main one.
func (r *RebootPolicyReconciler) patchNode(ctx context.Context, s *state, node *corev1.Node, p *nodePatch) error {
	written := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}} // the answer is read into it, and node is the cache's
	owner := client.FieldOwner(v1alpha1.FieldOwnerManager)
	var err error
	if p.Spec != nil {
		err = r.Client.Patch(ctx, written, p, owner)
	} else {
		err = r.Client.Status().Patch(ctx, written, p, owner)
	}
	if err != nil {
		return fmt.Errorf("writing node %q: %w", node.Name, err)
	}
	s.replace(snapshot.Trim(written))
	return nil
}
