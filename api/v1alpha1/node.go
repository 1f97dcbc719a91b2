package v1alpha1

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Conditions that this project keeps on a Node, besides those of KEP-5683: corev1.NodeDrainInProgress,
// corev1.NodeDrained and corev1.NodeMaintenanceInProgress, see IsAgents, and
// corev1.NodeMaintenancePlanned, see IsPlanned.
const (
	// NodeRebootRequired is written by the agent. It is True if the node needs a reboot, with the reason
	// and the version, and Unknown if an update engine does not respond or was not found.
	NodeRebootRequired corev1.NodeConditionType = "RebootRequired"
	// NodeRebootPermitted is written by the manager on nodes that need a reboot. It is True if the reboot
	// is granted, and otherwise False with the one reason why not now.
	NodeRebootPermitted corev1.NodeConditionType = "RebootPermitted"
	// NodeRebootFailed is written by the manager for health controllers. It is True if the machine did
	// not come back from its reboot in time, and absent otherwise.
	NodeRebootFailed corev1.NodeConditionType = "RebootFailed"
)

// IsPlanned reports whether a condition is the manager's corev1.NodeMaintenancePlanned, which announces a
// granted reboot to others, such as storage. Any maintenance may write this condition, so the reason
// shows whose it is. The agent removes it with its first report after the reboot, or else the manager.
func IsPlanned(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeMaintenancePlanned && c.Reason == EventRebootGranted
}

// IsAgents reports whether a condition of KEP-5683 is True and the agent's: corev1.NodeDrainInProgress,
// corev1.NodeDrained or corev1.NodeMaintenanceInProgress. Any maintenance may write these conditions,
// so the reason shows whose they are.
func IsAgents(c corev1.NodeCondition) bool {
	if c.Status != corev1.ConditionTrue {
		return false
	}
	switch c.Type {
	case corev1.NodeDrainInProgress:
		return c.Reason == EventDraining
	case corev1.NodeDrained:
		return c.Reason == EventDrained || c.Reason == EventVolumesInUse || c.Reason == string(ReasonDrainTimedOut) ||
			c.Reason == string(ReasonPeopleLoggedIn)
	case corev1.NodeMaintenanceInProgress:
		return c.Reason == string(ReasonRebooting)
	}
	return false
}

// NodeCondition returns a condition of a Node by its type, or the zero condition if it is absent. A
// Node may have several of one type, which the API server does not refuse. The worst of them counts:
// for Ready that is False, for each other type it is True.
func NodeCondition(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) corev1.NodeCondition {
	worst, good := corev1.NodeCondition{}, corev1.ConditionFalse
	if kind == corev1.NodeReady {
		good = corev1.ConditionTrue
	}
	badness := func(c corev1.NodeCondition) int {
		switch c.Status {
		case good:
			return 1
		case corev1.ConditionTrue, corev1.ConditionFalse:
			return 3
		default:
			return 2 // Unknown, or no status at all.
		}
	}
	for _, c := range conditions {
		if c.Type == kind && (worst.Type == "" || badness(c) > badness(worst)) {
			worst = c
		}
	}
	return worst
}

