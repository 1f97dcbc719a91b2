package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MaxGrants is the most grants that one ledger holds. A higher limit has the effect of this one.
const MaxGrants = 1000

// MaxBootIDBytes is the longest boot ID that a ledger takes.
const MaxBootIDBytes = 64

// MaxKernelBytes is the longest kernel version that a status takes.
const MaxKernelBytes = 64

// LedgerEntry is one reboot that was granted and is not finished.
type LedgerEntry struct {
	// node is the name of the Node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// nodeUID is metadata.uid of that Node.
	// A Node that is registered again under the same name has another UID, and the grant does not apply to it.
	// If it is absent, the grant applies to no Node.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// seq is the sequence number of the grant, beginning with 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Seq int64 `json:"seq"`
	// bootID is the boot for which the grant was given.
	// The grant ends with this boot.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`
	// at is the time when the grant was given.
	// +required
	At metav1.Time `json:"at"`
	// needSince is the time when the node began to need the reboot.
	// It is absent if that is unknown.
	// +optional
	NeedSince metav1.Time `json:"needSince,omitempty,omitzero"`
	// osVersion is label os-version of the node at the time of the grant.
	// It is absent if that is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	OSVersion string `json:"osVersion,omitempty"`
	// kernelVersion is the kernel of the node at the time of the grant, as its kubelet reports it.
	// It is absent if that is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	KernelVersion string `json:"kernelVersion,omitempty"`
	// policy is the RebootPolicy that granted the reboot, if it shares the limit of this policy.
	// If it is absent, this policy granted it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Policy string `json:"policy,omitempty"`
	// withdrawnAt is the time when the manager withdrew the grant, after which no agent begins to use it.
	// It is absent while the grant holds.
	// +optional
	WithdrawnAt *metav1.Time `json:"withdrawnAt,omitempty"`
	// rebootingAt is the time when the node passed the point of no return, or may have passed it.
	// If such a Node is deleted, its reboot counts as failed.
	// It is absent if the node is not rebooting yet.
	// +optional
	RebootingAt *metav1.Time `json:"rebootingAt,omitempty"`
	// ring is the ring of spec.rings that the node was in when it was granted.
	// It is absent if the node was in none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Ring string `json:"ring,omitempty"`
	// try reports whether the agent may drain although a PodDisruptionBudget allows no eviction.
	// See drain.closedBudgets.
	// It is absent if the agent may not.
	// +optional
	Try bool `json:"try,omitempty"`
}

// RunStatus is a run: from the first grant until no node holds a grant and none may be granted.
// With hooks.runBefore or hooks.runAfter it also lasts while these run, and through soaks, spacing and gates.
type RunStatus struct {
	// startedAt is the time when the first grant was given, or hooks.runBefore began.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// seq is status.seq before the run. Reboots with higher numbers belong to the run.
	// +required
	Seq int64 `json:"seq"`
	// rebooted is the number of nodes that have come back so far.
	// +required
	Rebooted int32 `json:"rebooted"`
	// failed is the number of attempts that ended without a confirmed reboot.
	// +required
	Failed int32 `json:"failed"`
	// hooks is the progress of hooks.runBefore and hooks.runAfter.
	// It is absent if the run has none.
	// +optional
	Hooks *RunHooks `json:"hooks,omitempty"`
}

// MaxHistory is the most reboots that status.history holds.
const MaxHistory = 10

