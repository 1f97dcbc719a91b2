package reboot

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// apply carries out one step. A step that writes the progress makes no other write, and writes on
// the version of the Node from which it was decided. After every other step the status is written.
// Each write triggers Wake, because more may have to be done. So does a drain or a call of logind
// that starts without a write, because it must end in time.
func (r *Reconciler) apply(ctx context.Context, node *corev1.Node, o step.Observation, d step.Decision) error {
	if err := prepare(ctx, r, d); err != nil {
		return err
	}
	switch next := d.Next.(type) {
	case step.StartDrain:
		return r.startDrain(ctx, node, o, next)
	case step.CommitReboot:
		return r.commitReboot(ctx, node, o, next, d.Status)
	case step.AbortDrain:
		return r.abortDrain(ctx, node, next)
	case step.RepairRecord:
		return r.writer.write(ctx, node, progressPatch(node, next.Progress))
	case step.RecordCall:
		return recordCall(ctx, r, node, o, next)
	case step.RecordBoot:
		return r.writer.write(ctx, node, progressPatch(node, next.Progress))
	case step.RunDrain:
		if err := r.drains.run(ctx, *o.Record.Grant, next.Settings); err != nil {
			return err
		}
		r.Wake.Trigger()
	case step.EvictLeft:
		r.drains.evictLeft(ctx, *o.Record.Grant, next.Settings)
	case step.CallReboot:
		if err := r.callReboot(ctx, node, o, next); err != nil {
			return err
		}
	case step.Idle, step.Wait:
	}
	return r.writeNodeStatus(ctx, node, o, d.Status)
}

// prepare stops a drain that should not continue, and starts or ends the check of the pods.
func prepare(ctx context.Context, r *Reconciler, d step.Decision) error {
	if !d.KeepsDraining {
		if err := r.drains.stop(ctx); err != nil {
			return err
		}
	}
	return r.lookout.ask(ctx, d.Inspect)
}

// startDrain begins an attempt. Before the write it forgets earlier attempts, which may have had
// the same number: numbers start again with a new policy or a new Node. It cannot do so afterwards,
// because the reply to the write may be lost.
func (r *Reconciler) startDrain(ctx context.Context, node *corev1.Node, o step.Observation, next step.StartDrain) error {
	r.observer.forget()
	patch := progressPatch(node, next.Progress)
	patch.Cordon()
	err := r.writer.write(ctx, node, patch)
	if nodepatch.IsUndone(err) && next.Progress.Cordoned { // Only the progress shows that the cordon is the agent's.
		cordon := nodepatch.New(node.ResourceVersion)
		cordon.Uncordon()
		return errors.Join(err, r.writer.write(ctx, node, cordon))
	}
	if err != nil {
		return err
	}
	r.observer.wrote(next.Progress)
	ctrl.LoggerFrom(ctx).Info("Began to drain", "RebootPolicy", o.Record.Grant.Policy,
		"seq", next.Progress.Seq, "bootID", o.BootID)
	r.announcer.begun(node, o, next.Progress)
	return nil
}

// commitReboot writes the new phase together with its conditions. If the API server refuses the
// write, the optional parts are left out.
func (r *Reconciler) commitReboot(
	ctx context.Context, node *corev1.Node, o step.Observation, next step.CommitReboot, status step.NodeStatus,
) error {
	write := func(status step.NodeStatus) error {
		patch := progressPatch(node, next.Progress)
		addStatus(patch, node, status, o.Now)
		return r.writer.writeStatus(ctx, node, patch)
	}
	err := write(status)
	if nodepatch.IsRefusal(err) {
		err = write(status.Essential())
	}
	if err != nil {
		return err
	}
	r.observer.wrote(next.Progress)
	r.announcer.reported(ctx, node, o)
	ctrl.LoggerFrom(ctx).Info("Drained, and past the point of no return", "seq", next.Progress.Seq,
		"reason", next.Progress.Reason)
	r.announcer.committed(node, o, next)
	return nil
}

