package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// nodeWriter writes Nodes: what is due about granted reboots, each a compare-and-swap, and, where they may wait, the condition
// RebootPermitted and the node markers.
type nodeWriter struct {
	client   client.Client
	clock    clock.PassiveClock
	announce *announcer
	// freedSlot reports whether a slot of the policy can be handed over. What is written on Nodes only to explain, dozens of requests
	// one after the other, gives way to that.
	freedSlot func(policy string) bool
	// reread makes the next pass read the Node anew.
	reread func(node string)

	// conditionRefusals are the Nodes that took no condition lately, markerRefusals those that took no marker.
	conditionRefusals, markerRefusals refusals
	// refused are the answers to writes about granted reboots that were refused, by policy and node. Each pass makes these writes
	// again, so a new leader has the answers after its first pass.
	refused map[types.UID]map[string]plan.Refusal
	// undone are such writes that the API server accepted lately and that did not last, by triedKey. Every try is stored.
	undone refusals
}

// triedKey names a write about the granted reboot of a node.
func triedKey(node string, action plan.Action) string { return node + " " + string(action) }

// publish shows the Node its grant: permission and condition in one write.
func (w *nodeWriter) publish(ctx context.Context, s *state, n *plan.Node, t plan.Reboot) error {
	grant, ok := protocol.Publish(n.Record, t.Entry, s.Holder().Name, s.Now)
	if !ok {
		return nil
	}
	grant.Need, grant.Annotations, grant.Excluded = n.RequiredReason, n.AnnotationsToSet(), n.SetsExclusion(s.Policy)
	if !t.Rebooting() {
		grant.Taints = plan.TaintsThatKeepPodsOff(n.Taints)
	}
	granted := plan.Decision{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonGranted, Message: plan.GrantedMessage(s.Policy.Name, t.Entry.Seq)}
	patch := grantPatch(n, grant).Annotate(v1alpha1.AnnotationPreflight, plan.PreflightOf(s.Policy)).
		Condition(w.condition(v1alpha1.NodeRebootPermitted, granted, n.Permitted))
	setMarkers(patch, n, &grant)
	w.announceMaintenance(patch, s, n, t)
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationGrant); err != nil {
		return err
	}
	if t.Rebooting() {
		ctrl.LoggerFrom(ctx).Info("Wrote a grant again that was removed in its reboot", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq)
		return nil
	}
	if same(n.Permitted, granted) { // the condition is from an earlier write, and the grant was in that write, too
		return &undoneError{removed: true, what: []string{"annotation " + v1alpha1.AnnotationGrant}}
	}
	ctrl.LoggerFrom(ctx).Info("Granted a reboot", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "bootID", t.Entry.BootID)
	w.announce.granted(s, n, t)
	return nil
}

// cancel takes the grant back on the Node first; the ledger entry goes once the agent cannot start any more.
func (w *nodeWriter) cancel(ctx context.Context, s *state, n *plan.Node, t plan.Reboot) error {
	grant, ok := protocol.Cancel(n.Record, t.Entry, s.Holder().Name, t.Reason, t.CancelMessage(), s.Now)
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

// finish puts the node back in service. One write has the uncordon, the end of the grant and that of its markers, except those that
// stay for autoscaler.grace.
func (w *nodeWriter) finish(ctx context.Context, s *state, n *plan.Node, t plan.Reboot, uncordon bool) error {
	grant, ok := protocol.Finish(n.Record, t.Entry, s.Holder().Name, n.BootID, s.Now)
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
		patch.Taint(plan.WithPending(n.Taints, ""))
	}
	if patch.Spec == nil { // it goes to the status endpoint
		removeConditions(patch, n)
	}
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationGrant); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Confirmed a reboot", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "bootID", n.BootID)
	w.announce.finished(s, n, t, uncordon && !s.Nodes[s.index[n.Name]].Cordoned)
	return nil
}

