package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

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

func (r *RebootPolicyReconciler) reportStatus(ctx context.Context, s *state, p plan.Plan) (time.Duration, error) {
	after := statusOf(s.Policy, p, s.Window, s.Now)
	if equality.Semantic.DeepEqual(s.Policy.Status, after) {
		return 0, nil
	}
	if _, known := r.wrote[s.Policy.UID]; !known {
		// A new leader finds a status that somebody wrote; its counts may wait like any others.
		r.wrote[s.Policy.UID] = r.Clock.Now()
	}
	if age, pace := r.Clock.Since(r.wrote[s.Policy.UID]), r.Paces.counts(); !urgent(s.Policy.Status, after) && age < pace {
		return pace - age, nil
	}
	if s.Policy.DeletionTimestamp != nil && len(s.Policy.Finalizers) == 0 {
		return 0, nil
	}
	return 0, r.writeStatus(ctx, s, p)
}

// writeStatus PUTs the whole status with the resourceVersion the plan was made from: the ledger's compare-and-swap.
func (r *RebootPolicyReconciler) writeStatus(ctx context.Context, s *state, p plan.Plan) error {
	before := s.Policy.DeepCopy()
	status := statusOf(s.Policy, p, s.Window, s.Now)
	if busy(status) {
		status.EstimatedCompletionAt = r.estimated(s, p)
	}
	s.Policy.Status = status
	err := r.Client.Status().Update(ctx, s.Policy, client.FieldOwner(v1alpha1.FieldOwnerManager))
	if err != nil {
		s.Policy = before
		// Somebody else wrote in between: everything that was planned from the old ledger is void.
		r.adopted[before.UID] = r.adopted[before.UID] && !apierrors.IsConflict(err)
		return fmt.Errorf("writing the status of policy %q: %w", before.Name, err)
	}
	r.wrote[s.Policy.UID] = r.Clock.Now()
	r.policyEvents(before, s.Policy)
	r.gateEvents(before, s.Policy)
	r.notifyRun(before, s.Policy, p, s.Now)
	return nil
}

// consumeResume removes an administrator's word once the status shows that it was heard. A crash in between removes it
// on the next pass.
func (r *RebootPolicyReconciler) consumeResume(ctx context.Context, s *state) error {
	if _, there := s.Policy.Annotations[v1alpha1.AnnotationResume]; !there {
		return nil
	}
	before := s.Policy.DeepCopy()
	delete(s.Policy.Annotations, v1alpha1.AnnotationResume)
	return r.patchPolicy(ctx, s.Policy, before)
}
