package record

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Markers are the marks on a Node for schedulers, autoscalers and its agent.
type Markers struct {
	Node string
	// Needs are the wanted annotations that tell the agent what else needs a reboot.
	Needs Needs
	// Pending is the wanted effect of the pending taint, or empty for none.
	Pending corev1.TaintEffect
	// RemoveAnnotations is true if the node's grant is over, autoscaler.grace has passed since, and
	// its autoscaler annotations are still set.
	RemoveAnnotations bool
	// RemoveExclusion is true if the grant is over and its label that keeps load balancers off the
	// node is still set.
	RemoveExclusion bool
	// RemoveRemediation is true if the grant is over, or its machine has not come back in time, and its
	// label that keeps health controllers off the node is still set.
	RemoveRemediation bool
	// RemoveHooks is true if the node is labelled for hooks of a grant that no longer exists. A
	// grant that could not be written on the Node leaves such labels behind.
	RemoveHooks bool
}

// Needs are the annotations of a node that tell its agent what needs a reboot besides the engines. Each
// is empty if it is absent.
type Needs struct {
	// MaxUptime is annotation max-uptime, and Conditions is annotation node-conditions.
	MaxUptime, Conditions string
}

// Needs returns the annotations that the node shows.
func (n *Node) Needs() Needs {
	return Needs{MaxUptime: n.Annotations[v1alpha1.AnnotationMaxUptime], Conditions: n.Annotations[v1alpha1.AnnotationNodeConditions]}
}

// Markers returns the wanted markers of a node whose grant is over or missing, and whether the node
// shows others. With keepsAnnotations the autoscaler annotations of the grant stay for now.
func (n *Node) Markers(pending corev1.TaintEffect, needs Needs, keepsAnnotations bool) (m Markers, differs bool) {
	m = Markers{Node: n.Name, Pending: pending, Needs: needs}
	if g := n.Grant; g != nil {
		m.RemoveAnnotations, m.RemoveExclusion, m.RemoveRemediation = len(g.Annotations) > 0 && !keepsAnnotations, g.Excluded, g.Unremediated
	}
	m.RemoveHooks = n.showsHooks()
	return m, m.RemoveHooks || m.RemoveAnnotations || m.RemoveExclusion || m.RemoveRemediation || n.Pending != pending || n.Needs() != needs
}

// showsHooks reports whether the node shows a phase of hooks.
func (n *Node) showsHooks() bool {
	_, before := n.Labels[v1alpha1.LabelBeforeReboot]
	_, after := n.Labels[v1alpha1.LabelAfterReboot]
	_, phase := n.Annotations[v1alpha1.AnnotationHooks]
	return before || after || phase
}

// WithPending returns the taints with a pending taint of the given effect, or without a pending
// taint if effect is empty. Other taints stay.
func WithPending(taints []corev1.Taint, effect corev1.TaintEffect) []corev1.Taint {
	kept := slices.DeleteFunc(slices.Clone(taints), isPending)
	if effect != "" {
		kept = append(kept, corev1.Taint{Key: v1alpha1.TaintPending, Effect: effect})
	}
	return kept
}

// pending returns the effect of the pending taint, NoSchedule if there are two, or "" without one.
func pending(taints []corev1.Taint) corev1.TaintEffect {
	var effect corev1.TaintEffect
	for _, t := range taints {
		if isPending(t) && effect != corev1.TaintEffectNoSchedule {
			effect = t.Effect
		}
	}
	return effect
}

// isPending compares key and effect: the key with another effect belongs to another program.
func isPending(t corev1.Taint) bool {
	return t.Key == v1alpha1.TaintPending && (t.Effect == corev1.TaintEffectPreferNoSchedule || t.Effect == corev1.TaintEffectNoSchedule)
}

// deleters maps the taints that an autoscaler sets on a node that it is deleting to the
// autoscaler's name. DeletionCandidateOfClusterAutoscaler is not included: such a node is only
// considered for deletion, and an annotation prevents it.
var deleters = map[string]string{
	"ToBeDeletedByClusterAutoscaler": "cluster-autoscaler",
	"karpenter.sh/disrupted":         "Karpenter",
	"karpenter.sh/disruption":        "Karpenter", // before its v1
}

// deleter returns the autoscaler that is deleting a node, or "".
func deleter(taints []corev1.Taint) string {
	for _, t := range taints {
		if name := deleters[t.Key]; name != "" {
			return name
		}
	}
	return ""
}

// autoscalerAnnotations keep autoscalers from removing a node during its reboot and for
// autoscaler.grace after it. A drained node looks unused until pods come back.
var autoscalerAnnotations = []string{v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt}

// AutoscalerValue is the value of these annotations. cluster-autoscaler and Karpenter require
// exactly this value.
const AutoscalerValue = "true"

// IsAutoscalerAnnotation reports whether the key belongs to an annotation for autoscalers.
func IsAutoscalerAnnotation(key string) bool { return slices.Contains(autoscalerAnnotations, key) }

// AnnotationsToSet returns the autoscaler annotations that a new grant sets: those that no other
// program has set to any value. Annotations that an earlier grant left behind pass to the new
// grant.
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

// AnnotationsToKeep returns the autoscaler annotations that stay for autoscaler.grace after a grant
// of the policy. All others are removed when the grant ends.
func (n *Node) AnnotationsToKeep(policy *v1alpha1.RebootPolicy) []string {
	if policy.Spec.AutoscalerGraceOrDefault() == 0 {
		return nil
	}
	return n.AnnotationsToRemove()
}

// AnnotationsToRemove returns the autoscaler annotations to remove once the node's grant has ended:
// those that the grant has set and nobody has changed since. Other names in a grant mean tampering,
// and are ignored.
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

// SetsExclusion reports whether a new grant sets the label that keeps load balancers off the node:
// if the policy wants it and no other program has set the label. A label that an earlier grant left
// behind passes to the new grant.
func (n *Node) SetsExclusion(policy *v1alpha1.RebootPolicy) bool {
	_, there := n.Labels[v1alpha1.LabelExcludeFromLoadBalancers]
	return policy.Spec.DrainOrDefault().LoadBalancersOrDefault() == v1alpha1.LoadBalancersExclude && (!there || n.RemovesExclusion())
}

// RemovesExclusion reports whether to remove that label when the node's grant ends: the grant has
// set it and nobody has changed it since.
func (n *Node) RemovesExclusion() bool {
	return n.Grant != nil && n.Grant.Excluded && n.Labels[v1alpha1.LabelExcludeFromLoadBalancers] == v1alpha1.ExcludedByOperator
}

// SetsRemediation reports whether a new grant sets the label that keeps health controllers off the
// node: if no other program has set it. A label that an earlier grant left behind passes to the new
// grant.
func (n *Node) SetsRemediation() bool {
	_, ok := n.Labels[v1alpha1.LabelExcludeFromRemediation]
	return !ok || n.RemovesRemediation()
}

// RemovesRemediation reports whether to remove that label: the grant has set it and nobody has changed
// it since.
func (n *Node) RemovesRemediation() bool {
	return n.Grant != nil && n.Grant.Unremediated && n.Labels[v1alpha1.LabelExcludeFromRemediation] == AutoscalerValue
}
