package controllers

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

const (
	// conditionsPerPass and conditionsPause spread the conditions of thousands of waiting nodes: when a window opens,
	// every one of them has a new reason.
	conditionsPerPass = 50
	conditionsPause   = time.Second
	// conditionsAtLeast are written even while slots can be handed over: somebody waits for the explanation, too.
	conditionsAtLeast = 2
)

// writeConditions brings RebootPermitted up to date where status, reason or message differ; they permit nothing, so they
// need no compare-and-swap: of the agent, which removes one when the need falls, the next pass hears. A node is not told what
// holds for a moment, and one that refuses keeps no other waiting. It returns how long to wait before the rest.
func (r *RebootPolicyReconciler) writeConditions(ctx context.Context, s *state, decisions []plan.Decision) (time.Duration, error) {
	written := 0
	for _, d := range decisions {
		i, ok := s.index[d.Node]
		if !ok || d.Brief || same(permittedOf(s.nodes[i]), d) && s.Nodes[i].Preflight == d.Preflight {
			continue
		}
		if wait := r.deaf.waits(d.Node, r.Clock.Now()); wait > 0 {
			s.putOff(wait)
			continue
		}
		if r.enough(s, written) {
			return conditionsPause, nil
		}
		written++
		switch err := r.writeCondition(ctx, s, s.nodes[i], d); {
		case isRefusal(err):
			r.deaf.note(d.Node, r.Clock.Now())
			s.refused = errors.Join(s.refused, err)
		case err != nil:
			return 0, err
		}
	}
	return 0, nil
}

// enough tells whether a pass has written as many conditions, or marks, as it may.
func (r *RebootPolicyReconciler) enough(s *state, written int) bool {
	if written < conditionsAtLeast || written >= conditionsPerPass {
		return written >= conditionsPerPass
	}
	return s.slotWaits || s.Policy != nil && r.freeing.noted(s.Policy.Name)
}

func (r *RebootPolicyReconciler) writeCondition(ctx context.Context, s *state, node *corev1.Node, d plan.Decision) error {
	before := permittedOf(node).DeepCopy()
	patch := newNodePatch("")
	if d.Status == "" {
		patch.removeCondition(v1alpha1.NodeRebootPermitted)
	} else {
		patch.condition(r.permitted(d, before))
	}
	ask(patch, s.Nodes[s.index[d.Node]].Preflight, d.Preflight)
	err := r.patchNode(ctx, s, node, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.Status != "" && (before == nil || before.Reason != string(d.Reason)) {
		ctrl.LoggerFrom(ctx).V(1).Info("Told a node why", "Node", klog.KObj(node), "status", d.Status, "reason", d.Reason)
		r.explained(s, node, d)
	}
	return nil
}

// ask brings the question to the agent up to date, in the write that tells people why the node waits.
func ask(patch *nodePatch, stands, question string) {
	switch question {
	case stands:
	case "":
		patch.remove(v1alpha1.AnnotationPreflight)
	default:
		patch.annotate(v1alpha1.AnnotationPreflight, question)
	}
}

func same(stands *corev1.NodeCondition, d plan.Decision) bool {
	if stands == nil {
		return d.Status == ""
	}
	return stands.Status == d.Status && stands.Reason == string(d.Reason) && stands.Message == d.Message
}

// permitted makes the condition of a decision. The transition time moves only with the status.
func (r *RebootPolicyReconciler) permitted(d plan.Decision, before *corev1.NodeCondition) corev1.NodeCondition {
	now := metav1.NewTime(r.Clock.Now())
	c := corev1.NodeCondition{
		Type: v1alpha1.NodeRebootPermitted, Status: d.Status, Reason: string(d.Reason), Message: d.Message,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if before != nil && before.Status == d.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	return c
}
