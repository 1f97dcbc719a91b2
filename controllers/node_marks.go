package controllers

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// mark writes the marks of a plan. They permit nothing and forbid nothing: one that cannot be written keeps no reboot
// waiting, and no instant at which time alone changes something.
func (r *RebootPolicyReconciler) mark(ctx context.Context, s *state, p plan.Plan) {
	later, err := r.writeMarks(ctx, s, p.Marks)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Did not mark all nodes for schedulers and autoscalers")
		s.putOff(refusedPause)
	}
	s.putOff(later)
}

// writeMarks sets and removes the pending taint, and takes away what grants that are over have left. Taints are one list
// with many writers, so each write carries the resourceVersion of what it was made from; who loses a race comes again. It
// returns how long to wait before the rest. As many are written at once as conditions, and for the same reason.
func (r *RebootPolicyReconciler) writeMarks(ctx context.Context, s *state, marks []plan.Mark) (time.Duration, error) {
	var later time.Duration
	var errs []error
	written := 0
	for _, m := range marks {
		i, ok := s.index[m.Node]
		wait := r.unmarkable.waits(m.Node, r.Clock.Now())
		if later = cmp.Or(later, wait); wait > 0 || !ok {
			continue
		}
		if r.enough(s, written) {
			return conditionsPause, errors.Join(errs...)
		}
		written++
		switch err := r.writeMark(ctx, s, s.nodes[i], m); {
		case apierrors.IsConflict(err):
			ctrl.LoggerFrom(ctx).V(1).Info("Lost a race for the taints of a node", "Node", klog.KRef("", m.Node))
			later = conflictPause
		case err != nil && !apierrors.IsNotFound(err):
			if isRefusal(err) {
				r.unmarkable.note(m.Node, r.Clock.Now())
			}
			errs = append(errs, err)
		}
	}
	return later, errors.Join(errs...)
}

func (r *RebootPolicyReconciler) writeMark(ctx context.Context, s *state, node *corev1.Node, m plan.Mark) error {
	n := s.Nodes[s.index[m.Node]]
	patch := newNodePatch(node.ResourceVersion)
	if m.Unshield {
		grant := *n.Grant
		grant.Shields = nil
		patch.annotate(v1alpha1.AnnotationGrant, grant.String()).unshield(n)
	}
	if n.Pending != m.Pending {
		patch.taint(plan.WithPending(node.Spec.Taints, m.Pending))
	}
	return r.patchNode(ctx, s, node, patch)
}
