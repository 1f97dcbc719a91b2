package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// cordonUndone: no write but an administrator's own takes an administrator's cordon away.
func cordonUndone(h History) []Violation {
	var found []Violation
	words := map[int64]Cordon{}
	for _, c := range h.Cordons {
		words[c.Revision] = c
	}
	cordoned := map[string]bool{}
	for _, r := range h.Revisions {
		if r.Node == nil {
			continue
		}
		word, admin := words[r.Number]
		switch {
		case r.Deleted:
			delete(cordoned, r.Node.Name)
		case admin && word.Node == r.Node.Name:
			cordoned[word.Node] = word.On
		case cordoned[r.Node.Name] && !r.Node.Spec.Unschedulable:
			found = append(found, Violation{r.Number, "an administrator's cordon undone", "node " + r.Node.Name})
			delete(cordoned, r.Node.Name)
		}
	}
	return found
}

// LeftBehind: at the end no node is cordoned but by an administrator, none carries the operator's taint, and no grant is left.
func LeftBehind(h History) []Violation {
	var found []Violation
	nodes, last := map[string]*corev1.Node{}, (*v1alpha1.RebootPolicy)(nil)
	for _, r := range h.Revisions {
		switch {
		case r.Node != nil && r.Deleted:
			delete(nodes, r.Node.Name)
		case r.Node != nil:
			nodes[r.Node.Name] = r.Node
		case r.Policy != nil:
			last = r.Policy
		}
	}
	admins := map[string]bool{}
	for _, c := range h.Cordons {
		admins[c.Node] = c.On
	}
	for name, node := range nodes {
		if node.Spec.Unschedulable && !admins[name] {
			found = append(found, Violation{0, "left cordoned", "node " + name})
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == v1alpha1.TaintPending {
				found = append(found, Violation{0, "left tainted", "node " + name})
			}
		}
		if attemptOf(node).disrupts {
			found = append(found, Violation{0, "left in mid-attempt", fmt.Sprintf("node %s: %s", name, node.Annotations[v1alpha1.AnnotationProgress])})
		}
	}
	if last != nil && len(last.Status.Grants) > 0 {
		found = append(found, Violation{0, "left in the ledger", fmt.Sprint(last.Status.Grants)})
	}
	return found
}
