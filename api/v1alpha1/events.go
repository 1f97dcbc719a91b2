package v1alpha1

// Reasons of the events on Nodes and RebootPolicies, beside those of type Reason that events carry, too. An event always follows
// the write that justifies it.
const (
	EventRebootRequired      = "RebootRequired"
	EventUpgradesLeftToHost  = "UpgradesLeftToHost"
	EventRebootGranted       = "RebootGranted"
	EventGrantCancelled      = "GrantCancelled"
	EventCordoned            = "Cordoned"
	EventDraining            = "Draining"
	EventEvictionBlocked     = "EvictionBlocked"
	EventDrained             = "Drained"
	EventVolumesInUse        = "VolumesInUse"
	EventDrainTimedOut       = "DrainTimedOut"
	EventDrainAborted        = "DrainAborted"
	EventRebooting           = "Rebooting"
	EventRebootRefused       = "RebootRefused"
	EventRebootSucceeded     = "RebootSucceeded"
	EventRebootTimedOut      = "RebootTimedOut"
	EventRebootLost          = "RebootLost"
	EventUncordoned          = "Uncordoned"
	EventWaitingForHook      = "WaitingForHook"
	EventHalted              = "Halted"
	EventResumed             = "Resumed"
	EventPolicyConflict      = "PolicyConflict"
	EventCoordinatorConflict = "CoordinatorConflict"
	EventRecordUnreadable    = "RecordUnreadable"
	EventUpdateNotApplied    = "UpdateNotApplied"
	// EventAlertFiring, EventObjectNotReady and EventGateUnreachable are on policies: a gate of theirs blocks reboots.
	EventAlertFiring     = "AlertFiring"
	EventObjectNotReady  = "ObjectNotReady"
	EventGateUnreachable = "GateUnreachable"
	// EventNotificationFailed is on policies: a service of spec.notify could not be notified.
	EventNotificationFailed = "NotificationFailed"
	// EventAgentsNotDeployed is on policies: with --manage-agents the manager may not or cannot write the agents' DaemonSet.
	EventAgentsNotDeployed = "AgentsNotDeployed"
	// EventAgentsMissing and EventAgentsReady are on policies: nodes have no agent that works, and all have one again.
	EventAgentsMissing = "AgentsMissing"
	EventAgentsReady   = "AgentsReady"
	// EventDeadlineNear and EventDeadlinePassed are on policies: nodes come close to spec.deadline, and are past it.
	EventDeadlineNear   = "DeadlineNear"
	EventDeadlinePassed = "DeadlinePassed"
)
