package v1alpha1

// Drain configures how pods leave the node.
// DaemonSet pods, mirror pods and completed pods stay.
type Drain struct {
	// timeout is the longest that the drain may take before onTimeout applies, such as 2h.
	// Defaults to 20m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d > duration('0s') && d <= duration('168h'))",message="timeout must be a duration of more than 0 and at most 7d, such as 20m or 2h"
	Timeout *Duration `json:"timeout,omitempty"`

	// onTimeout decides about a drain that takes longer than timeout:
	// - Abort: the node is uncordoned at once, the attempt counts as failed, and the next one follows after a back-off.
	// - Reboot: the node is rebooted with the remaining pods on it. An inhibitor or a coordinator still ends the attempt.
	// Defaults to Abort.
	// Example: Reboot.
	// +optional
	OnTimeout DrainTimeoutAction `json:"onTimeout,omitempty"`

	// leadTime is the time between the cordon and the first eviction, such as 2m.
	// Load balancers, storage and other programs that watch nodes can move away in that time, and timeout counts from its end.
	// If it is absent, evictions begin at once.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d <= duration('24h'))",message="leadTime must be a duration of at most 24h, such as 30s or 2m"
	LeadTime *Duration `json:"leadTime,omitempty"`

	// loadBalancers configures external load balancers, such as those of Services of type LoadBalancer:
	// - Exclude: the node has label node.kubernetes.io/exclude-from-external-load-balancers from its grant until it is back in service.
	// - Ignore: the node is not labelled.
	// With Exclude, set leadTime too, so that load balancers have time to react.
	// Defaults to Ignore.
	// +optional
	LoadBalancers LoadBalancers `json:"loadBalancers,omitempty"`

	// gracePeriod is the longest termination grace period that a pod gets, such as 2m. Fractions of a second are rounded up.
	// If it is absent, each pod's own grace period applies.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d >= duration('1s') && d <= duration('168h'))",message="gracePeriod must be a duration of at least 1s and at most 7d, such as 30s or 2m"
	GracePeriod *Duration `json:"gracePeriod,omitempty"`

	// emptyDirData configures pods with emptyDir volumes, whose data is lost when the pod leaves:
	// - Delete: the pods leave, and their data is lost.
	// - Block: the pods stay, which blocks the drain.
	// Defaults to Delete.
	// Example: Block.
	// +optional
	EmptyDirData PodDisposal `json:"emptyDirData,omitempty"`

	// unmanagedPods configures pods without a controller, which nothing creates again:
	// - Delete: the pods are gone for good.
	// - Block: the pods stay, which blocks the drain.
	// Defaults to Block.
	// Example: Delete.
	// +optional
	UnmanagedPods PodDisposal `json:"unmanagedPods,omitempty"`

	// closedBudgets configures nodes with pods whose PodDisruptionBudget allows no eviction, even with every pod healthy. Some programs open it, or move the pod, once the node is cordoned.
	// - Try: drains the node after the others; a try that fails is undone, backs off, and does not count for maxFailures.
	// - Wait: does not drain the node until the budget allows evictions.
	// Example: Wait.
	// Defaults to Try.
	// +optional
	ClosedBudgets ClosedBudgetPolicy `json:"closedBudgets,omitempty"`

	// volumeDetachTimeout is the longest wait after the drain for the volumes of the evicted pods to detach, such as 10m.
	// When the time has passed, the reboot goes on.
	// Defaults to 5m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d <= duration('168h'))",message="volumeDetachTimeout must be a duration of at most 7d, such as 5m; 0s does not wait"
	VolumeDetachTimeout *Duration `json:"volumeDetachTimeout,omitempty"`

	// rules handle some pods differently: the first rule that matches a pod applies.
	// If the list is absent, all pods are evicted together.
	// Example: [{podSelector: {matchLabels: {app: batch}}, action: WaitCompleted}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Rules []DrainRule `json:"rules,omitempty"`
}

// LoadBalancers says whether external load balancers leave the node out.
// +kubebuilder:validation:Enum=Exclude;Ignore
type LoadBalancers string

