package agentset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// placement says where agents run. The zero placement is nowhere.
type placement struct {
	// Everywhere means every node. Terms is then empty.
	Everywhere bool
	// Terms select nodes, independently of each other. They are sorted, independently of the order
	// of the policies, and have no duplicates.
	Terms []corev1.NodeSelectorTerm
}

// nowhere reports whether no agents are needed: no policy selects a node, and no attempt is under
// way.
func (p placement) nowhere() bool { return !p.Everywhere && len(p.Terms) == 0 }

// assign returns the union of the nodes that the policies select and the nodes with an attempt. It
// also returns the names of the policies whose selector cannot be read.
func assign(policies []v1alpha1.RebootPolicy, nodes []corev1.Node) (p placement, unreadable []string) {
	var selectors []labels.Selector
	for i := range policies {
		selector, err := policies[i].Spec.NodeSelector.Selector()
		if err != nil {
			unreadable = append(unreadable, policies[i].Name)
			continue
		}
		selectors = append(selectors, selector)
		if selector.Empty() {
			return placement{Everywhere: true}, nil
		}
		p.Terms = append(p.Terms, termOf(selector))
	}
	p.Terms = append(p.Terms, attempts(nodes, selectors)...)
	slices.Sort(unreadable)
	return p.normal(), unreadable
}

// attempts returns terms for the nodes that no policy selects any more but that still need their
// agent. Each node has its own term, because a term accepts only one name.
func attempts(nodes []corev1.Node, selectors []labels.Selector) []corev1.NodeSelectorTerm {
	var terms []corev1.NodeSelectorTerm
	for i := range nodes {
		set := labels.Set(nodes[i].Labels)
		selected := slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(set) })
		if selected || !NeedsAgent(&nodes[i]) {
			continue
		}
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{nodes[i].Name}},
		}})
	}
	return terms
}

// NeedsAgent reports whether the node must keep its agent, independently of the policies: it has a
// grant or an attempt under way, or its record cannot be read.
func NeedsAgent(node *corev1.Node) bool {
	n := record.Of(node)
	return n.Outstanding() || n.Unreadable != ""
}

// with returns the union with another placement.
func (p placement) with(other placement) placement {
	return placement{
		Everywhere: p.Everywhere || other.Everywhere,
		Terms:      append(slices.Clone(p.Terms), other.Terms...),
	}.normal()
}

func (p placement) normal() placement {
	if p.Everywhere {
		return placement{Everywhere: true}
	}
	slices.SortFunc(p.Terms, func(a, b corev1.NodeSelectorTerm) int { return cmp.Compare(text(a), text(b)) })
	p.Terms = slices.CompactFunc(p.Terms, func(a, b corev1.NodeSelectorTerm) bool { return text(a) == text(b) })
	return p
}

// text returns a unique text for a term. It orders terms by key.
func text(t corev1.NodeSelectorTerm) string {
	var b strings.Builder
	for _, r := range slices.Concat(t.MatchExpressions, t.MatchFields) {
		fmt.Fprintf(&b, "%s %s %q;", r.Key, r.Operator, r.Values)
	}
	return b.String()
}

// termOf converts a selector to a term of a node affinity. Both agree about nodes without the
// label: NotIn and DoesNotExist select them.
func termOf(selector labels.Selector) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		term.MatchExpressions = append(term.MatchExpressions, expression(r))
	}
	slices.SortFunc(term.MatchExpressions, func(a, b corev1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	term.MatchExpressions = slices.CompactFunc(term.MatchExpressions, func(a, b corev1.NodeSelectorRequirement) bool {
		return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
	})
	return term
}

func expression(r labels.Requirement) corev1.NodeSelectorRequirement {
	e := corev1.NodeSelectorRequirement{Key: r.Key(), Values: slices.Compact(slices.Sorted(slices.Values(r.ValuesUnsorted())))}
	switch r.Operator() {
	case selection.Exists:
		e.Operator = corev1.NodeSelectorOpExists
	case selection.DoesNotExist:
		e.Operator = corev1.NodeSelectorOpDoesNotExist
	case selection.NotIn, selection.NotEquals:
		e.Operator = corev1.NodeSelectorOpNotIn
	default: // =, == and in, which are the only others
		e.Operator = corev1.NodeSelectorOpIn
	}
	return e
}
