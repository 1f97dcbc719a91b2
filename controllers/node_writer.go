package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// nodeWriter writes Nodes: the steps of granted reboots, each with a compare-and-swap, and with
// lower priority the condition RebootPermitted and the node markers.
type nodeWriter struct {
	client   client.Client
	clock    clock.PassiveClock
	announce *announcer
	// freedSlot reports whether a slot of the policy can be handed over. Writes that only explain,
	// which may be dozens of requests in sequence, wait for that.
	freedSlot func(policy string) bool
	// reread makes the next pass read the Node again.
	reread func(node string)

	// conditionRefusals and markerRefusals are the Nodes that recently refused either.
	conditionRefusals, markerRefusals refusals
	// refused holds the responses to refused writes about granted reboots, by policy and node. Each
	// pass repeats these writes, so a new leader has the responses after its first pass.
	refused map[types.UID]map[string]underway.Refusal
	// undone are writes about granted reboots that were accepted but did not last, by triedKey.
	undone refusals
}

// triedKey identifies a write about the granted reboot of a node.
func triedKey(node string, action underway.Action) string { return node + " " + string(action) }

// publish writes the grant to the Node together with its condition.
func (w *nodeWriter) publish(ctx context.Context, s *state, n *record.Node, t underway.Reboot) error {
	grant, ok := protocol.Publish(n.Record, t.Entry, s.Ledger.Policy.Name, s.Now)
	if !ok {
		return nil
	}
	grant.Need, grant.Annotations, grant.Excluded = n.RequiredReason, n.AnnotationsToSet(), n.SetsExclusion(s.Policy)
	grant.Unremediated = n.SetsRemediation()
	if !t.Rebooting() || n.BootID == t.Entry.BootID { // A later boot may have added taints.
		grant.Taints = record.TaintsThatKeepPodsOff(n.Taints)
	}
	granted := plan.Decision{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonGranted, Message: plan.GrantedMessage(s.Policy.Name, t.Entry.Seq)}
	patch := grantPatch(n, grant).Annotate(v1alpha1.AnnotationPreflight, gates.PodsOf(s.Policy).Preflight()).
		Condition(w.condition(v1alpha1.NodeRebootPermitted, granted, n.Permitted))
	setMarkers(patch, n, &grant)
	w.announceMaintenance(patch, s, n, t)
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationGrant); err != nil {
		return errors.Join(err, w.unmark(ctx, s, n.Name, grant, err))
	}
	if t.Rebooting() {
		ctrl.LoggerFrom(ctx).Info("Wrote a grant again that was removed in its reboot", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq)
		return nil
	}
	if same(n.Permitted, granted) { // The condition comes from an earlier write that also contained the grant.
		return &nodepatch.UndoneError{Removed: true, Fields: []string{"annotation " + v1alpha1.AnnotationGrant}}
	}
	ctrl.LoggerFrom(ctx).Info("Granted a reboot", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "bootID", t.Entry.BootID)
	w.announce.granted(s, n, t)
	return nil
}

// cancel cancels the grant on the Node. The entry leaves the ledger once the agent cannot start.
func (w *nodeWriter) cancel(ctx context.Context, s *state, n *record.Node, t underway.Reboot) error {
	grant, ok := protocol.Cancel(n.Record, t.Entry, s.Ledger.Policy.Name, t.Reason, t.CancelMessage(), s.Now)
	if !ok {
		return nil
	}
	grant.Annotations = n.AnnotationsToKeep(s.Policy)
	patch := grantPatch(n, grant)
	removeMarkers(patch, n, grant)
	removeConditions(patch, n)
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationGrant); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Cancelled a grant", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "reason", t.Reason)
	w.announce.cancelled(s, n, t)
	return nil
}

