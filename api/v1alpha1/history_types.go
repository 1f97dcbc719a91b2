package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RebootResult is how a reboot ended.
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
)

// PastReboot is one granted reboot that is over, but for those that were taken back before they disturbed the node.
type PastReboot struct {
	// node is the name of the Node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// seq is the sequence number of its grant.
	// +required
	Seq int64 `json:"seq"`
	// result is Succeeded, Aborted, Lost or Withdrawn.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Result RebootResult `json:"result"`
	// reason is who asked for a reboot that succeeded (UpdateStaged, SentinelPresent, Requested, MaxUptime), or why one was not made.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// message reports more about a reason why not.
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
	// ring is the ring of spec.order in which the node was when it was granted.
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
	// settle is how long it took from then until the node was back in service, with the hooks after the boot.
	// Absent: the phase was not reached, or could not be measured.
	// +optional
	Settle *metav1.Duration `json:"settle,omitempty"`
}
