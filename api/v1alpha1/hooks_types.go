package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Hooks are checks of your own before the drain and after the boot of each node, or before and after each run.
// For each phase of a node it gets a label, and earlier answers are removed.
// The reboot continues when each annotation on the Node is "true".
// The value "false", or one that begins with "failed", refuses at once.
type Hooks struct {
	// before are keys of annotations on the Node that must approve before the drain, such as example.com/backup-done.
	// The value "true" approves. The value "false", or one that begins with "failed", refuses, such as "failed: why".
	// When the hooks are asked, the operator removes earlier answers.
	// While they are awaited, the node has label reboot-operator.io/before-reboot=true.
	// Absent: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	Before []AnnotationKey `json:"before,omitempty"`

	// after are keys of annotations on the Node that must approve after the boot, before the node is back in service.
	// The value "true" approves. The value "false", or one that begins with "failed", refuses, such as "failed: why".
	// When the hooks are asked, the operator removes earlier answers.
	// Example: [example.com/storage-healthy].
	// While they are awaited, the node has label reboot-operator.io/after-reboot=true.
	// Absent: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	After []AnnotationKey `json:"after,omitempty"`

	// runBefore are keys of annotations on this policy that must answer before the first node of a run is granted.
	// An answer begins with status.run.hooks.number: "7: true" approves, and "7: false" or "7: failed: why" refuses.
	// A refusal, or none in time, ends the run before it begins; the next may begin 15 minutes later.
	// Example: [example.com/noout-set].
	// Absent: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	RunBefore []AnnotationKey `json:"runBefore,omitempty"`

	// runAfter are keys of annotations on this policy that must answer when a run ends, also by a pause or a halt.
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
//
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="must be an annotation key such as example.com/backup-done"
// +kubebuilder:validation:XValidation:rule="!self.startsWith('reboot-operator.io/')",message="keys of reboot-operator.io are the operator's own: use a domain of yours, such as example.com/backup-done"
// +kubebuilder:validation:XValidation:rule="!self.matches('^([^/]*[.])?(kubernetes[.]io|(x-)?k8s[.]io|karpenter[.]sh)/')",message="keys of kubernetes.io, k8s.io, x-k8s.io and karpenter.sh belong to others, and an answer is removed: use a domain of yours, such as example.com/backup-done"
type AnnotationKey string

// HookStage is before the drain, or after the boot.
type HookStage string

const (
	// HooksBefore run before the grant is shown to the node.
	HooksBefore HookStage = "Before"
	// HooksAfter run after the boot, while the node is still cordoned.
	HooksAfter HookStage = "After"
)

// Of is the hooks of one stage.
func (h Hooks) Of(stage HookStage) []AnnotationKey {
	if stage == HooksBefore {
		return h.Before
	}
	return h.After
}
