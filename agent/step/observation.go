package step

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Observation is everything that the agent knows at one instant. Decisions depend on nothing else.
type Observation struct {
	Now  time.Time
	Node string
	// BootID is the boot ID of the host. It is read from the host, never from the Node.
	BootID string
	// Record is the record on the Node.
	Record protocol.Record
	// Unschedulable reports whether the node is cordoned.
	Unschedulable bool
	// Paused reports whether an administrator has paused the node.
	Paused bool
	// Requested reports whether an annotation requests a reboot, and RequestedWhy is its reason.
	Requested    bool
	RequestedWhy string
	// Labelled reports whether a label requests a reboot, and LabelValue is its value.
	Labelled   bool
	LabelValue string
	// FleetLock is the last request of the host's FleetLock client. It is nil if there is none, or if
	// it cannot be read.
	FleetLock *protocol.FleetLockRequest
	// MaxUptime is the longest permitted uptime of the node, or 0 if it is unlimited.
	MaxUptime time.Duration
	// NodeConditions are the conditions that ask for a reboot once they last, under the policy that
	// governs the node. It is nil if the policy has no such conditions, or if they cannot be read.
	NodeConditions []v1alpha1.NodeConditionNeed
	// Uptime is the uptime of the host by its kernel's monotonic clock, or 0 if it is unknown.
	Uptime time.Duration
	// BootedAt is the boot time that the Node shows, or zero if it is absent or unreadable.
	BootedAt time.Time
	// Conditions are the conditions of the Node.
	Conditions []corev1.NodeCondition
	// Engines holds the reports of the update engines. It is nil until all of them have reported.
	Engines []engine.Report
	// OS describes the host for selectors. It is nil if os-release cannot be read.
	OS *OS
	// Policy holds the settings of the granting policy, read live. It is nil if it is not needed
	// now, or the policy is gone or unreadable.
	Policy *Settings
	// LastPolicy holds the settings that this process last read under this grant, at LastPolicyAt,
	// or nil. While a drain runs, these are the settings that it began with.
	LastPolicy   *Settings
	LastPolicyAt time.Time
	// Entry is the node's entry in the ledger that the grant names, read live with the policy. It
	// is nil if the ledger has no entry or was not read.
	Entry *v1alpha1.LedgerEntry
	// Asked is the manager's request about the node's pods, or nil if it is absent or unreadable.
	Asked *protocol.Preflight
	// Reported is the agent's report on the Node, or zero if it is absent or unreadable.
	Reported protocol.AgentReport
	// Before holds the reports of the engines on the Node, which may be from an earlier boot. It is
	// nil if they are absent or unreadable.
	Before *protocol.Engines
	// VersionBefore is label os-version of the Node, which may be from an earlier boot.
	VersionBefore string
	// Look is the result of the last check for the request in Asked.
	Look Look
	// StartLook is the agent's own check of the pods before it begins. LastStartLook is the
	// previous one for the same grant. Either is zero if it has not happened.
	StartLook, LastStartLook Look
	// Confirmed reports whether the engines that require a reboot have confirmed it. They are
	// queried after all other checks before the start. UnansweredSince is the time since which one
	// of them has not answered. Both are zero if the engines were not queried.
	Confirmed       bool
	UnansweredSince time.Time
	// SeenAt is the time when this process first saw the current progress, by a monotonic clock.
	// Began reports whether this process wrote that progress itself, and so began the drain or is
	// about to make the recorded call.
	SeenAt time.Time
	Began  bool
	// Drain is the state of the drain of the current attempt.
	Drain Drain
	// Sought are the facts that were looked up, with or without success.
	Sought []Fact
	// VolumesInUse are the attached volumes that the kubelet still uses (status.volumesInUse).
	VolumesInUse []corev1.UniqueVolumeName
	// Kept are the volumes in VolumesInUse that belong to pods that stay.
	Kept Kept
	// Inhibitors holds what keeps the host from shutting down.
	Inhibitors Inhibitors
	// Coordinators holds the other programs that may reboot the host.
	Coordinators Coordinators
	// Shutdown tells whether logind is taking the host down.
	Shutdown Shutdown
	// Call is the outcome of the calls of logind in the current attempt.
	Call Call
}

// OS describes the host by valid label values. An empty value is unknown.
type OS struct{ ID, Version, Group string }

// Settings are the parts of a RebootPolicy that an agent needs.
type Settings struct {
	// Drain describes how pods leave.
	Drain v1alpha1.Drain
	// Reboot describes how the host is rebooted.
	Reboot v1alpha1.Reboot
	// BlockingPods select the pods that must not be disrupted. Nil selects none.
	BlockingPods []v1alpha1.BlockingPod
}

