package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// ledgerWriter writes policies: the status with the ledger, and the finalizer of a policy that has
// entries. It removes an administrator's resume request once it is done.
type ledgerWriter struct {
	client   client.Client
	clock    clock.PassiveClock
	paces    Paces
	announce *announcer

	memories map[types.UID]*memory
}

// memory holds what this process remembers of a policy.
type memory struct {
	// adopted reports whether its ledger has been compared with Nodes that were listed live. A
	// previous leader may have granted reboots that the cache does not show yet.
	adopted bool
	// wrote is the time of the last status that this process wrote, or zero. Changes of counts wait
	// for a while after it, and deadlines that pass from then on emit events.
	wrote time.Time
	// conflicts counts the passes in a row that ended because the policy had changed.
	conflicts int
	// estimated is the time of the last estimate, to limit the estimates that delay a slot.
	estimated time.Time
}

// of returns what is remembered of a policy.
func (l *ledgerWriter) of(policy types.UID) *memory {
	if l.memories[policy] == nil {
		l.memories[policy] = &memory{}
	}
	return l.memories[policy]
}

// noteAdopted records that the ledger has everything that Nodes show.
func (l *ledgerWriter) noteAdopted(policy types.UID) { l.of(policy).adopted = true }

// isAdopted reports whether the ledger has everything that Nodes show. Otherwise Nodes are listed
// live.
func (l *ledgerWriter) isAdopted(policy types.UID) bool { return l.of(policy).adopted }

// forget drops what is remembered of policies that are gone.
func (l *ledgerWriter) forget(isGone func(types.UID) bool) {
	maps.DeleteFunc(l.memories, func(uid types.UID, _ *memory) bool { return isGone(uid) })
}

// reportStatus writes the status if the plan changes it, or postpones the write if it can wait.
func (l *ledgerWriter) reportStatus(ctx context.Context, s *state, p plan.Plan) error {
	after := statusOf(s.Policy, p, s.Window, s.Now)
	if equality.Semantic.DeepEqual(s.Policy.Status, after) {
		return nil
	}
	known := l.of(s.Policy.UID)
	if known.wrote.IsZero() {
		// A new leader finds a status that was written before. Changes of its counts may wait like
		// any others.
		known.wrote = l.clock.Now()
	}
	if age, pace := l.clock.Since(known.wrote), l.paces.Counts; !urgent(s.Policy.Status, after) && age < pace {
		s.putOff(pace - age)
		return nil
	}
	return l.writeStatus(ctx, s, p)
}

// writeLedger writes the entries of a plan with the resourceVersion on which the plan is based,
// which is the compare-and-swap of the ledger. If the ledger is another policy's, the history and
// the run are written first. So a crash in between neither loses nor duplicates the end of a
// reboot. If the policy was paused or changed in between, that first write fails and nothing is
// granted.
func (l *ledgerWriter) writeLedger(ctx context.Context, s *state, p plan.Plan) error {
	if !s.Ledger.Apart() {
		return l.writeStatus(ctx, s, p)
	}
	switch {
	case p.RunMoves:
		if err := l.writeStatus(ctx, s, p); err != nil || !p.Ledger.Changed() {
			return err
		}
	case len(p.Released())+len(p.Ledger.Granted) > 0:
		if err := l.writeHistory(ctx, s, p); err != nil {
			return err
		}
	}
	holder := s.Ledger.Policy.DeepCopy()
	p.Ledger.Enter(holder.Name, &holder.Status)
	return l.put(ctx, s, holder)
}

// writeHistory writes how reboots ended. The rest of the status is written later.
func (l *ledgerWriter) writeHistory(ctx context.Context, s *state, p plan.Plan) error {
	after := s.Policy.DeepCopy()
	status := &after.Status
	if run, _ := p.Run(s.Policy.Status, s.Now); status.Run != nil {
		status.Run = run
	}
	status.LastRebootAt, status.History = lastReboot(s.Policy, p, s.Now), p.History(s.Policy, s.Now)
	return l.put(ctx, s, after)
}

