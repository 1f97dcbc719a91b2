package v1alpha1

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Conditions this project keeps on a Node, beside the standard ones of KEP-5683 (corev1.NodeDrainInProgress,
// corev1.NodeDrained, corev1.NodeMaintenanceInProgress, see IsAgents, and corev1.NodeMaintenancePlanned, see IsPlanned).
const (
	// NodeRebootRequired is written by the agent. True: the node needs a reboot, the reason states why and the message
	// names the version. False: it does not. Unknown: an update engine cannot be asked, or none was found.
	NodeRebootRequired corev1.NodeConditionType = "RebootRequired"
	// NodeRebootPermitted is written by the manager, and only on nodes that need a reboot. True: granted. False: the
	// reason is THE reason why not now.
	NodeRebootPermitted corev1.NodeConditionType = "RebootPermitted"
	// NodeRebootFailed is written by the manager, for health controllers. True: the machine did not come back from its reboot
	// in time, and the reason reports it. Absent: it did, or the node is not being rebooted.
	NodeRebootFailed corev1.NodeConditionType = "RebootFailed"
)

// IsPlanned reports whether a condition is the manager's corev1.NodeMaintenancePlanned, which announces a granted reboot to
// others, such as storage. Any maintenance may write this condition: the reason shows that it is the manager's. The agent removes
// it with its first report after the reboot, the manager where there is none.
func IsPlanned(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeMaintenancePlanned && c.Reason == EventRebootGranted
}

// IsAgents reports whether a condition of KEP-5683 is True and the agent's: corev1.NodeDrainInProgress, corev1.NodeDrained or
// corev1.NodeMaintenanceInProgress. Any maintenance may write these, too: the reason shows that it is the agent's.
func IsAgents(c corev1.NodeCondition) bool {
	if c.Status != corev1.ConditionTrue {
		return false
	}
	switch c.Type {
	case corev1.NodeDrainInProgress:
		return c.Reason == EventDraining
	case corev1.NodeDrained:
		return c.Reason == EventDrained || c.Reason == EventVolumesInUse || c.Reason == string(ReasonDrainTimedOut)
	case corev1.NodeMaintenanceInProgress:
		return c.Reason == string(ReasonRebooting)
	}
	return false
}

// NodeCondition returns one of the conditions of a Node, or the zero one if it is absent. A Node may have several of one type, which
// the API server does not refuse. The worst of them counts: that of Ready is False, and that of each other type is True.
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
		}
		return 2 // Unknown, or no status at all.
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
	// AnnotationGrant is the manager's permission, a Grant.
	AnnotationGrant = "reboot-operator.io/grant"
	// AnnotationProgress is what the agent does with the grant, a Progress.
	AnnotationProgress = "reboot-operator.io/progress"
	// AnnotationReport is what the agent finds against a reboot now, an AgentReport.
	AnnotationReport = "reboot-operator.io/report"
	// AnnotationEngines is what the agent's engines have reported, an Engines. It is for the agent's next process.
	AnnotationEngines = "reboot-operator.io/engines"
	// AnnotationBootedAt is when the host booted, as the agent reports it: an instant such as 2026-11-23T06:12:40Z.
	AnnotationBootedAt = "reboot-operator.io/booted-at"
	// AnnotationHooks is the manager's: the phase of hooks that the node is in, a HookPhase.
	AnnotationHooks = "reboot-operator.io/hooks"
	// AnnotationPreflight is the manager's request to report which pods are in the way of the node's reboot, a Preflight.
	AnnotationPreflight = "reboot-operator.io/preflight"
	// AnnotationMaxUptime is the manager's: how long this node may be up before it needs a reboot, a duration such as 683h12m0s.
	AnnotationMaxUptime = "reboot-operator.io/max-uptime"
	// AnnotationPaused is an administrator's: the node is never chosen, and a grant whose drain has not begun is cancelled. Every
	// value but the empty one and "false" pauses; one other than "true" is the reason.
	AnnotationPaused = "reboot-operator.io/paused"
	// AnnotationRebootRequested is an administrator's: it asks for a reboot and gives the reason, by any value but "false", in any case. A reason
	// that begins with UrgentPrefix makes the request urgent. The agent removes it after one confirmed reboot.
	AnnotationRebootRequested = "reboot-operator.io/reboot-requested"
)

// BootedAt is when the host of a node booted, by AnnotationBootedAt. Zero: unknown.
func BootedAt(annotations map[string]string) time.Time {
	at, err := time.Parse(time.RFC3339, annotations[AnnotationBootedAt])
	if err != nil {
		return time.Time{}
	}
	return at
}