// grantPatch writes a grant, and ends the hooks before it.
func grantPatch(n *plan.Node, grant protocol.Grant) *nodepatch.Patch {
	patch := nodepatch.New(n.ResourceVersion).Annotate(v1alpha1.AnnotationGrant, grant.String())
	endHooks(patch, n, grant.Seq)
	return patch
}

// removeConditions removes the manager's conditions.
func removeConditions(patch *nodepatch.Patch, n *plan.Node) {
	for _, c := range []*corev1.NodeCondition{n.Permitted, n.Failed, n.Planned} {
		if c != nil {
			patch.RemoveCondition(c.Type)
		}
	}
}

// hookLabels mark the node for the pods that are the hooks.
var hookLabels = map[v1alpha1.HookStage]string{
	v1alpha1.HooksBefore: v1alpha1.LabelBeforeReboot,
	v1alpha1.HooksAfter:  v1alpha1.LabelAfterReboot,
}

// beginHooks labels the node, notes when the phase began, and removes the answers of earlier times, all in one write. So no stale
// answer can be taken for one of this phase.
func (w *nodeWriter) beginHooks(ctx context.Context, s *state, n *plan.Node, t plan.Reboot) error {
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

// noteTaint notes that a startup taint keeps pods off the node, or is gone.
func (w *nodeWriter) noteTaint(ctx context.Context, s *state, n *plan.Node, t plan.Reboot) error {
	patch := nodepatch.New(n.ResourceVersion).Annotate(v1alpha1.AnnotationHooks, t.Note(s.Policy, s.Now).String())
	if err := w.patchReboot(ctx, s, n, patch, v1alpha1.AnnotationHooks); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Noted a startup taint", "Node", klog.KRef("", n.Name), "seq", t.Entry.Seq, "message", t.Message)
	return nil
}

// endHooks takes away what phases of hooks left on the node, up to that of an entry: labels, the phase and the answers. A
// phase of a higher number is another policy's, which ends it by itself.
func endHooks(patch *nodepatch.Patch, n *plan.Node, seq int64) {
	if n.Hooks != nil && n.Hooks.Seq > seq {
		return
	}
	for _, label := range hookLabels {
		if _, there := n.Labels[label]; there {
			patch.RemoveLabel(label)
		}
	}
	if _, there := n.Annotations[v1alpha1.AnnotationHooks]; there {
		patch.RemoveAnnotation(v1alpha1.AnnotationHooks)
	}
	if n.Hooks == nil {
		return
	}
	removeAnswers(patch, n, n.Hooks.Hooks)
}

// removeAnswers takes away what hooks have answered. A value that is no answer is kept: the key may be another program's,
// which a policy has named by mistake.
func removeAnswers(patch *nodepatch.Patch, n *plan.Node, hooks []v1alpha1.AnnotationKey) {
	for _, key := range hooks {
		if plan.IsAnswer(n.Annotations[string(key)]) {
			patch.RemoveAnnotation(string(key))
		}
	}
}

// patchNode writes a Node and puts what came back into the state. What only the metadata and the status change goes to
// the status endpoint, which takes both for a Node; spec goes to the main one.
func (w *nodeWriter) patchNode(ctx context.Context, s *state, n *plan.Node, p *nodepatch.Patch) error {
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
		return fmt.Errorf("writing node %q: %w", n.Name, &undoneError{what: undone})
	}
	return nil
}

// patchReboot writes a Node about a granted reboot. Only the annotation decides whether the write
// counts; an event reports what else was undone.
func (w *nodeWriter) patchReboot(ctx context.Context, s *state, n *plan.Node, p *nodepatch.Patch, annotation string) error {
	err := w.patchNode(ctx, s, n, p)
	undone, ok := errors.AsType[*undoneError](err)
	if !ok || slices.Contains(undone.what, "annotation "+annotation) {
		return err
	}
	ctrl.LoggerFrom(ctx).Error(err, "The Node does not show all that was written")
	w.announce.undone(s, n, undone)
	return nil
}

// undoneError reports that the API server accepted a write and did not keep all of it.
type undoneError struct {
	// what was written and is not there.
	what []string
	// removed: the answer to an earlier write had it, and it was removed later.
	removed bool
}

