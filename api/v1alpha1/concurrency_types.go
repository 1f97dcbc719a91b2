package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Concurrency limits how many nodes may be down at once.
type Concurrency struct {
	// maxUnavailable is the most nodes that may be unavailable at once, such as 2, or 10% of the selected nodes.
	// A percentage rounds down, to at least one node, and nodes that are unavailable for other reasons count.
	// Defaults to 1, or with shared to the limit of that policy alone.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? (self >= 0 && self <= 1000) : self == '100%' || self.matches(r'^\d\d?%$')`,message="maxUnavailable must be a number of nodes from 0 to 1000, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// firstBatch makes each run begin with a few nodes, such as {nodes: 1, soak: 30m}.
	// Once they are back and have soaked, maxUnavailable applies, unless an attempt of the run has failed.
	// If it is absent, maxUnavailable applies from the beginning.
	// +optional
	FirstBatch *FirstBatch `json:"firstBatch,omitempty"`

	// topologyKey is a node label, such as topology.kubernetes.io/zone.
	// Nodes reboot one value of the label at a time, in the order of the values, and nodes without the label come last.
	// If it is absent, nodes reboot independently of their labels.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="topologyKey must be a label key, such as topology.kubernetes.io/zone"
	TopologyKey string `json:"topologyKey,omitempty"`

	// spacing is the least time between a node's return to service and the start of the next reboot, such as 10m.
	// Only results of gates from within that time count.
	// If it is absent, the next reboot starts at once.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d >= duration('1m') && d <= duration('168h'))",message="spacing must be a duration of at least 1m and at most 7d, such as 10m, 2h or 1d"
	Spacing *Duration `json:"spacing,omitempty"`

	// pendingTaint is the effect of taint reboot-operator.io/reboot-pending on nodes that wait for their turn:
	// - PreferNoSchedule: evicted pods seldom move to the node that reboots next.
	// - None: nodes get no taint, for programs such as Rook that avoid nodes with any taint.
	// Defaults to PreferNoSchedule.
	// Example: None.
	// +optional
	PendingTaint PendingTaint `json:"pendingTaint,omitempty"`

	// shared is the name of another RebootPolicy whose maxUnavailable limits the nodes of both policies together, such as workers.
	// That policy must not share a limit itself, and while it does not exist, this policy grants nothing.
	// If shared is absent, the limit counts the nodes of this policy, and of the policies that share it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="shared must be the name of a RebootPolicy, such as workers"
	Shared string `json:"shared,omitempty"`
}

// FirstBatch limits the beginning of a run.
type FirstBatch struct {
	// nodes is the number of nodes with which a run begins, such as 1, or 5% of the selected nodes.
	// A percentage rounds down, to at least one node.
	// Defaults to 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? (self >= 1 && self <= 1000) : self == '100%' || self.matches(r'^[1-9]\d?%$')`,message="nodes must be a number of nodes from 1 to 1000, or a percentage from 1% to 100%"
	Nodes *intstr.IntOrString `json:"nodes,omitempty"`

	// soak is the time for which each of these nodes must be back in service before more nodes reboot, such as 30m.
	// It is at least 1m and at most 7d.
	// +required
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d >= duration('1m') && d <= duration('168h'))",message="soak must be a duration of at least 1m and at most 7d, such as 30m"
	Soak Duration `json:"soak"`
}

// PendingTaint is the effect of the taint on nodes that wait for their turn.
// +kubebuilder:validation:Enum=PreferNoSchedule;None
type PendingTaint string

const (
	// PendingTaintPreferNoSchedule taints nodes that wait for their turn.
	PendingTaintPreferNoSchedule PendingTaint = "PreferNoSchedule"
	// PendingTaintNone taints no nodes that wait for their turn.
	PendingTaintNone PendingTaint = "None"
)
