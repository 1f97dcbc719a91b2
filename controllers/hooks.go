package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
func (r *RebootPolicyReconciler) beginHooks(ctx context.Context, s *state, live *corev1.Node, n plan.Node, t plan.Flight) error {
	phase := v1alpha1.HookPhase{Seq: t.Entry.Seq, Stage: t.Stage, At: metav1.NewTime(s.Now)}
	patch := newNodePatch(live.ResourceVersion)
	endHooks(patch, n, s.Policy.Spec.HooksOrDefault().Of(t.Stage))
	patch.annotate(v1alpha1.AnnotationHooks, phase.String())
	patch.label(hookLabels[t.Stage], "true")
	if err := r.patchNode(ctx, s, live, patch); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Began hooks", "Node", klog.KObj(live), "seq", t.Entry.Seq, "step", t.Stage)
	return nil
}

// endHooks takes away what a phase of hooks left on the node: labels, the phase and the answers.
func endHooks(patch *nodePatch, n plan.Node, answered []v1alpha1.AnnotationKey) {
	for _, label := range hookLabels {
		if _, there := n.Labels[label]; there {
			patch.label(label, nil)
		}
	}
	if _, there := n.Annotations[v1alpha1.AnnotationHooks]; there {
		patch.remove(v1alpha1.AnnotationHooks)
	}
	for _, key := range answered {
		patch.remove(string(key))
	}
}
