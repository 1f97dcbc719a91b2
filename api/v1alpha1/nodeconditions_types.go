package v1alpha1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// NodeConditionNeed is a Node condition of another program that asks for a reboot once it has lasted.
type NodeConditionNeed struct {
	// type is the type of the Node condition, such as KernelDeadlock.
	// Ready and the conditions that this operator writes are refused.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="type must be the type of a Node condition, such as KernelDeadlock"
	// +kubebuilder:validation:XValidation:rule="!(self in ['Ready', 'RebootRequired', 'RebootPermitted', 'RebootFailed', 'DrainInProgress', 'Drained', 'MaintenanceInProgress', 'MaintenancePlanned'])",message="type must not be Ready or a condition that this operator writes: name a condition of another program, such as KernelDeadlock"
	Type corev1.NodeConditionType `json:"type"`

	// status is the status that asks for a reboot:
	// - True: the condition is True, as node problems are.
	// - False: the condition is False, as the health of a device may be.
	// Defaults to True.
	// Example: "True".
	// +optional
	// +kubebuilder:validation:Enum=True;False
	Status corev1.ConditionStatus `json:"status,omitempty"`

	// for is the time for which the condition must have this status before the node needs a reboot, such as 10m.
	// It is at least 1m and at most 7d.
	// +required
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d >= duration('1m') && d <= duration('168h'))",message="for must be a duration of at least 1m and at most 7d, such as 10m"
	For Duration `json:"for"`
}

// StatusOrDefault returns the status that asks for a reboot.
func (n NodeConditionNeed) StatusOrDefault() corev1.ConditionStatus {
	return cmp.Or(n.Status, corev1.ConditionTrue)
}

// CanAskForReboot reports whether a policy may name a Node condition of this type in nodeConditions. It
// may not name Ready, because the node is not Ready during its reboot, or the operator's own conditions.
func CanAskForReboot(kind corev1.NodeConditionType) bool {
	switch kind {
	case "", corev1.NodeReady, NodeRebootRequired, NodeRebootPermitted, NodeRebootFailed,
		corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress, corev1.NodeMaintenancePlanned:
		return false
	}
	return true
}
