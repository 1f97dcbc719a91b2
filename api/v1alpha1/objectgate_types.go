package v1alpha1

import (
	"cmp"
	"slices"
	"strconv"
)

// LabelAggregateToManager with value "true" on a ClusterRole gives its rights to the manager: gates of objects read with them.
const LabelAggregateToManager = "rbac.reboot-operator.io/aggregate-to-manager"

// ObjectGate is an expression that must be true of objects of the cluster before a reboot is granted.
// While a node waits for nothing else, the objects are read every 30 seconds, once for all nodes, within 10 seconds.
// The manager may read only what a ClusterRole with label rbac.reboot-operator.io/aggregate-to-manager=true lets it.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="give name for one object, or selector for several"
// +kubebuilder:validation:XValidation:rule="self.apiVersion != 'v1' || self.kind != 'Secret'",message="a Secret cannot be a gate: an expression could find out what is in it"
type ObjectGate struct {
	// apiVersion is the API group and version of the objects, such as ceph.rook.io/v1.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$')",message="apiVersion must be an API group and a version, such as ceph.rook.io/v1, or v1"
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the objects, such as CephCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be a kind of the API, such as CephCluster"
	Kind string `json:"kind"`

	// namespace is the namespace of the objects, such as rook-ceph.
	// Absent: the kind has no namespaces, or, with selector, all namespaces.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace, such as rook-ceph"
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the one object, such as rook-ceph.
	// Absent: selector selects the objects.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('/') && !self.contains('%')",message="name must be the name of an object, such as rook-ceph: it has neither / nor %"
	Name string `json:"name,omitempty"`

	// selector selects objects by label, such as {matchLabels: {app: db}}.
	// It must match at least one, and at most 1000.
	// The expression must be true of each.
	// An empty one selects all.
	// Absent: name names the one object.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// expression is a CEL expression about object that gives true or false, such as object.status.ceph.health == 'HEALTH_OK'.
	// It has the functions that validation rules of Kubernetes have.
	// A reboot is granted only while it is true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression"`
}

// ObjectGateNames are the names that gates of objects have in status, messages and metrics, in the order of the gates: kind and
// object, such as CephCluster/rook-ceph, or Volume/* for several objects. A second gate of that name ends in #2. No gate of
// gates.prometheus has such a name.
func ObjectGateNames(gates []ObjectGate) []string {
	names := make([]string, 0, len(gates))
	for _, g := range gates {
		name := g.Kind + "/" + cmp.Or(g.Name, "*")
		free := name
		for n := 2; slices.Contains(names, free); n++ { // an object's own name may end in #2
			free = name + "#" + strconv.Itoa(n)
		}
		names = append(names, free)
	}
	return names
}
