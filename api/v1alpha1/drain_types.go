package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DrainTimeoutAction says what happens when a drain takes too long.
// +kubebuilder:validation:Enum=Abort;Reboot
type DrainTimeoutAction string

const (
	// DrainTimeoutAbort uncordons the node at once and backs off: 5 minutes, doubling to 6 hours.
	DrainTimeoutAbort DrainTimeoutAction = "Abort"
	// DrainTimeoutReboot reboots the node with the pods that are left on it.
	DrainTimeoutReboot DrainTimeoutAction = "Reboot"
)

// PodDisposal says what happens to pods that lose something by leaving.
// +kubebuilder:validation:Enum=Delete;Block
type PodDisposal string

const (
	// PodDisposalDelete lets them go.
	PodDisposalDelete PodDisposal = "Delete"
	// PodDisposalBlock keeps them, which blocks the drain.
	PodDisposalBlock PodDisposal = "Block"
)

// DrainAction says how a pod leaves the node.
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

// Drain says how pods leave the node. DaemonSet pods, mirror pods and completed pods stay.
type Drain struct {
	// timeout is how long the drain may take; then onTimeout. Absent: 20m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="timeout must be a duration of more than 0 and at most 168h, such as 20m or 2h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// onTimeout is Abort (uncordon at once, back off, count a failure) or Reboot (go on with pods
	// that are left; an inhibitor or a coordinator still ends the attempt). Absent: Abort.
	// +optional
	OnTimeout DrainTimeoutAction `json:"onTimeout,omitempty"`

	// gracePeriodSeconds caps the termination grace period of the pods. Absent: each pod's own.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`

	// emptyDirData says whether pods with emptyDir volumes may go, and their data with them. Absent: Delete.
	// +optional
	EmptyDirData PodDisposal `json:"emptyDirData,omitempty"`

	// unmanagedPods says whether pods without a controller, which nobody will create again, may go. Absent: Block.
	// +optional
	UnmanagedPods PodDisposal `json:"unmanagedPods,omitempty"`

	// volumeDetachTimeout is how long to wait, after the drain, until status.volumesInUse of the node lists no volume but
	// those of pods that stay. Then the reboot goes on. 0s: don't wait. Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) <= duration('168h')",message="volumeDetachTimeout must be a duration of at most 168h, such as 5m; 0s does not wait"
	VolumeDetachTimeout *metav1.Duration `json:"volumeDetachTimeout,omitempty"`

	// rules treat certain pods differently; the first that matches a pod wins. Absent: all pods are evicted together.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Rules []DrainRule `json:"rules,omitempty"`
}

// DrainRule treats certain pods differently.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gracePeriodSeconds) || !has(self.action) || self.action in ['Evict', 'Delete']",message="gracePeriodSeconds goes with action Evict or Delete only"
type DrainRule struct {
	// podSelector selects pods by label. It may not be empty: a rule for every pod is better said by the other fields.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="podSelector must select something: give matchLabels or matchExpressions"
	PodSelector LabelSelector `json:"podSelector"`

	// namespaceSelector selects the pods' namespaces by label. Absent or empty: every namespace.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// action is how the pods leave. Absent: Evict.
	// +optional
	Action DrainAction `json:"action,omitempty"`

	// order puts the pods in a sequence: lower first, and the next only when all of the one before are gone. Pods
	// without a rule have order 0. Absent: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Order int32 `json:"order,omitempty"`

	// gracePeriodSeconds caps the pods' termination grace period. Absent: drain.gracePeriodSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
}
