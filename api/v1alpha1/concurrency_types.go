package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Concurrency limits how many nodes may be down at once.
type Concurrency struct {
	// maxUnavailable is the most nodes that may be unavailable at once, such as 2, or 10% of the selected nodes.
	// A percentage rounds down, to at least 1 and at most 1000.
	// 0 and 0% allow none.
	// Nodes that are unavailable for other reasons count: not Ready, cordoned by others, or being deleted.
	// Absent: 1, or with shared the limit of that policy alone.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? (self >= 0 && self <= 1000) : self == '100%' || self.matches(r'^\d\d?%$')`,message="maxUnavailable must be a number of nodes from 0 to 1000, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// topologyKey is a node label such as topology.kubernetes.io/zone.
	// Reboots happen in one of its values at a time, in the order of the values.
	// maxUnavailable limits the nodes of all values together.
	// Nodes without the label share a domain of their own, which comes last.
	// Absent: nodes reboot independently of their labels.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="topologyKey must be a label key such as topology.kubernetes.io/zone"
	TopologyKey string `json:"topologyKey,omitempty"`

	// spacing is how long after a rebooted node is back in service the next reboot may start, such as 10m.
	// Only answers of gates from within that time count.
	// Absent: the next reboot starts at once.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="spacing must be a duration of at least 1m and at most 168h, such as 10m or 2h"
	Spacing *metav1.Duration `json:"spacing,omitempty"`

	// shared is the name of another RebootPolicy whose maxUnavailable also limits the nodes of this policy, such as workers.
	// That limit, also as a percentage, counts the nodes of both policies together.
	// Only the limit is shared: windows, gates, pauses and halts of the other policy do not count.
	// The other policy may not share a limit itself.
	// While the other policy does not exist, or is being deleted, this policy grants nothing.
	// A maxUnavailable of this policy limits its own nodes further.
	// Absent: the limit counts the nodes of this policy, and of the policies that share it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="shared must be the name of a RebootPolicy, such as workers"
	Shared string `json:"shared,omitempty"`
}
