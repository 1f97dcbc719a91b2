package controllers

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// nodeViews are the Nodes of the cache as decisions look at them. Of thousands, hardly one is another than a pass ago: each
// view is made once for each object of the cache, which replaces a Node that has changed and never changes one. It is a memo
// of a pure function, holds what the cache holds while there are reboots to come, and only ever saves time. One pass at a time
// uses it.
type nodeViews struct {
	// known are the objects of nodes: to ask for one costs no look at it.
	known map[*corev1.Node]bool
	index map[string]int
	nodes []*corev1.Node
	views []*plan.Node
}

// state begins a pass with the Nodes that the cache has now, by name: what is in order already is soon put in order.
func (v *nodeViews) state(cached []any) *state {
	before := len(v.nodes)
	v.see(cached)
	if len(v.nodes) > before {
		v.sort()
	}
	if len(v.nodes) > len(cached) {
		v.drop(cached)
	}
	s := &state{nodes: slices.Clone(v.nodes), index: v.index}
	s.Nodes = slices.Clone(v.views)
	return s
}

// see takes in the Nodes that are new, or others than before.
func (v *nodeViews) see(cached []any) {
	if v.index == nil {
		v.known, v.index = make(map[*corev1.Node]bool, len(cached)), make(map[string]int, len(cached))
	}
	for _, object := range cached {
		node, ok := object.(*corev1.Node)
		if !ok || v.known[node] {
			continue
		}
		if i, there := v.index[node.Name]; there {
			delete(v.known, v.nodes[i])
			v.nodes[i], v.views[i] = node, new(plan.NodeOf(node))
		} else {
			v.index[node.Name] = len(v.nodes)
			v.nodes, v.views = append(v.nodes, node), append(v.views, new(plan.NodeOf(node)))
		}
		v.known[node] = true
	}
}

// sort puts the Nodes in order after some were new.
func (v *nodeViews) sort() {
	slices.SortFunc(v.nodes, byName)
	slices.SortFunc(v.views, func(a, b *plan.Node) int { return cmp.Compare(a.Name, b.Name) })
	v.index = make(map[string]int, len(v.nodes))
	for i, node := range v.nodes {
		v.index[node.Name] = i
	}
}

func byName(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) }

// drop forgets the Nodes that are gone.
func (v *nodeViews) drop(cached []any) {
	there := make(map[*corev1.Node]bool, len(cached))
	for _, object := range cached {
		if node, ok := object.(*corev1.Node); ok {
			there[node] = true
		}
	}
	old := *v
	*v = nodeViews{known: there, index: make(map[string]int, len(cached))}
	for i, node := range old.nodes {
		if there[node] {
			v.index[node.Name] = len(v.nodes)
			v.nodes, v.views = append(v.nodes, node), append(v.views, old.views[i])
		}
	}
}
