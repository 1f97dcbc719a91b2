package v1alpha1

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Gates are conditions that are checked before each grant.
// A condition that cannot be checked blocks the grant.
type Gates struct {
	// blockingPods select pods that keep their node from being rebooted while they run on it.
	// Defaults to none.
	// Example: [{podSelector: {matchLabels: {app: migration}}}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	BlockingPods []BlockingPod `json:"blockingPods,omitempty"`

	// prometheus are queries that block reboots while they have a result.
	// Defaults to none.
	// Example: [{name: error-budget, url: "http://prometheus.monitoring:9090", query: "slo:errors:burn > 2"}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Prometheus []PrometheusGate `json:"prometheus,omitempty"`

	// objects are expressions that must be true of objects of the cluster.
	// Defaults to none.
	// Example: [{apiVersion: ceph.rook.io/v1, kind: CephCluster, namespace: rook-ceph, name: rook-ceph, expression: "object.status.ceph.health == 'HEALTH_OK'"}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Objects []ObjectGate `json:"objects,omitempty"`
}

// BlockingPod selects pods that keep their node from being rebooted.
type BlockingPod struct {
	// podSelector selects pods by label, such as {matchLabels: {app: migration}}.
	// It must not be empty.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="podSelector must not be empty: give it matchLabels or matchExpressions"
	PodSelector LabelSelector `json:"podSelector"`

	// namespaceSelector selects the pods' namespaces by label, such as {matchLabels: {team: data}}.
	// If it is absent or empty, pods of every namespace match.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// taintEffect is the effect of taint reboot-operator.io/reboot-pending on a node that waits for such a pod:
	// - PreferNoSchedule: the scheduler puts a new pod on the node only if no other node fits.
	// - NoSchedule: the scheduler puts only pods on the node that tolerate the taint. At most maxUnavailable nodes have it at a time.
	// If rules differ, NoSchedule applies.
	// Defaults to PreferNoSchedule, or to no taint with pendingTaint None.
	// Example: NoSchedule.
	// +optional
	// +kubebuilder:validation:Enum=PreferNoSchedule;NoSchedule
	TaintEffect corev1.TaintEffect `json:"taintEffect,omitempty"`
}

// PrometheusGate is a query that blocks reboots while it has a result.
// While a node waits for nothing else, the query runs every 30 seconds, once for all nodes, and may take 10 seconds.
// Series whose alertname begins with RebootOperator are ignored, because alerts about waiting nodes would keep them waiting.
type PrometheusGate struct {
	// name identifies the gate in status and messages, such as error-budget.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower-case letters, digits and -, and begin and end with a letter or digit, such as error-budget"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// url is the address of a server with the API of Prometheus, such as http://prometheus.monitoring:9090.
	// It must not contain credentials.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://') && url(self).getHostname() != ''",message="url must begin with http:// or https:// and name a host, such as http://prometheus.monitoring:9090"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^:]*://[^/?#]*@')",message="url must not contain credentials: put username and password, or a token, into a Secret and name it in secretRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="url must not contain ? or #: keep the address and its path, and remove the rest"
	URL string `json:"url"`

	// query is a PromQL expression, such as ALERTS{alertstate="firing",severity="critical"}.
	// Any series in its result blocks reboots, and so does a number other than 0.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// failurePolicy decides about reboots while the query fails:
	// - Block: no reboot is granted.
	// - Ignore: the gate is ignored.
	// Defaults to Block.
	// Example: Ignore.
	// +optional
	FailurePolicy Obstacle `json:"failurePolicy,omitempty"`

	// secretRef names a Secret in the operator's namespace with credentials, such as {name: prometheus}.
	// Its keys are token, or username and password; ca.crt; and tls.crt and tls.key.
	// If it is absent, the query runs without credentials.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// ObjectGate is an expression that must be true of objects of the cluster before a reboot is granted.
// While a node waits for nothing else, the objects are read every 30 seconds, once for all nodes, within 10 seconds.
// The manager may read only what a ClusterRole with label rbac.reboot-operator.io/aggregate-to-manager=true lets it.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="give either name, for one object, or selector, for several"
// +kubebuilder:validation:XValidation:rule="self.apiVersion != 'v1' || self.kind != 'Secret'",message="a Secret cannot be a gate, because an expression could reveal its data: use another object"
type ObjectGate struct {
	// apiVersion is the API group and version of the objects, such as ceph.rook.io/v1.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$')",message="apiVersion must be an API group and a version, such as ceph.rook.io/v1, or just a version, such as v1"
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the objects, such as CephCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the kind of an object, such as CephCluster"
	Kind string `json:"kind"`

	// namespace is the namespace of the objects, such as rook-ceph.
	// If it is absent, the kind has no namespaces, or selector selects objects in all namespaces.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace, such as rook-ceph"
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the object, such as rook-ceph.
	// If it is absent, selector selects the objects.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('/') && !self.contains('%')",message="name must be the name of an object, such as rook-ceph, without / and %"
	Name string `json:"name,omitempty"`

	// selector selects objects by label, such as {matchLabels: {app: db}}, or all objects with {}.
	// It must match 1 to 1000 objects, and the expression must be true of each.
	// If it is absent, name names the object.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// expression is a CEL expression about object that is true or false, such as object.status.ceph.health == 'HEALTH_OK'.
	// A reboot is granted only while it is true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression"`
}

// ObjectGateNames returns the names of gates of objects in status, messages and metrics, in the order
// of the gates, such as CephCluster/rook-ceph, or Volume/* for several objects. A second gate with the
// same name ends in #2. Gates of gates.prometheus cannot have such names.
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

// LabelAggregateToManager with value "true" on a ClusterRole gives its rights to the manager, which
// reads the objects of gates with them.
const LabelAggregateToManager = "rbac.reboot-operator.io/aggregate-to-manager"

// SecretReference names a Secret in the operator's namespace.
type SecretReference struct {
	// name of the Secret, such as credentials.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
