package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