// DrainState is the state of a drain.
type DrainState string

const (
	// DrainNone means that this process has not started a drain of the current attempt.
	DrainNone DrainState = ""
	// DrainRunning means that pods are leaving.
	DrainRunning DrainState = "Running"
	// DrainDone means that all pods that must leave have left.
	DrainDone DrainState = "Done"
	// DrainUndrainable means that a pod can never be drained under the policy. Nothing was evicted.
	DrainUndrainable DrainState = "Undrainable"
	// DrainFailed means that the drain ended with an error. It is tried again.
	DrainFailed DrainState = "Failed"
	// DrainStopped means that the drain was stopped for a write that should end the attempt but has
	// not succeeded. The other fields describe the moment of the stop.
	DrainStopped DrainState = "Stopped"
)

// Drain is the state of the drain of the current attempt.
type Drain struct {
	// State is DrainNone, Running, Done, Undrainable, Failed or Stopped.
	State DrainState
	// Message names the pods that prevent the drain, or the error. It is empty if neither is known.
	Message string
	// Waits names the pods that hold up the drain, and what holds up each. The text stays the same
	// as long as the pods do. It is empty if no such pods are known.
	Waits string
	// Unread says why the running drain could not list the pods yet. It is empty otherwise.
	Unread string
	// Listed reports whether the running or stopped drain has listed the pods. Before that no pod
	// was evicted, and Remaining means nothing.
	Listed bool
	// Failures counts the errors in a row, the last one at FailedAt.
	Failures int
	FailedAt time.Time
	// Evicted reports whether a pod has left while this process drained.
	Evicted bool
	// Deleted is the number of pods that rules with action Delete removed while this process
	// drained. Remaining is the number of other pods that still have to leave.
	Deleted, Remaining int
	// Gone is the number of pods that have left since this drain began, and Total the number that had to
	// leave so far. Both are zero until the pods were listed.
	Gone, Total int
	// Budgeted reports whether all pods that hold up the drain are terminating, or protected by
	// PodDisruptionBudgets.
	Budgeted bool
	// DoneAt is the time when the drain was done, and Volumes are the volumes of the pods that
	// stay. Staying names the pods that came back after they were evicted, or is empty.
	DoneAt  time.Time
	Volumes []volume.Use
	Staying string
	// LeftAt is the time when the pods on the drained node were last evicted again. Refused names
	// the pods that may not be evicted and says why. It is empty if all of them may.
	LeftAt  time.Time
	Refused string
}

// knows reports whether it is known which pods an unfinished drain has evicted.
func (d Drain) knows() bool {
	return d.Listed && (d.State == DrainRunning || d.State == DrainStopped)
}

// Inhibitors describes what keeps the host from shutting down.
type Inhibitors struct {
	// Known is false until logind was queried.
	Known bool
	// Message names the block inhibitors, or says that logind could not be queried, which also
	// holds the host up. It is empty without inhibitors.
	Message string
	// Refusal says why logind would refuse a reboot even if inhibitors are ignored, or is empty.
	Refusal string
	// Sessions names the people who are logged in, or says that they are unknown. It is empty if there
	// are none, or if the reboot does not wait for them.
	Sessions string
}

// Coordinators describes the other programs that may reboot the host on their own.
type Coordinators struct {
	// Known is false until they were looked for.
	Known bool
	// Found reports whether there is one. It is false if that is unknown.
	Found bool
	// Message names one of them, or says that they could not be looked for, which also holds the
	// host up. It is empty without any.
	Message string
}

// Shutdown tells whether logind is taking the host down.
type Shutdown struct {
	// Known is false if logind was not queried or did not answer.
	Known bool
	// UnderWay reports whether a shutdown has begun.
	UnderWay bool
}

// Call is the outcome of the last recorded call of logind, as far as this process knows.
type Call struct {
	// AcceptedAt is the time when logind accepted the call, or zero if it has not.
	AcceptedAt time.Time
	// Refusals counts the refusals in a row. RefusedAt and Message belong to the last one.
	Refusals  int
	RefusedAt time.Time
	Message   string
	// Unanswered reports whether the last refusal was a call without an answer, which logind may
	// have obeyed.
	Unanswered bool
}

// isTrue reports whether a Node condition is True.
func (o Observation) isTrue(kind corev1.NodeConditionType) bool {
	return o.Condition(kind).Status == corev1.ConditionTrue
}

// holds reports whether a condition of KEP-5683 is True and was set by the agent.
func (o Observation) holds(kind corev1.NodeConditionType) bool {
	return v1alpha1.IsAgents(o.Condition(kind))
}

