package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Drain configures how pods leave the node.
// DaemonSet pods, mirror pods and completed pods stay.
type Drain struct {
	// timeout is how long the drain may take before onTimeout applies, such as 20m or 2h.
	// Absent: 20m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="timeout must be a duration of more than 0 and at most 168h, such as 20m or 2h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// onTimeout is what happens when the drain has taken longer than timeout:
	// - Abort: the node is uncordoned at once, the attempt counts as failed, and the next one follows after a back-off.
	// - Reboot: the node is rebooted with the pods that are left on it. An inhibitor or a coordinator still ends the attempt.
	// For example: onTimeout: Reboot.
	// Absent: Abort.
	// +optional
	OnTimeout DrainTimeoutAction `json:"onTimeout,omitempty"`

	// leadTime is how long a node is cordoned before the first pod is asked to leave, such as 2m.
	// Load balancers, storage and others that watch nodes can use it to move away.
	// timeout counts from its end.
	// Absent: pods are asked to leave at once.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) <= duration('24h')",message="leadTime must be a duration of at most 24h, such as 30s or 2m"
	LeadTime *metav1.Duration `json:"leadTime,omitempty"`

	// loadBalancers configures external load balancers, such as those of Services of type LoadBalancer:
	// - Exclude: the node has label node.kubernetes.io/exclude-from-external-load-balancers from its grant until it is back in service.
	// - Ignore: the node is not labelled.
	// A label that another program has set stays as it is.
	// Use Exclude with leadTime, so that load balancers have time.
	// Absent: Ignore.
	// +optional
	LoadBalancers LoadBalancers `json:"loadBalancers,omitempty"`

	// gracePeriod caps the termination grace period of the pods, such as 2m.
	// Part of a second counts as a whole one.
	// Absent: each pod's own.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="gracePeriod must be a duration of at least 1s and at most 168h, such as 30s or 2m"
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`

	// emptyDirData configures pods with emptyDir volumes, whose data is lost when the pod leaves:
	// - Delete: the pods leave, and their data is lost.
	// - Block: the pods stay, which blocks the drain.
	// For example: emptyDirData: Block.
	// Absent: Delete.
	// +optional
	EmptyDirData PodDisposal `json:"emptyDirData,omitempty"`

	// unmanagedPods configures pods without a controller, which nothing creates again:
	// - Delete: the pods leave for good.
	// - Block: the pods stay, which blocks the drain.
	// For example: unmanagedPods: Delete.
	// Absent: Block.
	// +optional
	UnmanagedPods PodDisposal `json:"unmanagedPods,omitempty"`

	// closedBudgets configures pods whose PodDisruptionBudget allows no eviction even with every pod healthy.
	// Some programs open such a budget, or move the pod, once its node is cordoned.
	// - Try: the node goes after the others. It is cordoned, and the evictions are retried until timeout.
	//   An attempt that fails is repeated after a back-off: 5 minutes, doubling to 6 hours. It does not count for failures.max.
	// - Wait: the node waits and is not cordoned.
	// With onTimeout: Reboot it has no effect: such budgets are no reason to wait then.
	// For example: closedBudgets: Wait.
	// Absent: Try.
	// +optional
	ClosedBudgets ClosedBudgetPolicy `json:"closedBudgets,omitempty"`

	// volumeDetachTimeout is how long to wait after the drain until the volumes of the evicted pods are detached, such as 10m.
	// It reads status.volumesInUse of the node, without the volumes of pods that stay.
	// When the time has passed, the reboot goes on.
	// 0s does not wait.
	// Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) <= duration('168h')",message="volumeDetachTimeout must be a duration of at most 168h, such as 5m; 0s does not wait"
	VolumeDetachTimeout *metav1.Duration `json:"volumeDetachTimeout,omitempty"`

	// rules handle certain pods differently.
	// The first rule that matches a pod applies.
	// For example: {podSelector: {matchLabels: {app: batch}}, action: WaitCompleted}.
	// Absent: all pods are evicted together.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Rules []DrainRule `json:"rules,omitempty"`
}

// LoadBalancers says what external load balancers learn of a reboot.
// +kubebuilder:validation:Enum=Exclude;Ignore
type LoadBalancers string

const (
	// LoadBalancersExclude takes the node out of external load balancers.
	LoadBalancersExclude LoadBalancers = "Exclude"
	// LoadBalancersIgnore leaves the node in them.
	LoadBalancersIgnore LoadBalancers = "Ignore"
)

// DrainTimeoutAction states what happens when a drain takes too long.
// +kubebuilder:validation:Enum=Abort;Reboot
type DrainTimeoutAction string

const (
	// DrainTimeoutAbort uncordons the node at once and backs off: 5 minutes, doubling to 6 hours.
	DrainTimeoutAbort DrainTimeoutAction = "Abort"
	// DrainTimeoutReboot reboots the node with the pods that are left on it.
	DrainTimeoutReboot DrainTimeoutAction = "Reboot"
)

// PodDisposal states what happens to pods that lose something by leaving.
// +kubebuilder:validation:Enum=Delete;Block
type PodDisposal string

const (
	// PodDisposalDelete lets them go.
	PodDisposalDelete PodDisposal = "Delete"
	// PodDisposalBlock keeps them, which blocks the drain.
	PodDisposalBlock PodDisposal = "Block"
)

// ClosedBudgetPolicy states what happens to nodes with pods whose budget allows no eviction.
// +kubebuilder:validation:Enum=Try;Wait
type ClosedBudgetPolicy string

const (
	// ClosedBudgetsTry drains the node after the others, in case the budget opens once the node is cordoned.
	ClosedBudgetsTry ClosedBudgetPolicy = "Try"
	// ClosedBudgetsWait does not drain the node until the budget allows evictions.
	ClosedBudgetsWait ClosedBudgetPolicy = "Wait"
)

// DrainRule handles certain pods differently.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gracePeriod) || !has(self.action) || self.action in ['Evict', 'Delete']",message="gracePeriod goes with action Evict or Delete only"
type DrainRule struct {
	// podSelector selects pods by label, such as {matchLabels: {app: db}}.
	// It must not be empty: the other fields of drain apply to every pod.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="podSelector must select something: give matchLabels or matchExpressions"
	PodSelector LabelSelector `json:"podSelector"`

	// namespaceSelector selects the pods' namespaces by label, such as {matchLabels: {team: data}}.
	// Absent or empty: every namespace.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// action is how the selected pods leave the node:
	// - Evict: evicts the pod and respects its PodDisruptionBudgets.
	// - WaitCompleted: waits until the pod has completed by itself.
	// - Skip: leaves the pod on the node.
	// - Delete: deletes the pod, regardless of its PodDisruptionBudgets.
	// For example: action: WaitCompleted.
	// Absent: Evict.
	// +optional
	Action DrainAction `json:"action,omitempty"`

	// order puts the pods in a sequence, such as 10 for a database after its clients.
	// Pods with a lower order leave first, and the next ones only after all of these are gone.
	// Pods without a rule have order 0.
	// Absent: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Order int32 `json:"order,omitempty"`

	// gracePeriod caps the pods' termination grace period, such as 30s.
	// Absent: drain.gracePeriod.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="gracePeriod must be a duration of at least 1s and at most 168h, such as 30s or 2m"
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`
}

// DrainAction states how a pod leaves the node.
// +kubebuilder:validation:Enum=Evict;WaitCompleted;Skip;Delete
type DrainAction string

const (
	// DrainEvict evicts the pod; PodDisruptionBudgets are respected.
	DrainEvict DrainAction = "Evict"
	// DrainWaitCompleted waits until the pod has completed by itself.
	DrainWaitCompleted DrainAction = "WaitCompleted"
	// DrainSkip leaves the pod on the node.
	DrainSkip DrainAction = "Skip"
	// DrainDelete deletes the pod: the one way round a PodDisruptionBudget.
	DrainDelete DrainAction = "Delete"
)