// Annotations on a Node. Each has one writer.
const (
	// AnnotationGrant holds the manager's permission, a Grant.
	AnnotationGrant = "reboot-operator.io/grant"
	// AnnotationProgress holds what the agent does with the grant, a Progress.
	AnnotationProgress = "reboot-operator.io/progress"
	// AnnotationReport holds what the agent finds against a reboot now, an AgentReport.
	AnnotationReport = "reboot-operator.io/report"
	// AnnotationEngines holds what the agent's engines have reported, an Engines, for the agent's next process.
	AnnotationEngines = "reboot-operator.io/engines"
	// AnnotationBootedAt holds when the host booted, as the agent reports it, such as 2026-11-23T06:12:40Z.
	AnnotationBootedAt = "reboot-operator.io/booted-at"
	// AnnotationHooks is written by the manager and holds the phase of hooks of the node, a HookPhase.
	AnnotationHooks = "reboot-operator.io/hooks"
	// AnnotationPreflight holds the manager's request to report which pods stand in the way of the
	// node's reboot, a Preflight.
	AnnotationPreflight = "reboot-operator.io/preflight"
	// AnnotationMaxUptime is written by the manager and holds how long this node may be up before it
	// needs a reboot, such as 683h12m0s.
	AnnotationMaxUptime = "reboot-operator.io/max-uptime"
	// AnnotationNodeConditions is written by the manager and holds spec.nodeConditions of the policy that
	// governs the node, which the agent compares with the node's conditions.
	AnnotationNodeConditions = "reboot-operator.io/node-conditions"
	// AnnotationFleetLock is written by the manager and holds the last request of the node's FleetLock
	// client for a reboot, a FleetLockRequest.
	AnnotationFleetLock = "reboot-operator.io/fleetlock"
	// AnnotationPaused is written by an administrator. The node is never chosen, and a grant whose drain
	// has not begun is cancelled. Every value except "" and "false" pauses the node, and every value
	// except "true" is shown as the reason. A value such as "until=2026-12-01T06:00:00Z disk swap" pauses
	// it until that time.
	AnnotationPaused = "reboot-operator.io/paused"
	// AnnotationRebootRequested is written by an administrator. It requests a reboot with any value except
	// "false", in any case, which is shown as the reason. A reason that begins with UrgentPrefix makes the
	// request urgent. The agent removes it after one confirmed reboot.
	AnnotationRebootRequested = "reboot-operator.io/reboot-requested"
	// AnnotationRetry is written by an administrator to end the back-off after a failed attempt. Its value
	// is the number of that attempt, so it does nothing about a later one.
	AnnotationRetry = "reboot-operator.io/retry"
)

// BootedAt returns when the host of a node booted according to AnnotationBootedAt, or the zero time if
// that is unknown.
func BootedAt(annotations map[string]string) time.Time {
	t, err := time.Parse(time.RFC3339, annotations[AnnotationBootedAt])
	if err != nil {
		return time.Time{}
	}
	return t
}

// Annotations of autoscalers on a Node. With a grant the manager sets each to "true", unless it is set
// already, and Grant.Annotations lists those that it has set. When autoscaler.grace has passed since the
// end of the grant, the manager removes them, unless somebody has changed them.
const (
	// AnnotationScaleDownDisabled keeps cluster-autoscaler from deleting the node, which is empty while it is rebooted.
	AnnotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// AnnotationDoNotDisrupt keeps Karpenter from consolidating, expiring or replacing the node.
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"
)

// LabelExcludeFromLoadBalancers on a Node takes it out of external load balancers. If the policy has
// drain.loadBalancers Exclude, the manager sets it to ExcludedByOperator with a grant, unless it is set
// already, and removes it when the grant ends, unless somebody has changed it. Grant.Excluded records
// that. Load balancers ignore the value, which shows whose label it is.
const (
	LabelExcludeFromLoadBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"
	ExcludedByOperator            = "reboot-operator"
)

// LabelExcludeFromRemediation on a Node keeps the health controllers of medik8s from remediating it.
// With a grant the manager sets it to "true", unless it is set already. The manager removes it when the
// grant ends, or once the reboot has failed, unless somebody has changed it. Grant.Unremediated records
// that.
const LabelExcludeFromRemediation = "remediation.medik8s.io/exclude-from-remediation"

// TaintPending is set by the manager while a window is open. Nodes that wait for their turn have it with
// effect PreferNoSchedule, so that evicted pods do not move to the next node that reboots. It evicts no
// pods, and the scheduler still uses the node if no other fits. Nodes that wait for pods of
// gates.blockingPods have it with the taintEffect of the gate.
const TaintPending = "reboot-operator.io/reboot-pending"

// AnnotationResume on a RebootPolicy is written by an administrator to end a halt, with the reason. The
// manager removes it.
const AnnotationResume = "reboot-operator.io/resume"

// Finalizer keeps a RebootPolicy with grants until these are finished or cancelled.
const Finalizer = "reboot-operator.io/grants"