// put writes a status. After a conflict, everything that was planned with the old ledger is
// invalid.
func (l *ledgerWriter) put(ctx context.Context, s *state, policy *v1alpha1.RebootPolicy) error {
	sent := ledgerText(policy)
	err := l.client.Status().Update(ctx, policy, client.FieldOwner(v1alpha1.FieldOwnerManager))
	if err != nil {
		if apierrors.IsConflict(err) {
			l.of(s.Policy.UID).adopted = false
		}
		return fmt.Errorf("writing the status of policy %q: %w", policy.Name, err)
	}
	s.wrote(policy)
	if ledgerText(policy) != sent {
		return fmt.Errorf("writing the status of policy %q: %w", policy.Name, &nodepatch.UndoneError{Fields: []string{"status.grants, status.seq or status.limit"}})
	}
	return nil
}

// ledgerText returns the ledger of a policy as it is sent and stored, where times have no
// fractions.
func ledgerText(policy *v1alpha1.RebootPolicy) string {
	status := &policy.Status
	data, err := json.Marshal(v1alpha1.RebootPolicyStatus{Limit: status.Limit, Seq: status.Seq, Grants: status.Grants})
	if err != nil {
		return "" // Sending it fails, too.
	}
	return string(data)
}

// writeStatus writes the whole status with the resourceVersion on which the plan is based, which is
// the compare-and-swap of the ledger.
func (l *ledgerWriter) writeStatus(ctx context.Context, s *state, p plan.Plan) error {
	before, after := s.Policy, s.Policy.DeepCopy()
	after.Status = statusOf(after, p, s.Window, s.Now)
	if busy(after.Status) {
		after.Status.EstimatedCompletionAt = l.estimated(s)
	}
	if err := l.put(ctx, s, after); err != nil {
		return err
	}
	known := l.of(after.UID)
	l.announce.notifyRun(before, after, p, s.Now)
	l.announce.policyEvents(before, after)
	l.announce.deadlineEvents(before, after, p.Deadlines, known.wrote)
	known.wrote = s.Now
	return nil
}

// consumeResume removes the resume annotation once the status shows that the policy has resumed.
// After a crash in between, the next pass removes it.
func (l *ledgerWriter) consumeResume(ctx context.Context, s *state) error {
	if _, ok := s.Policy.Annotations[v1alpha1.AnnotationResume]; !ok {
		return nil
	}
	after := s.Policy.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationResume)
	return l.patchPolicy(ctx, s, after, s.Policy)
}

// hold adds the finalizer to a policy that may grant or still has reboots, and to the policy with its
// ledger. Until both have it, no entry is added, and no run begins or ends: hold returns the error of
// the write if the plan does that.
func (l *ledgerWriter) hold(ctx context.Context, s *state, p plan.Plan) error {
	if s.unheld == nil {
		s.unheld = l.addFinalizers(ctx, s, p)
	}
	if p.RunMoves || len(p.Ledger.Granted)+len(p.Ledger.Adopted) > 0 || apierrors.IsConflict(s.unheld) {
		return s.unheld
	}
	return nil
}

func (l *ledgerWriter) addFinalizers(ctx context.Context, s *state, p plan.Plan) error {
	reports := s.Policy.Spec.ModeOrDefault() != v1alpha1.ModeEnforce && len(p.Ledger.Own())+len(p.Unlisted) == 0
	if reports || s.Policy.DeletionTimestamp != nil {
		return nil
	}
	if err := l.addFinalizer(ctx, s, s.Policy); err != nil {
		return err
	}
	return l.addFinalizer(ctx, s, s.Ledger.Policy)
}

// addFinalizer adds the finalizer to a policy that lacks it, unless it is being deleted.
func (l *ledgerWriter) addFinalizer(ctx context.Context, s *state, policy *v1alpha1.RebootPolicy) error {
	if policy.DeletionTimestamp != nil || controllerutil.ContainsFinalizer(policy, v1alpha1.Finalizer) {
		return nil
	}
	held := policy.DeepCopy()
	controllerutil.AddFinalizer(held, v1alpha1.Finalizer)
	return l.patchPolicy(ctx, s, held, policy)
}

