package v1alpha1

// Hooks are your own checks before the drain and after the boot of each node, or before and after each run.
// In each phase the node has a label, and the reboot continues when each annotation on the Node is "true".
// The value "false", or one that begins with "failed", refuses at once.
type Hooks struct {
	// before are keys of annotations on the Node that must be "true" before the drain, such as example.com/backup-done.
	// In this phase the node has label reboot-operator.io/before-reboot=true, and the value "false", or one that begins with "failed", refuses.
	// Defaults to none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	Before []AnnotationKey `json:"before,omitempty"`

	// after are keys of annotations on the Node that must be "true" after the boot, before the node is back in service.
	// In this phase the node has label reboot-operator.io/after-reboot=true, and the value "false", or one that begins with "failed", refuses.
	// Defaults to none.
	// Example: [example.com/storage-healthy].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	After []AnnotationKey `json:"after,omitempty"`

	// runBefore are keys of annotations on this policy that must approve before the first node of a run is granted.
	// Values begin with status.run.hooks.number: "7: true" approves, and "7: failed: why" ends the run, which may begin again 15 minutes later.
	// Defaults to none.
	// Example: [example.com/noout-set].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	RunBefore []AnnotationKey `json:"runBefore,omitempty"`

	// runAfter are keys of annotations on this policy that must approve when a run ends, also by a pause or a halt.
	// The next run begins only after they have.
	// Defaults to none.
	// Example: [example.com/noout-unset].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	RunAfter []AnnotationKey `json:"runAfter,omitempty"`

	// timeout is the longest that each phase of a node or a run may take, such as 30m.
	// After that, a node counts as failed, a run does not begin, and hooks after a run are reported.
	// Defaults to 1h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d > duration('0s') && d <= duration('168h'))",message="timeout must be a duration of more than 0 and at most 7d, such as 30m or 2h"
	Timeout *Duration `json:"timeout,omitempty"`
}

// AnnotationKey is the key of an annotation, such as example.com/backup-done.
// Keys of the operator, of Kubernetes and of autoscalers are refused, because other programs write them.
//
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="must be an annotation key, such as example.com/backup-done"
// +kubebuilder:validation:XValidation:rule="!self.startsWith('reboot-operator.io/')",message="keys of reboot-operator.io belong to the operator: use your own domain, such as example.com/backup-done"
// +kubebuilder:validation:XValidation:rule="!self.matches('^([^/]*[.])?(kubernetes[.]io|(x-)?k8s[.]io|karpenter[.]sh)/')",message="keys of kubernetes.io, k8s.io, x-k8s.io and karpenter.sh belong to other programs: use your own domain, such as example.com/backup-done"
type AnnotationKey string

// HookStage is a phase of the hooks of a node: before the drain, or after the boot.
type HookStage string

const (
	// HooksBefore run before the grant is shown to the node.
	HooksBefore HookStage = "Before"
	// HooksAfter run after the boot, while the node is still cordoned.
	HooksAfter HookStage = "After"
)

// Of returns the hooks of one stage.
func (h Hooks) Of(stage HookStage) []AnnotationKey {
	if stage == HooksBefore {
		return h.Before
	}
	return h.After
}