// Annotations of autoscalers on a Node. The manager sets each to "true" with a grant, unless it is set already. Grant.Annotations
// lists the ones that it has set. When autoscaler.grace has passed since the end of the grant, the manager removes them, unless
// they were changed meanwhile.
const (
	// AnnotationScaleDownDisabled keeps cluster-autoscaler from deleting the node, which is empty while it is rebooted.
	AnnotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// AnnotationDoNotDisrupt keeps Karpenter from consolidating, expiring or replacing the node.
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"
)

// LabelExcludeFromLoadBalancers on a Node keeps external load balancers off it. The manager sets it to ExcludedByOperator with a
// grant, if the policy has drain.loadBalancers Exclude and nobody has set it already. Grant.Excluded records that. When the
// grant ends, the manager removes it, unless it was changed meanwhile. Load balancers ignore the value: it shows whose label it is.
const (
	LabelExcludeFromLoadBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"
	ExcludedByOperator            = "reboot-operator"
)

// TaintPending is the manager's while a window is open. With effect PreferNoSchedule it is on nodes that wait for their turn: evicted
// pods then do not move to the next node to be rebooted. It evicts no pod, and where there is no other node the scheduler takes this
// one. On nodes that wait for pods of gates.blockingPods, its effect is that of taintEffect.
const TaintPending = "reboot-operator.io/reboot-pending"

// AnnotationResume on a RebootPolicy is an administrator's: it ends a halt and gives the reason. The manager removes it.
const AnnotationResume = "reboot-operator.io/resume"

// Finalizer keeps a RebootPolicy that has grants until they are finished or cancelled.
const Finalizer = "reboot-operator.io/grants"

// LabelRebootRequested is another controller's, or an administrator's: it asks for a reboot as AnnotationRebootRequested does, and
// its value, the reason, has no spaces. The agent removes it after one confirmed reboot: a controller that sets it and waits until it is gone needs no more.
const LabelRebootRequested = AnnotationRebootRequested

// RebootRequested reports whether a reboot of the node is requested, by the annotation or the label, and why. The annotation
// comes first: it reports more.
func RebootRequested(node *corev1.Node) (why string, requested bool) {
	if why, requested = RequestIn(node.Annotations); !requested {
		why, requested = RequestIn(node.Labels)
	}
	return why, requested
}

// RequestIn is RebootRequested for a node's annotations alone, or for its labels alone.
func RequestIn(values map[string]string) (why string, requested bool) {
	why, requested = values[AnnotationRebootRequested] // the label has the same name
	if strings.EqualFold(why, "false") {
		return "", false
	}
	return why, requested
}

// Labels on a Node, for selectors. The agent writes the first four, the manager the hook phases.
const (
	// LabelRebootRequired is "true" while the node needs a reboot.
	LabelRebootRequired = "reboot-operator.io/reboot-required"
	// LabelOSID is ID of os-release.
	LabelOSID = "reboot-operator.io/os-id"
	// LabelOSVersion is VERSION_ID or VERSION of os-release.
	LabelOSVersion = "reboot-operator.io/os-version"
	// LabelOSGroup is the update group (channel) of the host.
	LabelOSGroup = "reboot-operator.io/os-group"
	// LabelBeforeReboot is "true" while before-hooks run.
	LabelBeforeReboot = "reboot-operator.io/before-reboot"
	// LabelAfterReboot is "true" while after-hooks run.
	LabelAfterReboot = "reboot-operator.io/after-reboot"
)

// NodeIsPaused reports whether an administrator has paused the node: by any value of the annotation but the empty one and
// "false". An unexpected value, such as a reason, must not let the node be rebooted.
func NodeIsPaused(annotations map[string]string) bool {
	value := annotations[AnnotationPaused]
	return value != "" && value != "false"
}

// PauseReason is why an administrator has paused the node. Empty: the node is not paused, or the annotation gives no reason.
func PauseReason(annotations map[string]string) string {
	if value := annotations[AnnotationPaused]; NodeIsPaused(annotations) && value != "true" {
		return strings.TrimSpace(value)
	}
	return ""
}

// CoordinatorAdvice is in every sentence by which an agent reports that another program may reboot its host.
const CoordinatorAdvice = "or set spec.reboot.coordinators: Ignore"

// FieldOwnerAgent is the field manager of the agent's writes, so that a cordon can be distinguished from an administrator's.
const FieldOwnerAgent = "reboot-operator-agent"

// FieldOwnerManager is the field manager of the manager's writes.
const FieldOwnerManager = "reboot-operator-manager"

// UrgentPrefix begins the value of AnnotationRebootRequested where the request is urgent. The reason follows it.
const UrgentPrefix = "urgent:"

// UrgentlyRequested reports whether the annotation of the node asks for an urgent reboot, and why. A label cannot: it has no
// place for the prefix.
func UrgentlyRequested(node *corev1.Node) (why string, urgent bool) {
	why, urgent = strings.CutPrefix(node.Annotations[AnnotationRebootRequested], UrgentPrefix)
	return strings.TrimSpace(why), urgent
}