// Error implements error.
func (e *undoneError) Error() string {
	what := strings.Join(e.what, ", ")
	if e.removed {
		return "another program removed " + what + " after it was written"
	}
	return "the API server accepted the write and did not keep " + what + ": look for a mutating admission policy or webhook"
}

// isUndone reports whether the API server accepted a write and did not keep it.
func isUndone(err error) bool {
	_, undone := errors.AsType[*undoneError](err)
	return undone
}

// isRefusal reports whether the API server, or a webhook, refused or undid this very write; other
// writes may succeed.
func isRefusal(err error) bool { return isUndone(err) || nodepatch.IsRefusal(err) }

// refusedWrites are the refused writes about the granted reboots of a policy, by node, as far as its ledger still holds them.
func (w *nodeWriter) refusedWrites(policy types.UID, ledger []v1alpha1.LedgerEntry) map[string]plan.Refusal {
	maps.DeleteFunc(w.refused[policy], func(node string, _ plan.Refusal) bool {
		return !slices.ContainsFunc(ledger, func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
	})
	return maps.Clone(w.refused[policy])
}

// forget drops what is remembered of policies that are gone.
func (w *nodeWriter) forget(isGone func(types.UID) bool) {
	maps.DeleteFunc(w.refused, func(uid types.UID, _ map[string]plan.Refusal) bool { return isGone(uid) })
}

// noteAnswer keeps what the API server answered to a write about a granted reboot, and returns err. Where it was not the write that was
// refused, but a race was lost or the API server is down, the last answer stays. A webhook may phrase each answer differently, so a
// newer one is kept only after a while. The status has it, and would be written in every pass.
func (w *nodeWriter) noteAnswer(s *state, node string, err error) error {
	refused := w.refused[s.Policy.UID]
	if refused == nil {
		refused = map[string]plan.Refusal{}
		w.refused[s.Policy.UID] = refused
	}
	undone, ok := errors.AsType[*undoneError](err)
	removed := ok && undone.removed
	switch last, now := refused[node], w.clock.Now(); {
	case err == nil:
		delete(refused, node)
	case !isRefusal(err):
	case removed != last.Removed, now.Sub(last.At) >= refusedPause:
		if last.Since.IsZero() || removed != last.Removed {
			last.Since = now
		}
		refused[node] = plan.Refusal{Answer: answerOf(err), Since: last.Since, At: now, Removed: removed}
	}
	s.answered(maps.Clone(refused))
	if removed {
		w.undone.note(triedKey(node, plan.PublishGrant), w.clock.Now())
		return nil // it is there for now
	}
	return err
}

// answerOf returns what the API server answered to a write that it refused or undid.
func answerOf(err error) string {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Message
	}
	if undone, ok := errors.AsType[*undoneError](err); ok {
		return undone.Error()
	}
	return err.Error()
}

// setMarkers sets what keeps autoscalers and load balancers off the node. The new grant, which is written with it, names it.
func setMarkers(p *nodepatch.Patch, n *plan.Node, grant *protocol.Grant) {
	for _, key := range grant.Annotations {
		p.Annotate(key, plan.AutoscalerValue)
	}
	switch {
	case grant.Excluded:
		p.Label(v1alpha1.LabelExcludeFromLoadBalancers, v1alpha1.ExcludedByOperator)
	case n.RemovesExclusion():
		p.RemoveLabel(v1alpha1.LabelExcludeFromLoadBalancers) // an earlier grant left it behind
	}
}

// removeMarkers removes what the grant on the node has set. It leaves the autoscaler annotations of the grant that is written with it:
// that one has ended and keeps them for now.
func removeMarkers(p *nodepatch.Patch, n *plan.Node, grant protocol.Grant) {
	for _, key := range n.AnnotationsToRemove() {
		if !slices.Contains(grant.Annotations, key) {
			p.RemoveAnnotation(key)
		}
	}
	if n.RemovesExclusion() {
		p.RemoveLabel(v1alpha1.LabelExcludeFromLoadBalancers)
	}
}