// finish puts the node back in service. Markers may stay for autoscaler.grace.
func (w *nodeWriter) finish(ctx context.Context, s *state, n *record.Node, t underway.Reboot, uncordon bool) error {
	grant, ok := protocol.Finish(n.Record, t.Entry, s.Ledger.Policy.Name, n.BootID, s.Now)
	if !ok {
		return nil
	}
	grant.Need, grant.Annotations = n.Grant.Need, n.AnnotationsToKeep(s.Policy)
	patch := grantPatch(n, grant)
	removeMarkers(patch, n, grant)
	if n.Preflight != "" {
		patch.RemoveAnnotation(v1alpha1.AnnotationPreflight)
	}
	if uncordon {
		patch.Uncordon()
	}
	if n.Pending != "" {
		patch.Taint(record.WithPending(n.Taints, ""))
	}
	if patch.Spec == nil { // the patch goes to the status endpoint
		removeConditions(patch, n)
	}
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationGrant); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Confirmed a reboot", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "bootID", n.BootID)
	w.announce.finished(s, n, t, uncordon && !s.Nodes[s.index[n.Name]].Cordoned)
	return nil
}

func grantPatch(n *record.Node, grant protocol.Grant) *nodepatch.Patch {
	patch := nodepatch.New(n.ResourceVersion).Annotate(v1alpha1.AnnotationGrant, grant.String())
	endHooks(patch, n, grant.Seq)
	return patch
}

func removeConditions(patch *nodepatch.Patch, n *record.Node) {
	for _, c := range []*corev1.NodeCondition{n.Permitted, n.Failed, n.Planned} {
		if c != nil {
			patch.RemoveCondition(c.Type)
		}
	}
}

// hookLabels mark the node for hooks that are pods.
var hookLabels = map[v1alpha1.HookStage]string{
	v1alpha1.HooksBefore: v1alpha1.LabelBeforeReboot,
	v1alpha1.HooksAfter:  v1alpha1.LabelAfterReboot,
}

// beginHooks labels the node, records the phase, and removes old answers in a single write.
func (w *nodeWriter) beginHooks(ctx context.Context, s *state, n *record.Node, t underway.Reboot) error {
	phase := t.Begin(s.Policy, s.Now)
	patch := nodepatch.New(n.ResourceVersion)
	endHooks(patch, n, math.MaxInt64)
	removeAnswers(patch, n, phase.Hooks)
	patch.Annotate(v1alpha1.AnnotationHooks, phase.String()).Label(hookLabels[t.Stage], "true")
	if t.Stage == v1alpha1.HooksBefore {
		w.announceMaintenance(patch, s, n, t)
	}
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationHooks); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Began hooks", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "step", t.Stage)
	if len(phase.Hooks) > 0 {
		w.announce.hooksBegan(s, n, phase)
	}
	return nil
}

// noteTaint records whether a startup taint keeps pods off the node.
func (w *nodeWriter) noteTaint(ctx context.Context, s *state, n *record.Node, t underway.Reboot) error {
	patch := nodepatch.New(n.ResourceVersion).Annotate(v1alpha1.AnnotationHooks, t.Note(s.Policy, s.Now).String())
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationHooks); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Noted a startup taint", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "message", t.Message)
	return nil
}

// endHooks removes what phases of hooks up to that of an entry have left on the node: labels, the
// phase and the answers. A phase with a higher number belongs to another policy, which ends it.
func endHooks(patch *nodepatch.Patch, n *record.Node, seq int64) {
	if n.Hooks != nil && n.Hooks.Seq > seq {
		return
	}
	for _, label := range hookLabels {
		if _, ok := n.Labels[label]; ok {
			patch.RemoveLabel(label)
		}
	}
	if _, ok := n.Annotations[v1alpha1.AnnotationHooks]; ok {
		patch.RemoveAnnotation(v1alpha1.AnnotationHooks)
	}
	if n.Hooks == nil {
		return
	}
	removeAnswers(patch, n, n.Hooks.Hooks)
}

