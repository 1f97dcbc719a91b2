package controllers

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// hookLabels mark the node for the pods that are the hooks.
var hookLabels = map[v1alpha1.HookStage]string{
	v1alpha1.HooksBefore: v1alpha1.LabelBeforeReboot,
	v1alpha1.HooksAfter:  v1alpha1.LabelAfterReboot,
}

// beginHooks labels the node, notes when the phase began, and removes the answers of earlier times, all in one write: no
// stale answer can be taken for one of this phase.
func (r *RebootPolicyReconciler) beginHooks(ctx context.Context, s *state, live *corev1.Node, n *plan.Node, t plan.Flight) error {
	phase := t.Begin(s.Policy, s.Now)
	patch := newNodePatch(live.ResourceVersion)
	endHooks(patch, n, math.MaxInt64)
	removeAnswers(patch, n, phase.Hooks)
	patch.annotate(v1alpha1.AnnotationHooks, phase.String()).label(hookLabels[t.Stage], "true")
	if err := r.patchNode(ctx, s, live, patch); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Began hooks", "Node", klog.KObj(live), "seq", t.Entry.Seq, "step", t.Stage)
	if len(phase.Hooks) > 0 {
		r.hooksBegan(s, live, phase)
	}
	return nil
}

// endHooks takes away what phases of hooks left on the node, up to that of an entry: labels, the phase and the answers. A
// phase of a higher number is another policy's, which ends it by itself.
func endHooks(patch *nodePatch, n *plan.Node, seq int64) {
	if n.Hooks != nil && n.Hooks.Seq > seq {
		return
	}
	for _, label := range hookLabels {
		if _, there := n.Labels[label]; there {
			patch.label(label, nil)
		}
	}
	if _, there := n.Annotations[v1alpha1.AnnotationHooks]; there {
		patch.remove(v1alpha1.AnnotationHooks)
	}
	if n.Hooks == nil {
		return
	}
	removeAnswers(patch, n, n.Hooks.Hooks)
}

// removeAnswers takes away what hooks have answered. A value that is no answer is kept: the key may be another program's,
// which a policy has named by mistake.
func removeAnswers(patch *nodePatch, n *plan.Node, hooks []v1alpha1.AnnotationKey) {
	for _, key := range hooks {
		if plan.IsAnswer(n.Annotations[string(key)]) {
			patch.remove(string(key))
		}
	}
}
