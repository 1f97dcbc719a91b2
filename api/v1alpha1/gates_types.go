package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hooks are checks of your own before the drain and after the boot of each node, or before and after each run.
// For each phase of a node it gets a label, and earlier answers are removed.
// The reboot goes on when each annotation is "true".
// The value "false", or one that begins with "failed", refuses at once.
type Hooks struct {
	// before are annotation keys that must be "true" before the drain, such as example.com/backup-done.
	// While they are awaited, the node has label reboot-operator.io/before-reboot=true.
	// Absent: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	Before []AnnotationKey `json:"before,omitempty"`

	// after are annotation keys that must be "true" after the boot, before the node is back in service.
	// Example: [example.com/storage-healthy].
	// While they are awaited, the node has label reboot-operator.io/after-reboot=true.
	// Absent: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	After []AnnotationKey `json:"after,omitempty"`

	// runBefore are annotation keys of this policy that must answer before the first node of a run is granted.
	// An answer begins with status.run.hooks.number: "7: true" approves, and "7: false" or "7: failed: why" refuses.
	// A refusal, or none in time, ends the run before it begins; the next may begin 15 minutes later.
	// Example: [example.com/noout-set].
	// Absent: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	RunBefore []AnnotationKey `json:"runBefore,omitempty"`

	// runAfter are annotation keys of this policy that must answer when a run ends, also by a pause or a halt.
	// The next run begins once they have.
	// Example: [example.com/noout-unset].
	// Absent: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	RunAfter []AnnotationKey `json:"runAfter,omitempty"`

	// timeout is how long each phase may take, of a node or of a run, such as 30m.
	// After that, a node counts as failed, and a run does not begin.
	// Hooks after a run are reported then, and still waited for.
	// Absent: 1h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="timeout must be a duration of more than 0 and at most 168h, such as 30m or 2h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// AnnotationKey is the key of an annotation, such as example.com/backup-done.
// Keys of the operator, of Kubernetes and of autoscalers are refused, because other programs write them.
// When a phase of a node begins, the operator removes earlier answers.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="must be an annotation key such as example.com/backup-done"
// +kubebuilder:validation:XValidation:rule="!self.startsWith('reboot-operator.io/')",message="keys of reboot-operator.io are the operator's own: use a domain of yours, such as example.com/backup-done"
// +kubebuilder:validation:XValidation:rule="!self.matches('^([^/]*[.])?(kubernetes[.]io|(x-)?k8s[.]io|karpenter[.]sh)/')",message="keys of kubernetes.io, k8s.io, x-k8s.io and karpenter.sh belong to others, and an answer is removed: use a domain of yours, such as example.com/backup-done"
type AnnotationKey string

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

	// meanwhile is the effect of taint reboot-operator.io/reboot-pending on a node that waits for such a pod:
	// - PreferNoSchedule: the scheduler puts a new pod on the node only where no other one fits.
	// - NoSchedule: the scheduler puts no new pod on the node that does not tolerate the taint.
	// Where several rules have one, NoSchedule applies.
	// At most maxUnavailable nodes have NoSchedule at a time; the others that wait for such a pod have PreferNoSchedule.
	// Example: {podSelector: {matchLabels: {app: batch}}, meanwhile: NoSchedule}.
	// Absent: PreferNoSchedule.
	// +optional
	// +kubebuilder:validation:Enum=PreferNoSchedule;NoSchedule
	Meanwhile corev1.TaintEffect `json:"meanwhile,omitempty"`
}

// GateFailurePolicy states what a gate that cannot be asked means.
// +kubebuilder:validation:Enum=Block;Allow
type GateFailurePolicy string

const (
	// GateFailureBlock treats it as a no.
	GateFailureBlock GateFailurePolicy = "Block"
	// GateFailureAllow treats it as a yes.
	GateFailureAllow GateFailurePolicy = "Allow"
)

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
	// - Allow: the gate is ignored.
	// For example: failurePolicy: Allow.
	// Absent: Block.
	// +optional
	FailurePolicy GateFailurePolicy `json:"failurePolicy,omitempty"`

	// secretRef names a Secret in the operator's namespace with credentials, such as {name: prometheus}.
	// Its keys are token, or username and password; ca.crt; tls.crt and tls.key.
	// Absent: none.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// GateState is what a gate reported last.
// +kubebuilder:validation:Enum=Clear;Firing;NotReady;Unreachable
type GateState string

const (
	// GateClear means that the query has no result, or that the expression is true of every object.
	GateClear GateState = "Clear"
	// GateFiring means that the query has a result.
	GateFiring GateState = "Firing"
	// GateNotReady means that the expression is false of an object.
	GateNotReady GateState = "NotReady"
	// GateUnreachable means that it is not known.
	GateUnreachable GateState = "Unreachable"
)

// GateStatus is what one gate of gates.prometheus or gates.objects reported last.
type GateStatus struct {
	// name of the gate; of gates.objects the kind and the object, such as CephCluster/rook-ceph.
	// +required
	// +kubebuilder:validation:MaxLength=330
	Name string `json:"name"`
	// state is Clear, Firing, NotReady or Unreachable.
	// +required
	State GateState `json:"state"`
	// message names a series that blocks, with its value at that time, or an object of which the expression is false.
	// Otherwise it states why the gate could not be asked.
	// Absent: it is clear.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// at is since when the gate has reported it.
	// +required
	At metav1.Time `json:"at"`
}

// SecretReference names a Secret in the operator's namespace.
type SecretReference struct {
	// name of the Secret, such as credentials.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