// finalize removes the finalizer of a policy that is being deleted. Neither a ledger nor a Node may
// have a grant of it, its own ledger must not have entries of other policies, and no hook of its
// run may be pending. Before that it removes the policy's marks from nodes, because the manager may
// be uninstalled next.
func (l *ledgerWriter) finalize(ctx context.Context, s *state, p plan.Plan, nodes *nodeWriter) error {
	grants := len(p.Ledger.Own()) + len(p.Unlisted) + len(s.Policy.Status.Grants)
	if s.Policy.DeletionTimestamp == nil || grants > 0 || p.RunHooks != nil || !controllerutil.ContainsFinalizer(s.Policy, v1alpha1.Finalizer) {
		return nil
	}
	all, err := nodes.writeMarkers(ctx, s, plan.UngovernedMarkers(s.Governor, s.Nodes))
	if nodepatch.IsRefusal(err) {
		l.announce.ofPolicy(s.Policy, corev1.EventTypeWarning, v1alpha1.ReasonNodeWriteRefused, "Finalize",
			"the policy is not deleted until everything that it set on its nodes is removed: "+err.Error())
	}
	if err != nil || !all {
		return err
	}
	return l.release(ctx, s)
}

// release removes the finalizer from a policy that is being deleted.
func (l *ledgerWriter) release(ctx context.Context, s *state) error {
	after := s.Policy.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
	err := l.patchPolicy(ctx, s, after, s.Policy)
	if apierrors.IsNotFound(err) {
		s.wrote(after) // without the finalizer it may be gone
		return nil
	}
	return err
}

// patchPolicy writes metadata with the resourceVersion that was read.
func (l *ledgerWriter) patchPolicy(ctx context.Context, s *state, policy, before *v1alpha1.RebootPolicy) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := l.client.Patch(ctx, policy, patch, client.FieldOwner(v1alpha1.FieldOwnerManager)); err != nil {
		return fmt.Errorf("writing policy %q: %w", policy.Name, err)
	}
	s.wrote(policy)
	return nil
}

// estimated returns the estimate to write with a plan. A pass that hands over a slot keeps the
// current one for a while. Every other write renews it.
func (l *ledgerWriter) estimated(s *state) *metav1.Time {
	known, current := l.of(s.Policy.UID), s.Policy.Status.EstimatedCompletionAt
	lasts := current != nil && current.After(s.Now) && s.Policy.Status.ObservedGeneration == s.Policy.Generation
	if lasts && s.handedOver && l.clock.Since(known.estimated) < estimatePace {
		return current
	}
	known.estimated = l.clock.Now()
	return estimate(s.Snapshot)
}

// estimateGrain is the unit to which an estimate is rounded up, and the error up to which a
// reported estimate stays. It is for people and should not change with every reboot that takes a
// second longer.
const estimateGrain = time.Minute

// estimate returns the time when all nodes are expected to be done. A new estimate alone does not
// cause a write. What changes it much is a grant, a release, a window or a count, and each of these
// is written anyway.
func estimate(s plan.Snapshot) *metav1.Time {
	if s.Policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun {
		return nil
	}
	t := forecast.Of(s, forecast.Quick).CompletionAt
	if t.IsZero() {
		return nil
	}
	t = t.Add(estimateGrain - 1).Truncate(estimateGrain)
	current := s.Policy.Status.EstimatedCompletionAt
	if current != nil && current.After(s.Now) && t.Sub(current.Time).Abs() <= estimateGrain {
		return current
	}
	return timeOrNil(t)
}

// estimatePace is the age that an estimate may reach while slots are handed over. It is computed
// before the write that grants the slot, and with thousands of nodes it takes longer than all other
// decisions.
const estimatePace = 15 * time.Second

// handsOver reports whether a plan grants a slot that another node has returned.
func handsOver(p plan.Plan) bool { return len(p.Ledger.Granted) > 0 && len(p.Released()) > 0 }

// busy reports whether there is anything to estimate.
func busy(status v1alpha1.RebootPolicyStatus) bool {
	return status.Nodes.RebootRequired > 0 || len(status.Grants) > 0
}
