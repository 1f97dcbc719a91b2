package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Mark is what has to change of what a Node shows schedulers, autoscalers and its agent, whether it has a grant or not.
type Mark struct {
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
}

// markers are what a node should show whose grant is over, or that has none.
type markers struct {
	pending   corev1.TaintEffect
	maxUptime string
	// keepsAnnotations: the autoscaler annotations that the grant has left stay for now.
	keepsAnnotations bool
}

// marks are the changes that are due, those first that come first. A node that is in the middle of a reboot keeps what it
// has: the write that ends the reboot takes it away and costs nothing. But no taint may keep the pods of hooks off it.
func (d *draft) marks() []Mark {
	var due []*Node
	marks := map[string]Mark{}
	add := func(n *Node, should markers) {
		if m, differs := n.mark(should); differs {
			due, marks[n.Name] = append(due, n), m
		}
	}
	repelling := d.repelling()
	for _, n := range d.governed {
		o := d.waiting[n.Name]
		if o == nil && (d.held(n) || d.slots.hold(n.Name)) {
			if n.Pending == corev1.TaintEffectNoSchedule {
				due, marks[n.Name] = append(due, n), Mark{Node: n.Name, Pending: corev1.TaintEffectPreferNoSchedule, MaxUptime: n.MaxUptime()}
			}
			continue
		}
		should := repelling[n.Name]
		if o != nil && d.waitsForTurn(n, o) {
			should = corev1.TaintEffectPreferNoSchedule
		}
		add(n, markers{
			pending: should, maxUptime: d.maxUptime(n), keepsAnnotations: d.Now.Before(d.annotationsUntil(n)),
		})
	}
	for name, rivals := range d.conflicts {
		if n := d.byName[name]; rivals[0] == d.name && !d.held(n) {
			add(n, markers{})
		}
	}
	d.order(due)
	list := make([]Mark, len(due))
	for i, n := range due {
		list[i] = marks[n.Name]
	}
	return list
}

// waitsForTurn reports whether all that keeps the node is that others come first. A node that something else keeps may wait
// for days, and is as good for pods as any other; nor does a node wait for a turn that never comes.
func (d *draft) waitsForTurn(n *Node, o *Blocked) bool {
	switch o.Reason {
	case v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDomainBusy, v1alpha1.ReasonControlPlaneGuard, v1alpha1.ReasonSpacing:
		return !d.dryRun() && d.run.waits == nil && !d.slots.never(d.rings.Of(n))
	}
	return false
}

// repelling are the effects of the pending taint on nodes that wait for pods of gates.blockingPods. Only as many nodes have it as
// may be unavailable at once, those first that come first: all others are as good for pods as ever.
func (d *draft) repelling() map[string]corev1.TaintEffect {
	effect := d.Policy.Spec.MeanwhileOrDefault()
	if effect == "" || d.dryRun() {
		return nil
	}
	var blocked []*Node
	for _, n := range d.governed {
		if o := d.waiting[n.Name]; o != nil && o.Reason == v1alpha1.ReasonBlockingPod {
			blocked = append(blocked, n)
		}
	}
	d.order(blocked)
	effects, repel := map[string]corev1.TaintEffect{}, map[*share]int{}
	for _, n := range blocked {
		shares := d.slots.of(d.rings.Of(n))
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

// maxUptime is what annotation max-uptime of a governed node should be.
func (f *fleet) maxUptime(n *Node) string {
	if most := f.Policy.Spec.MaxUptimeOf(n.Name); most > 0 {
		return most.String()
	}
	return ""
}

// mark is what has to change on the node, and whether anything has.
func (n *Node) mark(should markers) (m Mark, differs bool) {
	m = Mark{Node: n.Name, Pending: should.pending, MaxUptime: should.maxUptime}
	if g := n.Grant; g != nil {
		m.RemoveAnnotations, m.RemoveExclusion = len(g.Annotations) > 0 && !should.keepsAnnotations, g.Excluded
	}
	return m, m.RemoveAnnotations || m.RemoveExclusion || n.Pending != should.pending || n.MaxUptime() != should.maxUptime
}

// EndedGrant is the grant that the node shows, which is over, without what the mark removes.
func (m Mark) EndedGrant(n *Node) protocol.Grant {
	grant := *n.Grant
	if m.RemoveAnnotations {
		grant.Annotations = nil
	}
	if m.RemoveExclusion {
		grant.Excluded = false
	}
	return grant
}

// MaxUptime is annotation max-uptime as it is on the Node. Empty: there is none.
func (n *Node) MaxUptime() string { return n.Annotations[v1alpha1.AnnotationMaxUptime] }

// UngovernedMarks are the changes that are due on nodes that no policy governs: they carry nothing.
func UngovernedMarks(g Governor, nodes []*Node) []Mark {
	var marks []Mark
	for _, n := range nodes {
		if at := g.Govern(n.Labels); at.Policy != "" || len(at.Rivals) > 0 || n.Outstanding() {
			continue
		}
		if m, differs := n.mark(markers{}); differs {
			marks = append(marks, m)
		}
	}
	return marks
}

// WithPending are the taints of a Node with the pending taint of an effect, or without it where that is empty; the others as they are.
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

// isPending goes by key and effect: the key with another effect is somebody else's doing.
func isPending(t corev1.Taint) bool {
	return t.Key == v1alpha1.TaintPending && (t.Effect == corev1.TaintEffectPreferNoSchedule || t.Effect == corev1.TaintEffectNoSchedule)
}
