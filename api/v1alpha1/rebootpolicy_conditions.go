package v1alpha1

import "regexp"

// Condition types of a RebootPolicy.
const (
	// ConditionAccepted reports whether the manager acts on the whole spec.
	ConditionAccepted = "Accepted"
	// ConditionWindowOpen reports whether windows and blackouts allow a reboot to start now.
	ConditionWindowOpen = "WindowOpen"
	// ConditionProgressing is True while a node holds a grant.
	ConditionProgressing = "Progressing"
	// ConditionHalted is True once as many nodes as maxFailures have failed since the last success.
	ConditionHalted = "Halted"
	// ConditionAgentsReady reports whether every node in service has an agent that works. It is absent
	// until that is known.
	ConditionAgentsReady = "AgentsReady"
	// ConditionDeadlineNear reports whether nodes have needed a reboot for three quarters of
	// spec.deadline. It is absent without a deadline.
	ConditionDeadlineNear = "DeadlineNear"
)

// Reason is a cause in CamelCase. It is the same in conditions, events, metrics and plans.
type Reason string

// reasonPattern matches what a condition of the API allows, and is short enough for a metric label.
var reasonPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,63}$`)

// IsValid reports whether a status accepts the reason. Others can write any text into a record, and the
// API server refuses a whole status because of one invalid reason.
func (r Reason) IsValid() bool { return reasonPattern.MatchString(string(r)) }

// Reasons of Node condition RebootPermitted=False: why a node that needs a reboot may not have it now.
// The checks run in the order of this list, and the first that fails gives the reason.
const (
	// ReasonNoPolicy means no RebootPolicy selects the node.
	ReasonNoPolicy Reason = "NoPolicy"
	// ReasonPolicyConflict means several policies of the same priority select the node, or control-plane
	// nodes fall under several policies.
	ReasonPolicyConflict Reason = "PolicyConflict"
	// ReasonNodePaused means annotation reboot-operator.io/paused of the node is neither "" nor "false".
	ReasonNodePaused Reason = "NodePaused"
	// ReasonInvalid means the spec has a value that the API server should have refused, and the policy
	// grants nothing. It is also a reason of condition Accepted.
	ReasonInvalid Reason = "Invalid"
	// ReasonSharedPolicyNotFound means the policy of concurrency.shared does not exist, or is being deleted.
	ReasonSharedPolicyNotFound Reason = "SharedPolicyNotFound"
	// ReasonPaused means the policy is paused.
	ReasonPaused Reason = "Paused"
	// ReasonHalted means the policy halted after failures.
	ReasonHalted Reason = "Halted"
	// ReasonBlackout means a blackout is in force.
	ReasonBlackout Reason = "Blackout"
	// ReasonWindowClosed means no window is open.
	ReasonWindowClosed Reason = "WindowClosed"
	// ReasonWindowTooShort means the window closes before a reboot would be over.
	ReasonWindowTooShort Reason = "WindowTooShort"
	// ReasonNodeUnavailable means the node is not Ready, is being deleted, or does not report the same
	// boot ID as its agent, so that a reboot could not be proved.
	ReasonNodeUnavailable Reason = "NodeUnavailable"
	// ReasonUpdateNotApplied means two reboots for the same need left the node as it was. Its update rolls
	// back, or the request for a reboot survives it.
	ReasonUpdateNotApplied Reason = "UpdateNotApplied"
	// ReasonJustBooted means the host has been up for less than two minutes, so its system may not be
	// marked as good yet.
	ReasonJustBooted Reason = "JustBooted"
	// ReasonInhibited means a logind block inhibitor keeps the host up.
	ReasonInhibited Reason = "Inhibited"
	// ReasonCoordinatorConflict means locksmithd, or another update coordinator, may reboot the host on its own.
	ReasonCoordinatorConflict Reason = "CoordinatorConflict"
	// ReasonRecordUnreadable means an annotation of the record cannot be parsed or is not plausible, and
	// permits nothing. An attempt in progress ends with this reason, too.
	ReasonRecordUnreadable Reason = "RecordUnreadable"
	// ReasonBackingOff means an earlier attempt failed and the next one is not due.
	ReasonBackingOff Reason = "BackingOff"
	// ReasonRingWaits means nodes of an earlier ring of spec.rings are not done.
	ReasonRingWaits Reason = "RingWaits"
	// ReasonUndrainablePod means a pod on the node can never be drained.
	ReasonUndrainablePod Reason = "UndrainablePod"
	// ReasonBlockingPod means a pod of gates.blockingPods runs on the node.
	ReasonBlockingPod Reason = "BlockingPod"
	// ReasonAlertFiring means a query of gates.prometheus has a result.
	ReasonAlertFiring Reason = "AlertFiring"
	// ReasonObjectNotReady means an expression of gates.objects is false for an object.
	ReasonObjectNotReady Reason = "ObjectNotReady"
	// ReasonGateUnreachable means the query of a gate failed, or has not run yet.
	ReasonGateUnreachable Reason = "GateUnreachable"
	// ReasonControlPlaneGuard means another control-plane node is down or granted.
	ReasonControlPlaneGuard Reason = "ControlPlaneGuard"
	// ReasonDomainBusy means nodes of another topology domain are rebooting, or go first.
	ReasonDomainBusy Reason = "DomainBusy"
	// ReasonBudgetExhausted means maxUnavailable nodes are unavailable already.
	ReasonBudgetExhausted Reason = "BudgetExhausted"
	// ReasonSpacing means a rebooted node has been back in service for less than concurrency.spacing.
	ReasonSpacing Reason = "Spacing"
	// ReasonRunHookWaits means hooks.runBefore of the run, or hooks.runAfter of the last one, have not approved.
	ReasonRunHookWaits Reason = "RunHookWaits"
	// ReasonDryRun means all other checks pass, but the policy has mode DryRun.
	ReasonDryRun Reason = "DryRun"
)

// Reasons of RebootPermitted if all checks pass.
const (
	// ReasonWaitingForHook means a hook has not approved yet.
	ReasonWaitingForHook Reason = "WaitingForHook"
	// ReasonGranted is the reason of RebootPermitted=True.
	ReasonGranted Reason = "Granted"
)

// Reasons of Node condition RebootRequired: why a node needs a reboot, or not.
const (
	// ReasonUpdateStaged means an update engine has installed an update that the next boot uses.
	ReasonUpdateStaged Reason = "UpdateStaged"
	// ReasonSentinelPresent means a file exists that requests a reboot, such as /run/reboot-required.
	ReasonSentinelPresent Reason = "SentinelPresent"
	// ReasonRequested means a reboot was requested, by annotation or label reboot-operator.io/reboot-requested.
	ReasonRequested Reason = "Requested"
	// ReasonFleetLockRequested means the FleetLock client of a host requests a reboot.
	ReasonFleetLockRequested Reason = "FleetLockRequested"
	// ReasonMaxUptime means the node has been up for longer than maxUptime allows.
	ReasonMaxUptime Reason = "MaxUptime"
	// ReasonNodeCondition means a Node condition of nodeConditions has lasted.
	ReasonNodeCondition Reason = "NodeCondition"
	// ReasonConditionIgnored means nothing requires a reboot, but a Node condition of nodeConditions lasts
	// and does not count. A reboot did not end it, or its time cannot be compared.
	ReasonConditionIgnored Reason = "ConditionIgnored"
	// ReasonUpToDate means nothing requires a reboot.
	ReasonUpToDate Reason = "UpToDate"
	// ReasonEngineUnreachable means an update engine did not respond, or none was found. Whether the node
	// needs a reboot is unknown, which never counts as a need.
	ReasonEngineUnreachable Reason = "EngineUnreachable"
)

// Reasons why an attempt ended without a reboot, or does not continue, in the progress, conditions, events
// or status.history.
const (
	// ReasonDrainTimedOut means pods remained on the node when drain.timeout had passed.
	ReasonDrainTimedOut Reason = "DrainTimedOut"
	// ReasonCancelled means the grant was cancelled, removed or replaced, or something else rebooted the
	// host. It is not a failure.
	ReasonCancelled Reason = "Cancelled"
	// ReasonUncordoned means the node was uncordoned while it was being drained.
	ReasonUncordoned Reason = "Uncordoned"
	// ReasonRebootRefused means logind has not confirmed the reboot, and the agent tries again.
	ReasonRebootRefused Reason = "RebootRefused"
	// ReasonRebootTimedOut means the node was not Ready on a new boot ID within reboot.timeout.
	ReasonRebootTimedOut Reason = "RebootTimedOut"
	// ReasonAgentSilent means the agent did not act on its grant in time, so the grant was cancelled. It
	// also means that the node is Ready on a new boot ID, but its agent has not reported within
	// reboot.timeout.
	ReasonAgentSilent Reason = "AgentSilent"
	// ReasonStartupTaint means the node is Ready on a new boot ID, but a taint that came with the reboot
	// has kept pods off it for reboot.timeout.
	ReasonStartupTaint Reason = "StartupTaint"
	// ReasonPeopleLoggedIn means the drained node waits for people who are logged in on its host.
	ReasonPeopleLoggedIn Reason = "PeopleLoggedIn"
	// ReasonGrantWithdrawn means the ledger of the policy does not have the grant that the Node shows, or
	// has it as withdrawn.
	ReasonGrantWithdrawn Reason = "GrantWithdrawn"
	// ReasonHookTimedOut means a hook did not approve within hooks.timeout.
	ReasonHookTimedOut Reason = "HookTimedOut"
	// ReasonHookFailed means a hook refused.
	ReasonHookFailed Reason = "HookFailed"
	// ReasonNodeGone means the Node was deleted.
	ReasonNodeGone Reason = "NodeGone"
	// ReasonNodeGoneInReboot means the Node was deleted after the point of no return, so the reboot counts
	// as failed.
	ReasonNodeGoneInReboot Reason = "NodeGoneInReboot"
)

// Why the FleetLock server answers no by itself. Every other no has the reason of RebootPermitted or RebootRequired.
const (
	// ReasonInvalidRequest means a request does not follow the FleetLock protocol.
	ReasonInvalidRequest Reason = "InvalidRequest"
	// ReasonUnknownClient means no Node has the ID of a FleetLock client.
	ReasonUnknownClient Reason = "UnknownClient"
	// ReasonAmbiguousClient means several Nodes have the ID of a FleetLock client: their machine IDs were cloned.
	ReasonAmbiguousClient Reason = "AmbiguousClient"
	// ReasonForeignAddress means a request does not come from an address of its Node, and --fleetlock-check-source is set.
	ReasonForeignAddress Reason = "ForeignAddress"
	// ReasonTooManyRequests means the FleetLock server holds as many requests as it may.
	ReasonTooManyRequests Reason = "TooManyRequests"
	// ReasonNotConfirmed means the API server did not confirm a yes of the FleetLock server.
	ReasonNotConfirmed Reason = "NotConfirmed"
)

// Reasons of the conditions of a RebootPolicy.
const (
	// ReasonAccepted means the manager acts on the whole spec.
	ReasonAccepted Reason = "Accepted"
	// ReasonAlwaysOpen means the policy has no windows.
	ReasonAlwaysOpen Reason = "AlwaysOpen"
	// ReasonUrgent means reboots may start under spec.urgent.all.
	ReasonUrgent Reason = "Urgent"
	// ReasonWindowOpen means a window is open.
	ReasonWindowOpen Reason = "WindowOpen"
	// ReasonRebooting means nodes hold grants.
	ReasonRebooting Reason = "Rebooting"
	// ReasonNodeWriteRefused means the API server refuses or undoes what the manager writes about the
	// reboot of a node that holds a slot. As an event of the Node, it means so for the agent's writes.
	ReasonNodeWriteRefused Reason = "NodeWriteRefused"
	// ReasonLimitHeld means no node holds a grant, but nodes that are down for other reasons have used
	// up maxUnavailable for an hour.
	ReasonLimitHeld Reason = "LimitHeld"
	// ReasonIdle means no node holds a grant.
	ReasonIdle Reason = "Idle"
	// ReasonTooManyFailures means as many nodes as maxFailures have failed since the last success.
	ReasonTooManyFailures Reason = "TooManyFailures"
	// ReasonResumed means an administrator resumed the policy.
	ReasonResumed Reason = "Resumed"
	// ReasonHealthy means fewer nodes than maxFailures have failed since the last success.
	ReasonHealthy Reason = "Healthy"
	// ReasonAgentsReady means every node in service has a working agent.
	ReasonAgentsReady Reason = "AgentsReady"
	// ReasonAgentsMissing means nodes have no agent that works, so it is unknown whether they need a reboot.
	ReasonAgentsMissing Reason = "AgentsMissing"
	// ReasonAgentsUnknown means the pods of the agents cannot be read.
	ReasonAgentsUnknown Reason = "AgentsUnknown"
	// ReasonDeadlineNear means nodes have needed a reboot for three quarters of spec.deadline, and none is past it.
	ReasonDeadlineNear Reason = "DeadlineNear"
	// ReasonDeadlinePassed means nodes have needed a reboot for longer than spec.deadline.
	ReasonDeadlinePassed Reason = "DeadlinePassed"
	// ReasonInTime means no node has needed a reboot for three quarters of spec.deadline.
	ReasonInTime Reason = "InTime"
)

// Reasons of events on Nodes and RebootPolicies, for events that do not have a Reason. Some are also
// reasons of the Node conditions of KEP-5683. An event always follows the write that justifies it.
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
	// EventUnexpectedReboot on a Node means that its host was rebooted, and nobody granted that.
	EventUnexpectedReboot = "UnexpectedReboot"
	// EventNotificationFailed on a policy means that a service of spec.notify could not be notified.
	EventNotificationFailed = "NotificationFailed"
	// EventAgentsNotDeployed on a policy means that the manager runs with --manage-agents but cannot write
	// the DaemonSet of the agents.
	EventAgentsNotDeployed = "AgentsNotDeployed"
	// EventPolicyWriteRefused is on policies: the API server refuses or undoes what the manager writes to the policy's status.
	EventPolicyWriteRefused = "PolicyWriteRefused"
)