// LabelRebootRequested is written by another controller or an administrator. It requests a reboot as
// AnnotationRebootRequested does, with a reason without spaces. The agent removes it after one confirmed
// reboot, so a controller sets it and waits until it is gone.
const LabelRebootRequested = AnnotationRebootRequested

// RebootRequested reports whether a reboot of the node is requested, by the annotation or the label, and
// why. The annotation comes first, because its value can say more.
func RebootRequested(node *corev1.Node) (why string, requested bool) {
	if why, requested = RequestIn(node.Annotations); !requested {
		why, requested = RequestIn(node.Labels)
	}
	return why, requested
}

// RequestIn does what RebootRequested does, for the annotations or the labels of a node alone.
func RequestIn(values map[string]string) (why string, requested bool) {
	why, requested = values[AnnotationRebootRequested] // the label has the same name
	if strings.EqualFold(why, "false") {
		return "", false
	}
	return why, requested
}

// Labels on a Node, for selectors. The agent writes the first four, and the manager those of hooks.
const (
	// LabelRebootRequired is "true" while the node needs a reboot.
	LabelRebootRequired = "reboot-operator.io/reboot-required"
	// LabelOSID holds ID of os-release.
	LabelOSID = "reboot-operator.io/os-id"
	// LabelOSVersion holds VERSION_ID or VERSION of os-release.
	LabelOSVersion = "reboot-operator.io/os-version"
	// LabelOSGroup holds the update group (channel) of the host.
	LabelOSGroup = "reboot-operator.io/os-group"
	// LabelBeforeReboot is "true" while before-hooks run.
	LabelBeforeReboot = "reboot-operator.io/before-reboot"
	// LabelAfterReboot is "true" while after-hooks run.
	LabelAfterReboot = "reboot-operator.io/after-reboot"
)

// PauseUntil begins the value of AnnotationPaused of a pause that ends by itself. The time follows it, in
// RFC 3339, and then the reason.
const PauseUntil = "until="

// NodeIsPaused reports whether an administrator has paused the node, by any value of the annotation except
// "" and "false". An unexpected value must not let the node be rebooted, so a pause whose end cannot be
// read has none.
func NodeIsPaused(annotations map[string]string, now time.Time) bool {
	value := annotations[AnnotationPaused]
	until, _ := NodePause(annotations)
	return value != "" && value != "false" && (until.IsZero() || now.Before(until))
}

// NodePause returns when the pause of a node ends, or zero if it does not end by itself, and why an
// administrator has paused the node, or an empty string if the annotation gives no reason.
func NodePause(annotations map[string]string) (until time.Time, reason string) {
	value := strings.TrimSpace(annotations[AnnotationPaused])
	if text, ends := strings.CutPrefix(value, PauseUntil); ends {
		text, reason, _ := strings.Cut(text, " ")
		if until, err := time.Parse(time.RFC3339, text); err == nil {
			return until, strings.TrimSpace(reason)
		}
	}
	if value == "true" || value == "false" {
		value = ""
	}
	return time.Time{}, value
}

// CoordinatorAdvice ends every message of an agent which says that another program may reboot its host.
const CoordinatorAdvice = "or set spec.reboot.coordinators: Ignore"

// FieldOwnerAgent is the field manager of the agent's writes. It distinguishes the agent's cordon from an
// administrator's.
const FieldOwnerAgent = "reboot-operator-agent"

// FieldOwnerManager is the field manager of the manager's writes.
const FieldOwnerManager = "reboot-operator-manager"

// UrgentPrefix begins the value of AnnotationRebootRequested of an urgent request. The reason follows it.
const UrgentPrefix = "urgent:"

// UrgentlyRequested reports whether the annotation of the node requests an urgent reboot, and why. A label
// cannot request one, because its value may not contain the prefix.
func UrgentlyRequested(node *corev1.Node) (why string, urgent bool) {
	why, urgent = strings.CutPrefix(node.Annotations[AnnotationRebootRequested], UrgentPrefix)
	return strings.TrimSpace(why), urgent
}
