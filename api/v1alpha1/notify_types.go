package v1alpha1

// Notification is a service and the events that it receives.
type Notification struct {
	// secretRef names a Secret in the operator's namespace whose key url holds the address of a service.
	// The address has the form of shoutrrr, such as slack://hook:TOKEN@webhook or generic://example.com/path.
	// Several lines are several services.
	// +required
	SecretRef SecretReference `json:"secretRef"`

	// events are the events that the service receives, such as [Failed, Halted]:
	// - Started: a run has begun, and its first node has its grant.
	// - Finished: a run is over. No reboot is in progress, and none may be granted now.
	// - Failed: reboots of nodes have failed.
	// - Halted: the policy halted after failures.
	// - Urgent: spec.urgent.all began, or a node has its grant by an urgent request.
	// - Deadline: nodes come close to spec.deadline, or are past it.
	// - Rebooting: a node has its grant, and is drained and rebooted.
	// - Back: a node is back in service after its reboot.
	// Absent: all but Rebooting and Back, of which there are as many as nodes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Events []NotifyEvent `json:"events,omitempty"`

	// template is the text of each message, such as "[prod] {event} {node}: {text}".
	// {text} is the text without a template, {event} is one of events, and {policy} is the name of the policy.
	// {node} is the name of the node that the message is about, and empty where it is about the policy.
	// Absent: the same as {text}.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^{}]|[{](text|event|policy|node)[}])*$')",message="braces are for {text}, {event}, {policy} and {node}"
	Template string `json:"template,omitempty"`
}

// NotifyEvent is an event that a service receives.
// +kubebuilder:validation:Enum=Started;Finished;Failed;Halted;Urgent;Deadline;Rebooting;Back
type NotifyEvent string

const (
	// NotifyStarted means that a run has begun: the first node got its grant.
	NotifyStarted NotifyEvent = "Started"
	// NotifyFinished means that a run is over: no node holds a grant, and none may be granted now.
	NotifyFinished NotifyEvent = "Finished"
	// NotifyFailed means that the reboots of nodes failed.
	NotifyFailed NotifyEvent = "Failed"
	// NotifyHalted means that the policy halted after failures.
	NotifyHalted NotifyEvent = "Halted"
	// NotifyUrgent means that reboots may start at hours that are forbidden otherwise, or that one was granted then.
	NotifyUrgent NotifyEvent = "Urgent"
	// NotifyDeadline means that nodes come close to spec.deadline, or are past it.
	NotifyDeadline NotifyEvent = "Deadline"
	// NotifyRebooting means that a node has its grant: its agent drains it and reboots it.
	NotifyRebooting NotifyEvent = "Rebooting"
	// NotifyBack means that a node is back in service after its reboot.
	NotifyBack NotifyEvent = "Back"
)
