package nodepatch

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// UndoneError means that the API server accepted a write but did not keep all of it.
type UndoneError struct {
	// Fields names the missing parts of the write.
	Fields []string
	// Removed reports whether the parts were removed after the response.
	Removed bool
}

// Error implements error.
func (e *UndoneError) Error() string {
	fields := strings.Join(e.Fields, ", ")
	if e.Removed {
		return "another program removed " + fields + " after it was written"
	}
	return "the API server accepted the write and did not keep " + fields + ": look for a mutating admission policy or webhook"
}

// IsUndone reports whether the API server accepted a write and did not keep it.
func IsUndone(err error) bool {
	_, undone := errors.AsType[*UndoneError](err)
	return undone
}

// Undone returns what the patch set but the Node in the response does not show, because a mutating
// admission policy or webhook has changed or dropped it. It is empty if the Node shows everything.
func (p *Patch) Undone(node *corev1.Node) []string {
	undone := slices.Concat(
		differing("annotation ", p.Metadata.Annotations, node.Annotations),
		differing("label ", p.Metadata.Labels, node.Labels),
	)
	if want, asked := p.Spec["unschedulable"]; asked && (want == true) != node.Spec.Unschedulable {
		undone = append(undone, "spec.unschedulable")
	}
	if want, asked := p.Spec["taints"]; asked {
		undone = append(undone, p.undoneTaints(want, node.Spec.Taints)...)
	}
	if p.Status == nil {
		return undone
	}
	for i, c := range p.Status.Conditions {
		if r, ok := c.(removal); ok && sets(p.Status.Conditions[i:], r.Type) {
			continue // The patch replaces the condition.
		}
		if kind, shown := shows(c, node.Status.Conditions); !shown {
			undone = append(undone, "condition "+string(kind))
		}
	}
	return undone
}

// differing returns the keys whose values differ from the patch. A nil value means that the key
// must be absent.
func differing(kind string, want map[string]*string, got map[string]string) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, exists := got[key]
		if w := want[key]; exists != (w != nil) || exists && !same(*w, value) {
			keys = append(keys, kind+key)
		}
	}
	return keys
}

// undoneTaints returns the taints of the patch that the Node does not have, and our own taint if it
// was not removed. Other programs may add their own taints.
func (p *Patch) undoneTaints(want any, got []corev1.Taint) (undone []string) {
	taints, _ := want.([]corev1.Taint)
	for _, t := range taints {
		if !slices.ContainsFunc(got, func(g corev1.Taint) bool { return g.MatchTaint(&t) && g.Value == t.Value }) {
			undone = append(undone, "taint "+t.Key)
		}
	}
	for _, t := range got {
		if t.Key == v1alpha1.TaintPending && !slices.ContainsFunc(taints, func(w corev1.Taint) bool { return w.MatchTaint(&t) }) {
			undone = append(undone, "taint "+t.Key)
		}
	}
	return undone
}

// shows returns the type of a condition of a patch, and reports whether the conditions of a Node
// agree with it.
func shows(asked any, conditions []corev1.NodeCondition) (corev1.NodeConditionType, bool) {
	switch c := asked.(type) {
	case condition:
		return c.Type, slices.ContainsFunc(conditions, func(g corev1.NodeCondition) bool {
			reason := c.Reason == "" || g.Reason == c.Reason // an empty reason is not in the patch
			return g.Type == c.Type && g.Status == c.Status && reason && same(c.Message, g.Message)
		})
	case removal:
		return c.Type, !slices.ContainsFunc(conditions, func(g corev1.NodeCondition) bool { return g.Type == c.Type })
	}
	return "", true
}

// sets reports whether a patch sets a condition of this type.
func sets(asked []any, kind corev1.NodeConditionType) bool {
	return slices.ContainsFunc(asked, func(a any) bool {
		c, ok := a.(condition)
		return ok && c.Type == kind
	})
}

// same reports whether a text came back as it was sent. JSON replaces bytes that are not UTF-8.
func same(sent, got string) bool {
	if sent == got {
		return true
	}
	data, err := json.Marshal(sent)
	return err == nil && json.Unmarshal(data, &sent) == nil && sent == got
}
