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
// +structType=atomic
// +kubebuilder:object:generate=false
type LabelSelector struct {
	// matchLabels are labels with the values that they must have, such as {pool: blue, node-role.kubernetes.io/worker: ""}.
	// The API server drops a label that is written without a value: the empty value is "".
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && k.indexOf('/') <= 253)",message="keys of matchLabels must be label keys such as kubernetes.io/os"
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message=`matchLabels may not be empty: write a label that has no value as node-role.kubernetes.io/worker: ""`
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are conditions on labels, all of which must hold, such as {key: pool, operator: In, values: [blue]}.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelectorRequirement is a condition on one label.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 : self.operator in ['Exists', 'DoesNotExist'] && (!has(self.values) || self.values.size() == 0)",message="matchExpressions need operator In or NotIn with values, or Exists or DoesNotExist without"
type LabelSelectorRequirement struct {
	// key is the key of the label, such as kubernetes.io/os.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="key must be a label key such as kubernetes.io/os"
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

// DeepCopyInto copies the selector into another. It is written by hand, for the generator knows no map of an alias.
func (s *LabelSelector) DeepCopyInto(out *LabelSelector) {
	out.MatchLabels, out.MatchExpressions = maps.Clone(s.MatchLabels), slices.Clone(s.MatchExpressions)
	for i := range out.MatchExpressions {
		out.MatchExpressions[i].Values = slices.Clone(out.MatchExpressions[i].Values)
	}
}

// DeepCopy is a copy of the selector; nil of none.
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
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="must be a label value: at most 63 letters, digits, -, _ and ., a letter or digit first and last"
type LabelValue = string

// Selector is the selector in a form that matches. An absent or empty one selects everything. It can be read where the API
// server has checked it; one that was stored before the API server did may not be.
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
