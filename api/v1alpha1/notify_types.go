package v1alpha1

// Notification is a service and the events that it receives.
type Notification struct {
	// secretRef names a Secret in the operator's namespace whose key url holds the addresses of services, one a line.
	// They are URLs of shoutrrr, such as slack://hook:TOKEN@webhook or generic://example.com/path.
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
	// If the list is absent, the service receives all but Rebooting and Back, which come once for each node.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Events []NotifyEvent `json:"events,omitempty"`

	// template is the text of each message, such as "[prod] {event} {node}: {text}".
	// {text} is the default text, {event} one of events, {policy} the policy, and {node} the node, or empty in messages about the policy.
	// Defaults to {text}.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^{}]|[{](text|event|policy|node)[}])*$')",message="template may use braces only for {text}, {event}, {policy} and {node}"
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
	// NotifyUrgent means that spec.urgent.all began, or that a node got its grant by an urgent request.
	NotifyUrgent NotifyEvent = "Urgent"
	// NotifyDeadline means that nodes come close to spec.deadline, or are past it.
	NotifyDeadline NotifyEvent = "Deadline"
	// NotifyRebooting means that a node has its grant: its agent drains it and reboots it.
	NotifyRebooting NotifyEvent = "Rebooting"
	// NotifyBack means that a node is back in service after its reboot.
	NotifyBack NotifyEvent = "Back"
)
