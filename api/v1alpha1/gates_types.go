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
	// blockingPods keep their node from being rebooted while they run on it.
	// Example: [{podSelector: {matchLabels: {app: migration}}}].
	// Absent: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	BlockingPods []BlockingPod `json:"blockingPods,omitempty"`

	// prometheus are queries that block when they have a result.
	// Example: [{name: error-budget, url: "http://prometheus.monitoring:9090", query: "slo:errors:burn > 2"}].
	// Absent: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Prometheus []PrometheusGate `json:"prometheus,omitempty"`

	// objects are expressions that must be true of objects of the cluster.
	// Example: [{apiVersion: ceph.rook.io/v1, kind: CephCluster, namespace: rook-ceph, name: rook-ceph, expression: "object.status.ceph.health == 'HEALTH_OK'"}].
	// Absent: none.
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
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="podSelector must select something: give matchLabels or matchExpressions"
	PodSelector LabelSelector `json:"podSelector"`

	// namespaceSelector selects the pods' namespaces by label, such as {matchLabels: {team: data}}.
	// Absent or empty: every namespace.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// taintEffect is the effect of taint reboot-operator.io/reboot-pending on a node that waits for such a pod:
	// - PreferNoSchedule: the scheduler puts a new pod on the node only where no other one fits.
	// - NoSchedule: the scheduler puts no new pod on the node that does not tolerate the taint.
	// Where several rules have one, NoSchedule applies.
	// At most maxUnavailable nodes have NoSchedule at a time; the others that wait for such a pod have PreferNoSchedule.
	// Example: {podSelector: {matchLabels: {app: batch}}, taintEffect: NoSchedule}.
	// Absent: PreferNoSchedule.
	// +optional
	// +kubebuilder:validation:Enum=PreferNoSchedule;NoSchedule
	TaintEffect corev1.TaintEffect `json:"taintEffect,omitempty"`
}

// PrometheusGate is a query that blocks when it has a result.
// While a node waits for nothing else, the query runs every 30 seconds, once for all nodes, and has 10 seconds to answer.
// Series whose alertname begins with RebootOperator do not count: alerts about waiting nodes would keep them waiting.
type PrometheusGate struct {
	// name identifies the gate in status and messages, such as error-budget.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be lower-case letters, digits and -, a letter or digit first and last, such as error-budget"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// url is the address of the Prometheus server, or of another server with its API, such as http://prometheus.monitoring:9090.
	// It must not contain credentials.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://') && url(self).getHostname() != ''",message="url must begin with http:// or https:// and name a host"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^:]*://[^/?#]*@')",message="url may not hold credentials: put username and password, or a token, into a Secret and name it in secretRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="url may have a path, but neither ? nor #"
	URL string `json:"url"`

	// query is a PromQL expression, such as ALERTS{alertstate="firing",severity="critical"}.
	// Any series in its result blocks, and so does a number other than 0.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// failurePolicy is what happens while the server cannot be asked:
	// - Block: no reboot is granted.
	// - Ignore: the gate is ignored.
	// For example: failurePolicy: Ignore.
	// Absent: Block.
	// +optional
	FailurePolicy Obstacle `json:"failurePolicy,omitempty"`

	// secretRef names a Secret in the operator's namespace with credentials, such as {name: prometheus}.
	// Its keys are token, or username and password; ca.crt; tls.crt and tls.key.
	// Absent: none.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

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

// ObjectGateNames are the names of gates of objects in status, messages and metrics, in the order of the gates. They have kind and
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

// LabelAggregateToManager with value "true" on a ClusterRole gives its rights to the manager: gates of objects read with them.
const LabelAggregateToManager = "rbac.reboot-operator.io/aggregate-to-manager"

// SecretReference names a Secret in the operator's namespace.
type SecretReference struct {
	// name of the Secret, such as credentials.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
