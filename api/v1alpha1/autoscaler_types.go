package v1alpha1

// Autoscaler configures what keeps cluster-autoscaler and Karpenter from removing a node that is being rebooted.
type Autoscaler struct {
	// grace is the time for which a node keeps the annotations for autoscalers after its granted reboot, such as 30m.
	// The node is empty then and looks unused.
	// Defaults to 15m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d <= duration('24h'))",message="grace must be a duration of at most 24h, such as 15m or 1h; 0s does not wait"
	Grace *Duration `json:"grace,omitempty"`
}
