package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ring is a group of nodes that reboots before the rings after it.
type Ring struct {
	// name identifies the ring in messages, such as canary.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower-case letters, digits and -, and begin and end with a letter or digit, such as canary"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// nodeSelector selects the nodes of this ring among those that no earlier ring has, such as {matchLabels: {stage: canary}}.
	// If it is empty, it selects all of them.
	// +required
	NodeSelector LabelSelector `json:"nodeSelector"`

	// maxUnavailable is the most nodes of this ring that may be unavailable at once, such as 2, or 10% of its nodes.
	// It counts nodes as concurrency.maxUnavailable does, which limits all rings together.
	// If it is absent, only concurrency.maxUnavailable applies.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? (self >= 0 && self <= 1000) : self == '100%' || self.matches(r'^\d\d?%$')`,message="maxUnavailable must be a number of nodes from 0 to 1000, or a percentage from 0% to 100%"
	// +kubebuilder:validation:MaxLength=32
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// soak is the time for which each rebooted node of this ring must be back in service before a later ring starts, such as 24h.
	// If it is absent, a later ring starts at once.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) <= duration('720h')",message="soak must be a duration of at most 720h, such as 30m or 24h"
	Soak *metav1.Duration `json:"soak,omitempty"`
}
