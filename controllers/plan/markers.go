package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Markers are what a Node should show schedulers, autoscalers and its agent, whether it has a grant or not.
type Markers struct {
	Node string
	// MaxUptime is what annotation max-uptime should be. Empty: there should be none.
	MaxUptime string
	// Pending is the effect that the pending taint should have. Empty: there should be none.
	Pending corev1.TaintEffect
	// RemoveAnnotations: the grant that the node shows is over, autoscaler.grace has passed since, and its autoscaler annotations are
	// still set.
	RemoveAnnotations bool
	// RemoveExclusion: the grant is over, and its label that keeps load balancers off the node is still set.
	RemoveExclusion bool
	// RemoveHooks: no grant is there any more whose hooks the node is labelled for. A grant that could not be written on the Node leaves them.
	RemoveHooks bool
}

// markers are what a node without a grant, or with one that is over, should show, and whether it shows anything else.
// keepsAnnotations: the autoscaler annotations that the grant has left stay for now.
func (n *Node) markers(pending corev1.TaintEffect, maxUptime string, keepsAnnotations bool) (m Markers, differs bool) {
	m = Markers{Node: n.Name, Pending: pending, MaxUptime: maxUptime}
	if g := n.Grant; g != nil {
		m.RemoveAnnotations, m.RemoveExclusion = len(g.Annotations) > 0 && !keepsAnnotations, g.Excluded
	}
	m.RemoveHooks = n.showsHooks()
	return m, m.RemoveHooks || m.RemoveAnnotations || m.RemoveExclusion || n.Pending != pending || n.MaxUptime != maxUptime
}

// showsHooks reports whether the node shows a phase of hooks.
func (n *Node) showsHooks() bool {
	_, before := n.Labels[v1alpha1.LabelBeforeReboot]
	_, after := n.Labels[v1alpha1.LabelAfterReboot]
	_, phase := n.Annotations[v1alpha1.AnnotationHooks]
	return before || after || phase
}

// UngovernedMarkers are those of nodes that no policy governs and that show something: they should show nothing.
func UngovernedMarkers(g Governor, nodes []*Node) []Markers {
	var due []Markers
	for _, n := range nodes {
		if m, differs := n.markers("", "", false); differs && g.leaves(n) {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b Markers) int { return cmp.Compare(a.Node, b.Node) })
	return due
}

// WithPending are the taints of a Node with the pending taint of an effect, or without it where that is empty. The others stay.
func WithPending(taints []corev1.Taint, effect corev1.TaintEffect) []corev1.Taint {
	kept := slices.DeleteFunc(slices.Clone(taints), isPending)
	if effect != "" {
		kept = append(kept, corev1.Taint{Key: v1alpha1.TaintPending, Effect: effect})
	}
	return kept
}

// pending is the effect of the pending taint: NoSchedule where there are two. Empty: there is none.
func pending(taints []corev1.Taint) corev1.TaintEffect {
	var effect corev1.TaintEffect
	for _, t := range taints {
		if isPending(t) && effect != corev1.TaintEffectNoSchedule {
			effect = t.Effect
		}
	}
	return effect
}

// isPending goes by key and effect: the key with another effect belongs to another program.
func isPending(t corev1.Taint) bool {
	return t.Key == v1alpha1.TaintPending && (t.Effect == corev1.TaintEffectPreferNoSchedule || t.Effect == corev1.TaintEffectNoSchedule)
}

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

// autoscalerAnnotations keep autoscalers from removing a node while it is being rebooted, and for autoscaler.grace after that. A
// drained node looks unused until pods come back to it.
var autoscalerAnnotations = []string{v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt}

// AutoscalerValue is the value of these annotations: cluster-autoscaler and Karpenter compare it exactly.
const AutoscalerValue = "true"

// IsAutoscalerAnnotation reports whether the key is that of an annotation for autoscalers.
func IsAutoscalerAnnotation(key string) bool { return slices.Contains(autoscalerAnnotations, key) }

// AnnotationsToSet are the autoscaler annotations that a new grant sets: those that no other program has set, to any value. One
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

// AnnotationsToRemove are the autoscaler annotations to remove after the grant that the node shows has ended. It has set them, and they
// have not been changed since. A grant that names any other annotation has been tampered with.
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