// removeAnswers removes the answers of hooks. Other values may belong to another program.
func removeAnswers(patch *nodepatch.Patch, n *record.Node, hooks []v1alpha1.AnnotationKey) {
	for _, key := range hooks {
		if record.IsAnswer(n.Annotations[string(key)]) {
			patch.RemoveAnnotation(string(key))
		}
	}
}

// patchNode writes a Node and stores the result in the state. A patch of metadata and status goes
// to the status endpoint, which accepts both for a Node. A patch of the spec goes to the main one.
func (w *nodeWriter) patchNode(ctx context.Context, s *state, n *record.Node, p *nodepatch.Patch) error {
	written := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	owner := client.FieldOwner(v1alpha1.FieldOwnerManager)
	var err error
	if p.Spec != nil {
		err = w.client.Patch(ctx, written, p, owner)
	} else {
		err = w.client.Status().Patch(ctx, written, p, owner)
	}
	if err != nil {
		return fmt.Errorf("writing node %q: %w", n.Name, err)
	}
	w.reread(n.Name)
	s.replace(snapshot.Trim(written))
	if undone := p.Undone(written); len(undone) > 0 {
		return fmt.Errorf("writing node %q: %w", n.Name, &nodepatch.UndoneError{Fields: undone})
	}
	return nil
}

// patchReboot writes a Node about a granted reboot. Only the annotation must last.
func (w *nodeWriter) patchReboot(ctx context.Context, s *state, n *record.Node, p *nodepatch.Patch, annotation string) error {
	err := w.patchNode(ctx, s, n, p)
	undone, ok := errors.AsType[*nodepatch.UndoneError](err)
	if !ok || slices.Contains(undone.Fields, "annotation "+annotation) {
		return err
	}
	ctrl.LoggerFrom(ctx).Error(err, "The Node does not show all that was written")
	w.announce.undone(s, n, undone)
	return nil
}

// refusedWrites returns the refused writes about the granted reboots in a ledger, by node.
func (w *nodeWriter) refusedWrites(policy types.UID, ledger []v1alpha1.LedgerEntry) map[string]underway.Refusal {
	maps.DeleteFunc(w.refused[policy], func(node string, _ underway.Refusal) bool {
		return !slices.ContainsFunc(ledger, func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
	})
	return maps.Clone(w.refused[policy])
}

// forget drops what is remembered of policies that are gone.
func (w *nodeWriter) forget(isGone func(types.UID) bool) {
	maps.DeleteFunc(w.refused, func(uid types.UID, _ map[string]underway.Refusal) bool { return isGone(uid) })
}

// noteAnswer stores the API server's response to a write about a granted reboot, and returns err.
// After a conflict or an outage, which are not refusals, the last response stays. A webhook may
// phrase each response differently, and the status contains it and would be written in every pass,
// so a newer one is stored only after a while.
func (w *nodeWriter) noteAnswer(s *state, node string, err error) error {
	refused := w.refused[s.Policy.UID]
	if refused == nil {
		refused = map[string]underway.Refusal{}
		w.refused[s.Policy.UID] = refused
	}
	undone, ok := errors.AsType[*nodepatch.UndoneError](err)
	removed := ok && undone.Removed
	switch last, now := refused[node], w.clock.Now(); {
	case err == nil:
		delete(refused, node)
	case !nodepatch.IsRefusal(err):
	case removed != last.Removed, now.Sub(last.At) >= refusedPause:
		if last.Since.IsZero() || removed != last.Removed {
			last.Since = now
		}
		refused[node] = underway.Refusal{Answer: answerOf(err), Since: last.Since, At: now, Removed: removed}
	}
	s.answered(maps.Clone(refused))
	if removed {
		w.undone.note(triedKey(node, underway.PublishGrant), w.clock.Now())
		return nil // the write is there for now
	}
	return err
}

// answerOf returns the API server's message for a write that it refused or undid.
func answerOf(err error) string {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Message
	}
	if undone, ok := errors.AsType[*nodepatch.UndoneError](err); ok {
		return undone.Error()
	}
	return err.Error()
}
