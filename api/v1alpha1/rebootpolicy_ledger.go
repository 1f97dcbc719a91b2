package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MaxGrants is the most grants one ledger holds; a higher limit is used up to it.
const MaxGrants = 1000

// MaxBootIDBytes is the longest boot ID that a ledger takes.
const MaxBootIDBytes = 64

// LedgerEntry is one reboot that was granted and is not finished.
type LedgerEntry struct {
	// node is the name of the Node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// nodeUID is metadata.uid of that Node.
	// A Node that is registered again under the same name has another one, and the grant does not apply to it.
	// Absent: the grant applies to no Node.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// seq is the grant's sequence number.
	// The first is 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Seq int64 `json:"seq"`
	// bootID is the boot for which the grant was given. The grant ends with this boot.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`
	// at is when the grant was given.
	// +required
	At metav1.Time `json:"at"`
	// needSince is since when the node had waited for a reboot at that time.
	// Absent: unknown.
	// +optional
	NeedSince metav1.Time `json:"needSince,omitempty,omitzero"`
	// osVersion is label os-version of the node at that time.
	// Absent: unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	OSVersion string `json:"osVersion,omitempty"`
	// policy is the RebootPolicy that granted, where that one shares the limit of this one.
	// Absent: this policy.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Policy string `json:"policy,omitempty"`
	// withdrawnAt is when the manager withdrew the grant in this ledger: from then on no agent begins under it.
	// Absent: the grant holds.
	// +optional
	WithdrawnAt *metav1.Time `json:"withdrawnAt,omitempty"`
	// rebootingAt is when the node passed the point of no return.
	// It is also set while it is unknown how far the reboot is.
	// If such a Node is deleted, its reboot counts as failed.
	// Absent: the node is not rebooting yet.
	// +optional
	RebootingAt *metav1.Time `json:"rebootingAt,omitempty"`
	// ring is the ring of spec.rings in which the node was when it was granted.
	// Absent: in none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Ring string `json:"ring,omitempty"`
	// try reports whether the agent may drain although a PodDisruptionBudget allows no eviction.
	// See drain.closedBudgets.
	// Absent: it may not.
	// +optional
	Try bool `json:"try,omitempty"`
}

// RunStatus is a run: from the first grant until no node holds a grant and none may be granted.
// With hooks.runBefore or hooks.runAfter it also lasts while these are asked, and through soaks, spacing and gates.
type RunStatus struct {
	// startedAt is when the first grant was given, or hooks.runBefore were asked.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// seq is status.seq before the run: reboots with greater numbers belong to the run.
	// +required
	Seq int64 `json:"seq"`
	// rebooted is how many nodes came back so far.
	// +required
	Rebooted int32 `json:"rebooted"`
	// failed is how many attempts ended without a confirmed reboot.
	// +required
	Failed int32 `json:"failed"`
	// hooks is how far hooks.runBefore and hooks.runAfter are.
	// Absent: the run has none.
	// +optional
	Hooks *RunHooks `json:"hooks,omitempty"`
}

// MaxHistory is the most reboots that status.history holds.
const MaxHistory = 20