// Condition returns a Node condition, or the zero condition if it is absent.
func (o Observation) Condition(kind corev1.NodeConditionType) corev1.NodeCondition {
	return v1alpha1.NodeCondition(o.Conditions, kind)
}

// InPhase reports whether an attempt in this boot is in the given phase. A reboot that the manager
// has ended is over, even on a machine that was restored to the boot before it.
func (o Observation) InPhase(phase protocol.Phase) bool {
	p := o.Record.Progress
	over := phase == protocol.PhaseRebooting && (o.Record.Ended() || o.Record.Last().Rebooted)
	return p != nil && p.Phase == phase && p.BootID == o.BootID && !over
}

// UnderWay reports whether an attempt in this boot has neither failed nor succeeded yet.
func (o Observation) UnderWay() bool {
	return o.InPhase(protocol.PhaseDraining) || o.InPhase(protocol.PhaseRebooting)
}

// followsWrite reports whether the attempt has been written but its drain has not begun.
func (o Observation) followsWrite() bool {
	return o.InPhase(protocol.PhaseDraining) && o.Drain.State == DrainNone
}

// rebooted reports whether the agent's last action was to reboot the host.
func (o Observation) rebooted() bool {
	p := o.Record.Progress
	return p != nil && p.Phase == protocol.PhaseRebooting && p.HasBooted(o.BootID)
}

// policy returns the settings of the granting policy, or nil if they are unknown. Only an attempt
// that is under way may use settings that were read earlier.
func (o Observation) policy() *Settings {
	if o.Policy == nil && o.UnderWay() {
		return o.LastPolicy
	}
	return o.Policy
}

// Settings returns the settings of the policy, or the defaults if they are unknown.
func (o Observation) Settings() Settings {
	if policy := o.policy(); policy != nil {
		return *policy
	}
	return Settings{}
}

// deadline returns the time-out of the current attempt's drain. drain.leadTime does not count.
func (o Observation) deadline() time.Time {
	return o.evictsFrom().Add(o.Settings().Drain.TimeoutOrDefault())
}

// evictsFrom returns the end of the lead time of the current attempt, when the first pod may be
// evicted. It is computed from a recorded time, so that a restarted agent neither repeats the lead
// time nor skips the rest of it.
func (o Observation) evictsFrom() time.Time {
	return o.begun().Add(o.Settings().Drain.LeadTimeOrDefault())
}

// leads reports whether the lead time of the current attempt is known not to be over.
func (o Observation) leads() bool {
	return o.InPhase(protocol.PhaseDraining) && o.Settings().Drain.LeadTimeOrDefault() > 0 && o.Now.Before(o.evictsFrom())
}

// begun returns the time when the drain of the current attempt began. The recorded time depends on
// the host's clock, which may have been set since. So it counts only for a drain that another
// process began. It does not count if it is in the future, or if the policy cannot be read, which
// may allow more time than the default.
func (o Observation) begun() time.Time {
	record, unread := o.Record.Last().At.Time, o.policy() == nil && slices.Contains(o.Sought, FactPolicy)
	if !o.SeenAt.IsZero() && (o.Began || unread || record.After(o.Now)) {
		return o.SeenAt
	}
	return record
}

// asked reports whether an annotation or a label requests a reboot.
func (o Observation) asked() bool { return o.Requested || o.Labelled }

// upTooLong reports whether the node is known to have reached its longest permitted uptime.
func (o Observation) upTooLong() bool { return o.MaxUptime > 0 && o.Uptime >= o.MaxUptime }

// bootTolerance is the largest error of a reported boot time before it is reported again. The clock
// of a host is adjusted now and then.
const bootTolerance = time.Minute

// bootedAt returns the boot time of the host to report, or nil if its uptime is unknown.
func (o Observation) bootedAt() *string {
	if o.Uptime <= 0 {
		return nil
	}
	return new(o.booted().UTC().Format(time.RFC3339))
}

// booted returns the boot time of a host whose uptime is known. A reported time stays if it is
// about right.
func (o Observation) booted() time.Time {
	t := o.Now.Add(-o.Uptime)
	if o.BootedAt.Sub(t).Abs() < bootTolerance {
		return o.BootedAt
	}
	return t
}

// dueAt returns the time when the node reaches its longest permitted uptime. It is zero if the node
// has reached it, has no limit, or its uptime is unknown.
func (o Observation) dueAt() time.Time {
	if o.Uptime <= 0 || o.MaxUptime == 0 || o.upTooLong() {
		return time.Time{}
	}
	return o.Now.Add(o.MaxUptime - o.Uptime)
}
