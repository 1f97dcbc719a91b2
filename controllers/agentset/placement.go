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
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// placement reports where agents run. The zero value is nowhere.
type placement struct {
	// Everywhere is every node; there are no terms then.
	Everywhere bool
	// Terms select nodes, each by itself; in one order whatever the order of the policies, and none twice.
	Terms []corev1.NodeSelectorTerm
}

// nowhere reports whether no node is asked for: there is no policy, and no attempt without one.
func (p placement) nowhere() bool { return !p.Everywhere && len(p.Terms) == 0 }

// assign is the union of what the policies select and of the nodes in the middle of an attempt. It also names the policies
// whose selector cannot be read.
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

// attempts name the nodes that no policy selects any more and that still need their agent. One term each: a term takes
// one name.
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

// NeedsAgent reports whether the node must keep its agent whatever the policies are. It has a grant, is in the middle of an attempt, or
// may be, as its record cannot be read.
func NeedsAgent(node *corev1.Node) bool {
	n := plan.NodeOf(node)
	return n.Outstanding() || n.Unreadable != ""
}

// with adds the nodes of another placement.
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

// text distinguishes terms, and orders them for people: by key.
func text(t corev1.NodeSelectorTerm) string {
	var b strings.Builder
	for _, r := range slices.Concat(t.MatchExpressions, t.MatchFields) {
		fmt.Fprintf(&b, "%s %s %q;", r.Key, r.Operator, r.Values)
	}
	return b.String()
}

// termOf writes a selector as a term of a node affinity. Both languages agree about nodes without the label: NotIn and
// DoesNotExist select them.
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
	default: // =, == and in: a label selector has no others
		e.Operator = corev1.NodeSelectorOpIn
	}
	return e
}