const (
	// LoadBalancersExclude takes the node out of external load balancers.
	LoadBalancersExclude LoadBalancers = "Exclude"
	// LoadBalancersIgnore leaves the node in them.
	LoadBalancersIgnore LoadBalancers = "Ignore"
)

// DrainTimeoutAction says what happens when a drain takes too long.
// +kubebuilder:validation:Enum=Abort;Reboot
type DrainTimeoutAction string

const (
	// DrainTimeoutAbort uncordons the node at once and backs off: 5 minutes, doubling to 6 hours.
	DrainTimeoutAbort DrainTimeoutAction = "Abort"
	// DrainTimeoutReboot reboots the node with the remaining pods on it.
	DrainTimeoutReboot DrainTimeoutAction = "Reboot"
)

// PodDisposal says what happens to pods that lose something if they leave.
// +kubebuilder:validation:Enum=Delete;Block
type PodDisposal string

const (
	// PodDisposalDelete lets the pods leave.
	PodDisposalDelete PodDisposal = "Delete"
	// PodDisposalBlock keeps the pods on the node, which blocks the drain.
	PodDisposalBlock PodDisposal = "Block"
)

// ClosedBudgetPolicy decides about nodes with pods whose budget allows no eviction.
// +kubebuilder:validation:Enum=Try;Wait
type ClosedBudgetPolicy string

const (
	// ClosedBudgetsTry drains the node after the others, in case the budget opens once the node is cordoned.
	ClosedBudgetsTry ClosedBudgetPolicy = "Try"
	// ClosedBudgetsWait does not drain the node until the budget allows evictions.
	ClosedBudgetsWait ClosedBudgetPolicy = "Wait"
)

// DrainRule handles some pods differently.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gracePeriod) || !has(self.action) || self.action in ['Evict', 'Delete']",message="gracePeriod works only with action Evict or Delete: remove it, or change action"
type DrainRule struct {
	// podSelector selects pods by label, such as {matchLabels: {app: db}}.
	// It must not be empty, because the other fields of drain apply to every pod.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="podSelector must not be empty: give it matchLabels or matchExpressions"
	PodSelector LabelSelector `json:"podSelector"`

	// namespaceSelector selects the pods' namespaces by label, such as {matchLabels: {team: data}}.
	// If it is absent or empty, pods of every namespace match.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// action decides how the selected pods leave the node:
	// - Evict: evicts the pod and respects its PodDisruptionBudgets.
	// - WaitCompleted: waits until the pod has completed by itself.
	// - Skip: leaves the pod on the node.
	// - Delete: deletes the pod, regardless of its PodDisruptionBudgets.
	// Defaults to Evict.
	// Example: WaitCompleted.
	// +optional
	Action DrainAction `json:"action,omitempty"`

	// order puts the pods in a sequence, such as 10 for a database that leaves after its clients.
	// Pods with a lower order leave first, and the next ones only after all of these are gone.
	// Defaults to 0, which pods without a rule have too.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Order int32 `json:"order,omitempty"`

	// gracePeriod is the longest termination grace period that these pods get, such as 30s.
	// If it is absent, drain.gracePeriod applies.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d >= duration('1s') && d <= duration('168h'))",message="gracePeriod must be a duration of at least 1s and at most 7d, such as 30s or 2m"
	GracePeriod *Duration `json:"gracePeriod,omitempty"`
}

// DrainAction says how a pod leaves the node.
// +kubebuilder:validation:Enum=Evict;WaitCompleted;Skip;Delete
type DrainAction string

const (
	// DrainEvict evicts the pod and respects its PodDisruptionBudgets.
	DrainEvict DrainAction = "Evict"
	// DrainWaitCompleted waits until the pod has completed by itself.
	DrainWaitCompleted DrainAction = "WaitCompleted"
	// DrainSkip leaves the pod on the node.
	DrainSkip DrainAction = "Skip"
	// DrainDelete deletes the pod, regardless of its PodDisruptionBudgets.
	DrainDelete DrainAction = "Delete"
)
