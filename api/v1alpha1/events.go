package v1alpha1

// Reasons of the events on Nodes and RebootPolicies. Some are also reasons of the Node conditions of KEP-5683, and none is of a condition of
// a RebootPolicy. Many events carry a Reason instead. An event always follows the write that justifies it.
const (
	EventRebootRequired     = "RebootRequired"
	EventUpgradesLeftToHost = "UpgradesLeftToHost"
	EventRebootGranted      = "RebootGranted"
	EventGrantCancelled     = "GrantCancelled"
	EventCordoned           = "Cordoned"
	EventDraining           = "Draining"
	EventEvictionBlocked    = "EvictionBlocked"
	EventDrained            = "Drained"
	EventVolumesInUse       = "VolumesInUse"
	EventDrainAborted       = "DrainAborted"
	EventRebootSucceeded    = "RebootSucceeded"
	EventRebootLost         = "RebootLost"
	// EventNotificationFailed is on policies: a service of spec.notify could not be notified.
	EventNotificationFailed = "NotificationFailed"
	// EventAgentsNotDeployed is on policies: with --manage-agents the manager may not or cannot write the agents' DaemonSet.
	EventAgentsNotDeployed = "AgentsNotDeployed"
)
