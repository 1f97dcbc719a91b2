package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Autoscaler configures what keeps cluster-autoscaler and Karpenter from removing a node that is being rebooted.
type Autoscaler struct {
	// grace is the time for which a node keeps the annotations for autoscalers after its granted reboot, such as 30m.
	// The node is empty then and looks unused.
	// Defaults to 15m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) <= duration('24h')",message="grace must be a duration of at most 24h, such as 15m or 1h; 0s does not wait"
	Grace *metav1.Duration `json:"grace,omitempty"`
}
