package v1alpha1

import (
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

	// soak is the time for which each rebooted node of this ring must be back in service before a later ring starts, such as 1d.
	// If it is absent, a later ring starts at once.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d <= duration('720h'))",message="soak must be a duration of at most 30d, such as 30m or 1d"
	Soak *Duration `json:"soak,omitempty"`
}
