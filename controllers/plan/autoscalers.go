package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// deleters are the taints that an autoscaler sets on a node which it is deleting, with the autoscaler's name.
// DeletionCandidateOfClusterAutoscaler is not among them: the node is only considered, and an annotation prevents it.
var deleters = map[string]string{
	"ToBeDeletedByClusterAutoscaler": "cluster-autoscaler",
	"karpenter.sh/disrupted":         "Karpenter",
	"karpenter.sh/disruption":        "Karpenter", // before its v1
}

// deleter is the autoscaler that is deleting a node; empty: none is.
func deleter(taints []corev1.Taint) string {
	for _, t := range taints {
		if name := deleters[t.Key]; name != "" {
			return name
		}
	}
	return ""
}

// autoscalerAnnotations keep autoscalers from removing a node while it is being rebooted, and for autoscaler.grace after that: a
// drained node looks unused until pods come back to it.
var autoscalerAnnotations = []string{v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt}

// AutoscalerValue is the value of these annotations: cluster-autoscaler and Karpenter compare it exactly.
const AutoscalerValue = "true"

// IsAutoscalerAnnotation reports whether the key is that of an annotation for autoscalers.
func IsAutoscalerAnnotation(key string) bool { return slices.Contains(autoscalerAnnotations, key) }

// AnnotationsToSet are the autoscaler annotations that a new grant sets: those that nobody else has set, to any value. One
// that an earlier grant left behind is still the manager's, and passes to the new grant.
func (n *Node) AnnotationsToSet() []string {
	left := n.AnnotationsToRemove()
	var set []string
	for _, key := range autoscalerAnnotations {
		if _, there := n.Annotations[key]; !there || slices.Contains(left, key) {
			set = append(set, key)
		}
	}
	return set
}

// AnnotationsToKeep are the autoscaler annotations that stay when a grant under the policy ends, for its autoscaler.grace. None: they
// are removed with the end.
func (n *Node) AnnotationsToKeep(policy *v1alpha1.RebootPolicy) []string {
	if policy.Spec.AutoscalerGraceOrDefault() == 0 {
		return nil
	}
	return n.AnnotationsToRemove()
}

// annotationsUntil is until when the autoscaler annotations stay on a node whose grant is over. Zero: the grant has left none.
func (f *fleet) annotationsUntil(n *Node) time.Time {
	g := n.Grant
	if g == nil || len(g.Annotations) == 0 {
		return time.Time{}
	}
	ended := g.At.Time
	if g.State == protocol.GrantActive && n.In(g.Seq, protocol.PhaseAborted) {
		_, ended = f.attempts.ended(n)
	}
	return ended.Add(f.Policy.Spec.AutoscalerGraceOrDefault())
}

// AnnotationsToRemove are the autoscaler annotations to remove after the grant that the node shows has ended: those that it has
// set, and that nobody has changed since. A grant that names any other annotation has been tampered with.
func (n *Node) AnnotationsToRemove() []string {
	if n.Grant == nil {
		return nil
	}
	var remove []string
	for _, key := range n.Grant.Annotations {
		if IsAutoscalerAnnotation(key) && n.Annotations[key] == AutoscalerValue {
			remove = append(remove, key)
		}
	}
	return remove
}
