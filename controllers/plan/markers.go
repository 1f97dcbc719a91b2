package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// UngovernedMarkers returns the empty markers of nodes that no policy governs but that still show
// some.
func UngovernedMarkers(g governor.Governor, nodes []*record.Node) []record.Markers {
	var due []record.Markers
	for _, n := range nodes {
		if m, differs := n.Markers("", record.Needs{}, false); differs && g.Leaves(n) {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b record.Markers) int { return cmp.Compare(a.Node, b.Node) })
	return due
}

// markersOf returns the wanted markers of nodes that show others, in the order in which the nodes
// take turns. A node in the middle of a reboot keeps its markers, because the write that ends the
// reboot removes them. Only its NoSchedule taint is softened, so that the pods of hooks can run
// there, and health controllers may act once its machine is lost.
func markersOf(c *choice) []record.Markers {
	var due []*record.Node
	byNode := map[string]record.Markers{}
	add := func(n *record.Node, m record.Markers, differs bool) {
		if differs {
			due, byNode[n.Name] = append(due, n), m
		}
	}
	effects, turn := repelling(c), c.Policy.Spec.PendingTaintEffect()
	for _, n := range c.active {
		o := c.waiting[n.Name]
		if o == nil && (c.Held(n) || c.slots.Hold(n.Name)) {
			m, differs := markersInReboot(c, n, turn)
			add(n, m, differs)
			continue
		}
		pending := effects[n.Name]
		if o != nil && waitsForTurn(c, n, o) {
			pending = turn
		}
		m, differs := n.Markers(pending, needsOf(c, n), c.Now.Before(c.annotationsUntil(n)))
		add(n, m, differs)
	}
	for name, rivals := range c.Conflicts {
		if n := c.ByName[name]; rivals[0] == c.Policy.Name && !c.Held(n) {
			m, differs := n.Markers("", record.Needs{}, false)
			add(n, m, differs)
		}
	}
	c.order.Sort(due)
	list := make([]record.Markers, len(due))
	for i, n := range due {
		list[i] = byNode[n.Name]
	}
	return list
}

// markersInReboot returns the wanted markers of a node in the middle of a reboot.
func markersInReboot(c *choice, n *record.Node, turn corev1.TaintEffect) (m record.Markers, differs bool) {
	m = record.Markers{Node: n.Name, Pending: n.Pending, Needs: n.Needs(), RemoveRemediation: n.Grant != nil && n.Grant.Unremediated && isLost(c, n)}
	if n.Pending == corev1.TaintEffectNoSchedule {
		m.Pending = turn
	}
	return m, m.Pending != n.Pending || m.RemoveRemediation
}

// waitsForTurn reports whether the node waits only for nodes ahead of it. Nodes that something else
// blocks may wait for days, or forever, and stay open for pods.
func waitsForTurn(c *choice, n *record.Node, o *Blocked) bool {
	switch o.Reason {
	case v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDomainBusy, v1alpha1.ReasonControlPlaneGuard, v1alpha1.ReasonSpacing:
		return !c.dryRun() && c.run.Waits == nil && !c.slots.Never(n)
	}
	return false
}

// repelling returns the effects of the pending taint on nodes that wait for pods of
// gates.blockingPods. The first nodes in order, as many as may be unavailable at once, get the
// configured effect. The others get that of nodes that wait for their turn, so that pods that fit
// nowhere else find room.
func repelling(c *choice) map[string]corev1.TaintEffect {
	effect := c.Policy.Spec.TaintEffectOrDefault()
	if effect == "" || c.dryRun() {
		return nil
	}
	var blocked []*record.Node
	for _, n := range c.active {
		if o := c.waiting[n.Name]; o != nil && o.Reason == v1alpha1.ReasonBlockingPod && !c.slots.Never(n) {
			blocked = append(blocked, n)
		}
	}
	c.order.Sort(blocked)
	effects, first := map[string]corev1.TaintEffect{}, c.slots.Fill(blocked)
	for _, n := range blocked {
		if effects[n.Name] = c.Policy.Spec.PendingTaintEffect(); first[n.Name] {
			effects[n.Name] = effect
		}
	}
	return effects
}
