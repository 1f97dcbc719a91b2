package v1alpha1

// Reasons of the events on Nodes and RebootPolicies. An event always follows the write that justifies it.
const (
	EventRebootRequired      = "RebootRequired"
	EventEnginesFound        = "EnginesFound"
	EventRebootGranted       = "RebootGranted"
	EventGrantCancelled      = "GrantCancelled"
	EventCordoned            = "Cordoned"
	EventDraining            = "Draining"
	EventEvictionBlocked     = "EvictionBlocked"
	EventDrained             = "Drained"
	EventDrainTimedOut       = "DrainTimedOut"
	EventDrainAborted        = "DrainAborted"
	EventRebooting           = "Rebooting"
	EventRebootRefused       = "RebootRefused"
	EventRebootSucceeded     = "RebootSucceeded"
	EventRebootTimedOut      = "RebootTimedOut"
	EventUncordoned          = "Uncordoned"
	EventHookTimedOut        = "HookTimedOut"
	EventHookFailed          = "HookFailed"
	EventHalted              = "Halted"
	EventResumed             = "Resumed"
	EventPolicyConflict      = "PolicyConflict"
	EventCoordinatorConflict = "CoordinatorConflict"
	EventWindowOpened        = "WindowOpened"
	EventWindowClosed        = "WindowClosed"
	EventRecordUnreadable    = "RecordUnreadable"
)