// SetsExclusion reports whether a new grant of the policy sets the label that keeps load balancers off the node. It does where no other
// program has set it, to any value. One that an earlier grant left behind is still the manager's, and passes to the new grant.
func (n *Node) SetsExclusion(policy *v1alpha1.RebootPolicy) bool {
	_, there := n.Labels[v1alpha1.LabelExcludeFromLoadBalancers]
	return policy.Spec.DrainOrDefault().LoadBalancersOrDefault() == v1alpha1.LoadBalancersExclude && (!there || n.RemovesExclusion())
}

// RemovesExclusion reports whether the label goes when the grant that the node shows ends: it has set it, and it has not been
// changed since.
func (n *Node) RemovesExclusion() bool {
	return n.Grant != nil && n.Grant.Excluded && n.Labels[v1alpha1.LabelExcludeFromLoadBalancers] == v1alpha1.ExcludedByOperator
}

// markersOf are those of nodes that should show something else, the nodes in order. A node that is in the middle of a reboot keeps what
// it has: the write that ends the reboot removes it as well. But no taint may keep the pods of hooks off it.
func markersOf(d *Draft) []Markers {
	var due []*Node
	byNode := map[string]Markers{}
	add := func(n *Node, m Markers, differs bool) {
		if differs {
			due, byNode[n.Name] = append(due, n), m
		}
	}
	effects := repelling(d)
	for _, n := range d.f.governed {
		o := d.waiting[n.Name]
		if o == nil && (d.f.held(n) || d.slots.hold(n.Name)) {
			add(n, Markers{Node: n.Name, Pending: corev1.TaintEffectPreferNoSchedule, MaxUptime: n.MaxUptime}, n.Pending == corev1.TaintEffectNoSchedule)
			continue
		}
		pending := effects[n.Name]
		if o != nil && waitsForTurn(d, n, o) {
			pending = corev1.TaintEffectPreferNoSchedule
		}
		m, differs := n.markers(pending, d.f.maxUptime(n), d.f.Now.Before(d.f.annotationsUntil(n)))
		add(n, m, differs)
	}
	for name, rivals := range d.f.conflicts {
		if n := d.f.byName[name]; rivals[0] == d.f.name && !d.f.held(n) {
			m, differs := n.markers("", "", false)
			add(n, m, differs)
		}
	}
	d.f.order(due)
	list := make([]Markers, len(due))
	for i, n := range due {
		list[i] = byNode[n.Name]
	}
	return list
}

// waitsForTurn reports whether the node only waits for nodes that go before it. A node that something else blocks may wait for
// days, and stays open for pods; so does a node whose turn never comes.
func waitsForTurn(d *Draft, n *Node, o *Blocked) bool {
	switch o.Reason {
	case v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDomainBusy, v1alpha1.ReasonControlPlaneGuard, v1alpha1.ReasonSpacing:
		return !d.f.dryRun() && d.f.run.waits == nil && !d.slots.never(d.f.rings.Of(n))
	}
	return false
}

// repelling are the effects of the pending taint on nodes that wait for pods of gates.blockingPods. As many
// nodes as may be unavailable at once have NoSchedule, the first ones in order. All others have the softer effect, so that pods
// which fit nowhere else find room.
func repelling(d *Draft) map[string]corev1.TaintEffect {
	effect := d.f.Policy.Spec.TaintEffectOrDefault()
	if effect == "" || d.f.dryRun() {
		return nil
	}
	var blocked []*Node
	for _, n := range d.f.governed {
		if o := d.waiting[n.Name]; o != nil && o.Reason == v1alpha1.ReasonBlockingPod && !d.slots.never(d.f.rings.Of(n)) {
			blocked = append(blocked, n)
		}
	}
	d.f.order(blocked)
	effects, repel := map[string]corev1.TaintEffect{}, map[*share]int{}
	for _, n := range blocked {
		effects[n.Name] = corev1.TaintEffectPreferNoSchedule
		shares := d.slots.of(d.f.rings.Of(n))
		if slices.ContainsFunc(shares, func(s *share) bool { return repel[s] >= s.limit }) {
			continue
		}
		for _, s := range shares {
			repel[s]++
		}
		effects[n.Name] = effect
	}
	return effects
}