// abortDrain ends the attempt, and undoes the cordon only if it is still the agent's own. If the
// API server refuses the write, other programs may have filled the annotations of the Node. The
// record is then written without its message, which the event contains.
func (r *Reconciler) abortDrain(ctx context.Context, node *corev1.Node, next step.AbortDrain) error {
	uncordon, err := r.writer.uncordons(ctx)
	if err != nil {
		return err
	}
	write := func(progress protocol.Progress) error {
		patch := progressPatch(node, progress)
		if uncordon {
			patch.Uncordon()
		}
		return r.writer.write(ctx, node, patch)
	}
	err = write(next.Progress)
	if nodepatch.IsRefusal(err) {
		short := next.Progress
		short.Message, short.DrainStartedAt = "", nil
		err = write(short)
	}
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Aborted the drain", "seq", next.Progress.Seq,
		"reason", next.Progress.Reason, "message", next.Progress.Message)
	r.announcer.aborted(node, next, uncordon)
	return nil
}

// recordCall writes the record of the next call of logind, and forgets the outcome of the call
// before.
func recordCall(ctx context.Context, r *Reconciler, node *corev1.Node, o step.Observation, next step.RecordCall) error {
	if err := r.writer.write(ctx, node, progressPatch(node, next.Progress)); err != nil {
		return err
	}
	r.observer.wrote(next.Progress)
	r.observer.called(next.Progress.Seq, step.Call{})
	ctrl.LoggerFrom(ctx).Info("Asking logind again", "seq", next.Progress.Seq, "calls", next.Progress.Recalls+1, "bootID", o.BootID)
	return nil
}

// callReboot calls logind. A call that is accepted does not prove that the host goes down. Only the
// boot ID does.
func (r *Reconciler) callReboot(ctx context.Context, node *corev1.Node, o step.Observation, next step.CallReboot) error {
	if err := r.writer.confirm(ctx, node, o); err != nil {
		return err
	}
	err := rebootHost(ctx, r.Host, next)
	if err == nil {
		r.observer.called(o.Record.Progress.Seq, step.Call{AcceptedAt: r.Clock.Now()})
		ctrl.LoggerFrom(ctx).Info("Logind accepted the reboot", "seq", o.Record.Progress.Seq, "bootID", o.BootID)
		r.announcer.accepted(node, o)
		r.Wake.Trigger()
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the agent is stopping, maybe because of the reboot
		return fmt.Errorf("asking logind to reboot: %w", ctx.Err())
	}
	_, answered := errors.AsType[*host.RefusedError](err)
	refused := step.Call{Refusals: o.Call.Refusals + 1, RefusedAt: r.Clock.Now(), Message: refusal(err), Unanswered: !answered}
	r.observer.called(o.Record.Progress.Seq, refused)
	ctrl.LoggerFrom(ctx).Error(err, "Logind did not accept the reboot", "refusals", refused.Refusals)
	r.announcer.refused(node, refused.Message)
	r.Wake.Trigger()
	return nil
}

// rebootHost finalizes the update if the FleetLock client has not, and calls logind. rpm-ostree
// reboots the host after it finalizes an update and ignores inhibitors, so they are checked first.
func rebootHost(ctx context.Context, h Host, next step.CallReboot) error {
	if !next.Finalize || h.Finalize == nil {
		return h.Logind.Reboot(ctx, next.Inhibitors)
	}
	if next.Inhibitors != v1alpha1.ObstacleIgnore {
		blocking, err := h.Logind.BlockInhibitors(ctx)
		if err != nil {
			return err
		}
		if len(blocking) > 0 {
			return &host.RefusedError{Name: "org.freedesktop.login1.BlockedByInhibitorLock", Message: inhibited(blocking)}
		}
	}
	if err := h.Finalize(ctx); err != nil {
		return fmt.Errorf("finalizing the update: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Finalized the update, because the FleetLock client has not")
	return h.Logind.Reboot(ctx, next.Inhibitors)
}

// writeNodeStatus writes the parts of the status that the Node does not show yet. If the API server
// refuses that, it writes the conditions without the annotations, because they show whether the
// node needs a reboot.
func (r *Reconciler) writeNodeStatus(ctx context.Context, node *corev1.Node, o step.Observation, status step.NodeStatus) error {
	patch := &nodepatch.Patch{}
	if !addStatus(patch, node, status, o.Now) {
		return nil
	}
	err := r.writer.writeStatus(ctx, node, patch)
	wrote := err == nil || nodepatch.IsUndone(err)
	if essential := (&nodepatch.Patch{}); !wrote && nodepatch.IsRefusal(err) && addStatus(essential, node, status.Essential(), o.Now) {
		wrote = r.writer.writeStatus(ctx, node, essential) == nil
	}
	if wrote {
		r.announcer.reported(ctx, node, o)
	}
	if err != nil {
		return err
	}
	r.announcer.blocked(node, status.New)
	return nil
}