// PastReboot is one granted reboot that is over, except one that was cancelled before it disturbed the node.
// It may also be a reboot that nobody granted.
type PastReboot struct {
	// node is the name of the Node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// seq is the sequence number of its grant, or 0 if result is Unexpected.
	// +required
	Seq int64 `json:"seq"`
	// result is one of:
	// - Succeeded: the node came back on a new boot ID and was put back in service.
	// - Aborted: the drain ended before the reboot, and the node was put back in service.
	// - Lost: the Node was deleted while it held its grant.
	// - Withdrawn: the grant could not be published on the Node, which was not disturbed.
	// - Unexpected: the host was rebooted, and nobody granted that. The last 3 of these are kept.
	// - Cancelled: the grant was cancelled before it disturbed the node. Only the log of the manager has such attempts.
	// +required
	Result RebootResult `json:"result"`
	// reason names the need for a reboot that succeeded, such as UpdateStaged, or the cause of a failure.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// message explains why no reboot was confirmed, and is absent if reason does.
	// If result is Succeeded, it names the update that was applied, if neither version nor kernel shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// fromVersion is the version of the operating system before the reboot.
	// It is absent if that is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	FromVersion string `json:"fromVersion,omitempty"`
	// toVersion is the version of the operating system after the reboot.
	// It is absent if that is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ToVersion string `json:"toVersion,omitempty"`
	// fromKernel is the kernel before the reboot.
	// It is absent if that is unknown, or if the reboot did not change the kernel.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FromKernel string `json:"fromKernel,omitempty"`
	// toKernel is the kernel after the reboot.
	// It is absent if that is unknown, or if the reboot did not change the kernel.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ToKernel string `json:"toKernel,omitempty"`
	// grantedAt is the time when the grant was given, or equals endedAt if result is Unexpected.
	// +required
	GrantedAt metav1.Time `json:"grantedAt"`
	// ring is the ring of spec.rings that the node was in when it was granted.
	// It is absent if the node was in none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Ring string `json:"ring,omitempty"`
	// endedAt is the time when the node was back in service, the grant was withdrawn, or the manager saw that the Node was deleted.
	// For Unexpected it is the time when the host booted.
	// It is absent if that is unknown.
	// +optional
	EndedAt metav1.Time `json:"endedAt,omitempty,omitzero"`
	// podsForced is the number of pods that did not leave by an eviction.
	// It counts pods that remained when the node was rebooted with drain.onTimeout Reboot, and pods that drain rules deleted.
	// It is absent if every pod was evicted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodsForced int32 `json:"podsForced,omitempty"`
	// drain is the duration of the drain.
	// It is absent if the phase was not reached, or could not be measured.
	// +optional
	Drain *metav1.Duration `json:"drain,omitempty"`
	// reboot is the time from the point of no return until the agent reported again.
	// It is absent if the phase was not reached, or could not be measured.
	// +optional
	Reboot *metav1.Duration `json:"reboot,omitempty"`
	// settle is the time from the agent's first report after the boot until the node was back in service.
	// It includes the hooks after the boot, and is absent if the phase was not reached, or could not be measured.
	// +optional
	Settle *metav1.Duration `json:"settle,omitempty"`
}

// RebootResult says how a reboot ended.
// +kubebuilder:validation:Enum=Succeeded;Aborted;Lost;Withdrawn;Unexpected;Cancelled
type RebootResult string

const (
	// RebootSucceeded means the node came back on a new boot ID and was put back in service.
	RebootSucceeded RebootResult = "Succeeded"
	// RebootAborted means the drain ended before the reboot, and the node was put back in service.
	RebootAborted RebootResult = "Aborted"
	// RebootLost means the Node was deleted while it held its grant.
	RebootLost RebootResult = "Lost"
	// RebootWithdrawn means the grant could not be published on the Node, which was not disturbed.
	RebootWithdrawn RebootResult = "Withdrawn"
	// RebootUnexpected means the host was rebooted, and nobody granted that.
	RebootUnexpected RebootResult = "Unexpected"
	// RebootCancelled means the grant was cancelled before it disturbed the node.
	RebootCancelled RebootResult = "Cancelled"
)

// RunHooks is the progress of the hooks of a run.
type RunHooks struct {
	// stage is one of:
	// - Before: hooks.runBefore run, and no node is granted.
	// - Running: nodes hold a grant, or the next one waits for a soak or spacing.
	// - Idle: the next node waits for something else, such as a gate. After hooks.timeout the run ends.
	// - After: hooks.runAfter run, and no node is granted.
	// +required
	Stage RunStage `json:"stage"`
	// number is the number with which the value of a hook must begin, such as the 7 of "7: true".
	// Stages Before and After have different numbers, so a value from earlier never counts.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
	// asked lists the annotations of this policy that hooks must set.
	// It is absent if no hook runs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Asked []AnnotationKey `json:"asked,omitempty"`
	// at is the time when this stage began.
	// +required
	At metav1.Time `json:"at"`
	// reason is HookFailed or HookTimedOut, for a hook of runBefore, so that the run did not begin, or for one of runAfter.
	// It is absent if no hook has refused or timed out.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// message names the hooks that reason is about.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// RunStage is a stage of a run with hooks.
// +kubebuilder:validation:Enum=Before;Running;Idle;After
type RunStage string

const (
	// RunBefore runs hooks.runBefore. No node is granted during that time.
	RunBefore RunStage = "Before"
	// RunRunning has nodes that hold a grant, or waits for a soak or spacing.
	RunRunning RunStage = "Running"
	// RunIdle waits for what ends at no known time, such as a gate, for hooks.timeout at most.
	RunIdle RunStage = "Idle"
	// RunAfter runs hooks.runAfter. No node is granted during that time.
	RunAfter RunStage = "After"
)