// PastReboot is one granted reboot that is over, but for those that were cancelled before they disturbed the node.
type PastReboot struct {
	// node is the name of the Node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// seq is the sequence number of its grant.
	// +required
	Seq int64 `json:"seq"`
	// result is one of:
	// - Succeeded: the node came back on a new boot ID and was put back in service.
	// - Aborted: the drain ended before the reboot, and the node was put back in service.
	// - Lost: the Node was deleted while it held its grant.
	// - Withdrawn: the grant could not be published on the Node, which was not disturbed.
	// - Cancelled: the grant was cancelled before it disturbed the node. Only the log of the manager has such attempts.
	// +required
	Result RebootResult `json:"result"`
	// reason is what asked for a reboot that succeeded (UpdateStaged, SentinelPresent, Requested, MaxUptime), or why no reboot was confirmed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// message explains why no reboot was confirmed.
	// Absent: result is Succeeded, or reason explains it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// fromVersion is the version of the operating system before the reboot.
	// Absent: unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	FromVersion string `json:"fromVersion,omitempty"`
	// toVersion is the version of the operating system after the reboot.
	// Absent: unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ToVersion string `json:"toVersion,omitempty"`
	// grantedAt is when the grant was given.
	// +required
	GrantedAt metav1.Time `json:"grantedAt"`
	// ring is the ring of spec.rings in which the node was when it was granted.
	// Absent: in none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Ring string `json:"ring,omitempty"`
	// endedAt is when the node was back in service, the grant was withdrawn, or the manager saw that the Node was deleted.
	// Absent: unknown.
	// +optional
	EndedAt metav1.Time `json:"endedAt,omitempty,omitzero"`
	// podsForced is how many pods did not leave in order.
	// Counted are pods that were left when the node was rebooted regardless (drain.onTimeout: Reboot).
	// Pods that drain rules with action Delete removed since the agent last started are counted, too.
	// Absent: none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodsForced int32 `json:"podsForced,omitempty"`
	// drain is how long the drain took.
	// Absent: the phase was not reached, or could not be measured.
	// +optional
	Drain *metav1.Duration `json:"drain,omitempty"`
	// reboot is how long it took from the point of no return until the agent reported again.
	// Absent: the phase was not reached, or could not be measured.
	// +optional
	Reboot *metav1.Duration `json:"reboot,omitempty"`
	// settle is how long it took from the agent's first report after the boot until the node was back in service.
	// It includes the hooks after the boot.
	// Absent: the phase was not reached, or could not be measured.
	// +optional
	Settle *metav1.Duration `json:"settle,omitempty"`
}

// RebootResult is how a reboot ended.
// +kubebuilder:validation:Enum=Succeeded;Aborted;Lost;Withdrawn;Cancelled
type RebootResult string

const (
	// RebootSucceeded means the node came back on a new boot ID and was put back in service.
	RebootSucceeded RebootResult = "Succeeded"
	// RebootAborted means the drain was given up and the node put back in service without a reboot.
	RebootAborted RebootResult = "Aborted"
	// RebootLost means the Node was deleted while it held its grant.
	RebootLost RebootResult = "Lost"
	// RebootWithdrawn means the grant could not be published on the Node, which was not disturbed.
	RebootWithdrawn RebootResult = "Withdrawn"
	// RebootCancelled means the grant was cancelled before it disturbed the node.
	RebootCancelled RebootResult = "Cancelled"
)

// RunHooks is how far the hooks of a run are.
type RunHooks struct {
	// stage is one of:
	// - Before: hooks.runBefore are asked, and no node is granted.
	// - Running: nodes hold a grant, or the next one waits for a soak or spacing.
	// - Idle: the next node waits for something else, such as a gate. After hooks.timeout the run ends.
	// - After: hooks.runAfter are asked, and no node is granted.
	// +required
	Stage RunStage `json:"stage"`
	// number is what an answer has to begin with, such as the 7 of "7: true".
	// Each stage that asks has its own, so an earlier answer never counts.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
	// asked are the annotations of this policy in which hooks have to answer.
	// Absent: no hook is asked.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Asked []AnnotationKey `json:"asked,omitempty"`
	// at is since when the run is in this stage.
	// +required
	At metav1.Time `json:"at"`
	// reason is HookFailed or HookTimedOut: a hook of runBefore, and so the run did not begin, or one of runAfter.
	// Absent: no hook has refused or timed out.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// message names the hooks that reason is about.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// RunStage is how far the hooks of a run are.
// +kubebuilder:validation:Enum=Before;Running;Idle;After
type RunStage string

const (
	// RunBefore asks hooks.runBefore. No node is granted meanwhile.
	RunBefore RunStage = "Before"
	// RunRunning has nodes that hold a grant, or waits for a soak or spacing.
	RunRunning RunStage = "Running"
	// RunIdle waits for what ends at no known time, such as a gate, for hooks.timeout at most.
	RunIdle RunStage = "Idle"
	// RunAfter asks hooks.runAfter. No node is granted meanwhile.
	RunAfter RunStage = "After"
)
