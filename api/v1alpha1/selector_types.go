package v1alpha1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// LabelSelector selects objects by their labels, as a label selector of Kubernetes does.
// The API server refuses keys and values that no label can have.
//
// It is not metav1.LabelSelector, whose maps, lists and strings are unbounded: the API server rejects
// a CustomResourceDefinition with these rules on it, as their estimated cost is 16 times the budget.
//
// +structType=atomic
// +kubebuilder:object:generate=false
type LabelSelector struct {
	// matchLabels are labels with the values that they must have, such as {pool: blue, node-role.kubernetes.io/worker: ""}.
	// Write a label without a value as "", because the API server drops a label whose value is left out.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && k.indexOf('/') <= 253)",message="keys of matchLabels must be label keys, such as kubernetes.io/os"
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message=`matchLabels must not be empty: remove it, or write a label without a value as node-role.kubernetes.io/worker: ""`
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are conditions on labels that must all hold, such as {key: pool, operator: In, values: [blue]}.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelectorRequirement is a condition on one label.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 : self.operator in ['Exists', 'DoesNotExist'] && (!has(self.values) || self.values.size() == 0)",message="operator must be In or NotIn, with values, or Exists or DoesNotExist, without values"
type LabelSelectorRequirement struct {
	// key is the key of the label, such as kubernetes.io/os.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="key must be a label key, such as kubernetes.io/os"
	Key string `json:"key"`

	// operator is one of:
	// - In: the label has one of values, such as blue or green.
	// - NotIn: the label is absent or has none of values.
	// - Exists: the label is present.
	// - DoesNotExist: the label is absent.
	// +required
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values are the values for operators In and NotIn, such as [blue, green].
	// For the other operators they must be absent or empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []LabelValue `json:"values,omitempty"`
}

// DeepCopyInto copies the selector into another. It is written by hand because the generator does not
// support maps of aliases.
func (s *LabelSelector) DeepCopyInto(out *LabelSelector) {
	out.MatchLabels, out.MatchExpressions = maps.Clone(s.MatchLabels), slices.Clone(s.MatchExpressions)
	for i := range out.MatchExpressions {
		out.MatchExpressions[i].Values = slices.Clone(out.MatchExpressions[i].Values)
	}
}

// DeepCopy returns a copy of the selector, or nil for nil.
func (s *LabelSelector) DeepCopy() *LabelSelector {
	if s == nil {
		return nil
	}
	out := &LabelSelector{}
	s.DeepCopyInto(out)
	return out
}

// LabelValue is a value that a label can have.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="must be a label value: at most 63 letters, digits, -, _ and ., which begins and ends with a letter or digit"
type LabelValue = string

// Selector returns the selector in a form that matches. An absent or empty selector selects everything.
// It returns an error only for a selector that the API server stored before it had these rules.
func (s *LabelSelector) Selector() (labels.Selector, error) {
	selector := &metav1.LabelSelector{}
	if s != nil {
		selector.MatchLabels = s.MatchLabels
		for _, e := range s.MatchExpressions {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement(e))
		}
	}
	return metav1.LabelSelectorAsSelector(selector)
}
