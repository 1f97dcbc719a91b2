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

// Observation is everything the agent knows at one instant. Deciding takes nothing else.
type Observation struct {
	// Now is that instant.
	Now time.Time
	// Node is the name of the Node.
	Node string
	// BootID is the host's, read from the host itself and never from the Node.
	BootID string
	// Record is the Node's.
	Record protocol.Record
	// Unschedulable reports whether the node is cordoned.
	Unschedulable bool
	// Paused reports whether an administrator has paused the node.
	Paused bool
	// Requested reports whether an administrator asks for a reboot, and RequestedWhy is the reason given.
	Requested    bool
	RequestedWhy string
	// Labelled reports whether a label asks for a reboot, and LabelValue is its value.
	Labelled   bool
	LabelValue string
	// MaxUptime is how long the node may be up. 0: no limit.
	MaxUptime time.Duration
	// Uptime is how long the host has been up, by its kernel's monotonic clock. 0: unknown.
	Uptime time.Duration
	// BootedAt is when the host booted as it is on the Node. Zero: it is not, or it is unreadable.
	BootedAt time.Time
	// Conditions are the Node's.
	Conditions []corev1.NodeCondition
	// Engines is what each update engine reports. Nil: not all of them have reported yet.
	Engines []engine.Report
	// OS describes the host for selectors. Nil: unreadable.
	OS *OS
	// Policy is what the granting policy specifies, read live. Nil: not needed now, gone or unreadable.
	Policy *Settings
	// LastPolicy is what it specified when this process read it last, at LastPolicyAt; while a drain runs, it is what that drain began
	// with. Nil: it was not read under this grant.
	LastPolicy   *Settings
	LastPolicyAt time.Time
	// Entry is the entry for the node in the ledger that the grant names, read live with the policy. Nil: there is none, or the ledger
	// was not read.
	Entry *v1alpha1.LedgerEntry
	// Asked is what the manager asks about the pods of the node. Nil: nothing, or it is unreadable.
	Asked *protocol.Preflight
	// Reported is the agent's report as it is on the Node. Zero: there is none, or it is unreadable.
	Reported protocol.AgentReport
	// Before is what the engines have reported so far, as it is on the Node, maybe in an earlier boot. Nil: there is none, or it is
	// unreadable.
	Before *protocol.Engines
	// Look is the last look at the pods that Asked asks about.
	Look Look
	// StartLook is the agent's own look before it begins, and LastStartLook the one before that for the same grant. The zero Look:
	// it has not looked.
	StartLook, LastStartLook Look
	// Confirmed reports whether the engines that ask for a reboot have answered once more. They are asked after everything else that
	// the start depends on. UnansweredSince is since when one of them does not answer. False and zero: they were not asked.
	Confirmed       bool
	UnansweredSince time.Time
	// SeenAt is when this process first saw the progress that the Node has, by a monotonic clock. Began reports whether it has written
	// that itself, and so begun the drain, or is about to make the call that is on record.
	SeenAt time.Time
	Began  bool
	// Drain is how far the drain of the current attempt is.
	Drain Drain
	// Sought are the facts that were looked for, whatever came of it.
	Sought []Fact
	// VolumesInUse are the attached volumes the kubelet still uses (status.volumesInUse).
	VolumesInUse []corev1.UniqueVolumeName
	// Kept are those of them that pods which stay account for.
	Kept Kept
	// Inhibitors is who keeps the host from shutting down.
	Inhibitors Inhibitors
	// Coordinators is who else may reboot the host.
	Coordinators Coordinators
	// Shutdown is whether logind takes the host down.
	Shutdown Shutdown
	// Call is what became of asking logind in the current attempt.
	Call Call
}

// OS describes the host by valid label values; an empty one is unknown.
type OS struct{ ID, Version, Group string }

// Settings are the parts of a RebootPolicy an agent acts on.
type Settings struct {
	// Drain states how pods leave.
	Drain v1alpha1.Drain
	// Reboot states how the host is rebooted.
	Reboot v1alpha1.Reboot
	// BlockingPods select the pods that keep the node. Nil: none does.
	BlockingPods []v1alpha1.BlockingPod
}

// DrainState states how far a drain is.
type DrainState string

const (
	// DrainNone means no drain of the current attempt runs or has run in this process.
	DrainNone DrainState = ""
	// DrainRunning means pods are leaving.
	DrainRunning DrainState = "Running"
	// DrainDone means no pod that must go is left.
	DrainDone DrainState = "Done"
	// DrainUndrainable means a pod can never be drained under the policy; nothing was evicted.
	DrainUndrainable DrainState = "Undrainable"
	// DrainFailed means the drain ended with an error, such as a right that is missing. It is tried again.
	DrainFailed DrainState = "Failed"
	// DrainStopped means the drain was stopped before its end, for a write that was to end the attempt and has not succeeded.
	// What is known of it is as it was then.
	DrainStopped DrainState = "Stopped"
)

// Drain is how far the drain of the current attempt is.
type Drain struct {
	// State is DrainNone, Running, Done, Undrainable, Failed or Stopped.
	State DrainState
	// Message states which pods are in the way, or what the error was. Empty: nothing is known to be in the way.
	Message string
	// Waits names the pods that hold up the drain, and what holds each. The text stays while they are the same pods. Empty: none is known
	// to be.
	Waits string
	// Unread states why the drain that runs could not read which pods there are. Empty: it could, or has not tried yet.
	Unread string
	// Listed reports whether the drain that runs, or was stopped, has read which pods there are. Until then no pod was asked to
	// leave, and Remaining reports nothing.
	Listed bool
	// Failures counts the errors in a row.
	Failures int
	// FailedAt is when the last error came.
	FailedAt time.Time
	// Evicted reports whether a pod has left while this process drained.
	Evicted bool
	// Deleted is how many pods rules with action Delete have removed while this process drained. Remaining is how many other pods that
	// must go are left.
	Deleted, Remaining int
	// DoneAt is when the drain was done, and Volumes are those that the pods which stay use. Staying names such of them as
	// came back after they had been asked to leave. Empty: none did.
	DoneAt  time.Time
	Volumes []volume.Use
	Staying string
	// LeftAt is the time at which the pods on the drained node were last asked to leave again.
	// Refused names those that may not go and explains why. It is empty if all of them may.
	LeftAt  time.Time
	Refused string
}

// knows reports whether it is known which pods a drain has asked to leave that has not come to its own end.
func (d Drain) knows() bool {
	return d.Listed && (d.State == DrainRunning || d.State == DrainStopped)
}

// Kept is what is known of the volumes of pods that stay on the node.
type Kept struct {
	// Names are the kubelet's.
	Names []corev1.UniqueVolumeName
	// Unread states which claims could not be looked up, and why. Empty: all of them were.
	Unread string
}

// Inhibitors is who keeps the host from shutting down.
type Inhibitors struct {
	// Known is false while logind was not asked.
	Known bool
	// Message names the block inhibitors, or reports that logind could not be asked: unknown is never a yes. Empty: none.
	Message string
	// Refusal says why logind would refuse to reboot the host even if inhibitors are ignored. Empty if it would not.
	Refusal string
}

// Coordinators is who else may reboot the host without asking.
type Coordinators struct {
	// Known is false until they were looked for.
	Known bool
	// Found reports whether there is one. False: there is none, or that is unknown.
	Found bool
	// Message names one of them, or reports that they could not be looked for: unknown is never a no. Empty: there is none.
	Message string
}

// Shutdown is whether logind takes the host down.
type Shutdown struct {
	// Known is false while logind was not asked, or did not answer.
	Known bool
	// UnderWay reports whether a shutdown has begun.
	UnderWay bool
}

// Call is the outcome of the last recorded call of logind, as far as this process knows.
type Call struct {
	// AcceptedAt is when logind accepted. Zero: it did not, or was not asked.
	AcceptedAt time.Time
	// Refusals counts the refusals in a row, RefusedAt is when the last one came, and Message what it was.
	Refusals  int
	RefusedAt time.Time
	Message   string
	// Unanswered reports whether the last of them was a call without an answer, which logind may
	// have obeyed.
	Unanswered bool
}

// is reports whether a Node condition is True.
func (o Observation) is(kind corev1.NodeConditionType) bool {
	return o.Condition(kind).Status == corev1.ConditionTrue
}

// holds reports whether a condition of KEP-5683 is True and the agent's own.
func (o Observation) holds(kind corev1.NodeConditionType) bool {
	return v1alpha1.IsAgents(o.Condition(kind))
}

// Condition is a Node condition, or the zero one where it is absent.
func (o Observation) Condition(kind corev1.NodeConditionType) corev1.NodeCondition {
	return v1alpha1.NodeCondition(o.Conditions, kind)
}

// InPhase reports whether an attempt of this very boot is in a phase. A reboot that the manager has ended is over, also on a
// machine that was restored to the boot before it.
func (o Observation) InPhase(phase protocol.Phase) bool {
	p := o.Record.Progress
	over := phase == protocol.PhaseRebooting && (o.Record.Ended() || o.Record.Last().Rebooted)
	return p != nil && p.Phase == phase && p.BootID == o.BootID && !over
}

// UnderWay reports whether an attempt of this very boot has neither failed nor succeeded yet.
func (o Observation) UnderWay() bool {
	return o.InPhase(protocol.PhaseDraining) || o.InPhase(protocol.PhaseRebooting)
}

// followsWrite reports whether the drain carries out what the write before it has decided: it has not begun.
func (o Observation) followsWrite() bool {
	return o.InPhase(protocol.PhaseDraining) && o.Drain.State == DrainNone
}

// rebooted reports whether the last thing the agent did was to reboot the host.
func (o Observation) rebooted() bool {
	p := o.Record.Progress
	return p != nil && p.Phase == protocol.PhaseRebooting && p.HasBooted(o.BootID)
}

// policy is what the granting policy specifies, as far as it counts. No attempt begins by an old reading of it. One that is under way
// uses what was read last where it cannot be read, or need not be. Nil: it is unknown.
func (o Observation) policy() *Settings {
	if o.Policy == nil && o.UnderWay() {
		return o.LastPolicy
	}
	return o.Policy
}

// Settings are the policy's, or what a policy that specifies nothing means.
func (o Observation) Settings() Settings {
	if policy := o.policy(); policy != nil {
		return *policy
	}
	return Settings{}
}

// deadline is when the drain of the current attempt has taken too long. drain.leadTime does not count.
func (o Observation) deadline() time.Time {
	return o.evictsFrom().Add(o.Settings().Drain.TimeoutOrDefault())
}

// evictsFrom is when the lead time of the current attempt ends: the first pod may be asked to leave. It counts from a recorded
// instant, so an agent that was restarted meanwhile neither begins it again nor skips what is left of it.
func (o Observation) evictsFrom() time.Time {
	return o.begun().Add(o.Settings().Drain.LeadTimeOrDefault())
}

// leads reports whether the lead time of the current attempt is not over, as far as the policy is known.
func (o Observation) leads() bool {
	return o.InPhase(protocol.PhaseDraining) && o.Settings().Drain.LeadTimeOrDefault() > 0 && o.Now.Before(o.evictsFrom())
}

// begun is when the drain of the current attempt began. The time of the record is that of the host's clock, which may be set meanwhile. It
// counts only for a drain that another process began. It does not where it is still to come, or where the policy cannot be read: that may
// let the drain take longer than the default.
func (o Observation) begun() time.Time {
	record, unread := o.Record.Last().At.Time, o.policy() == nil && slices.Contains(o.Sought, FactPolicy)
	if !o.SeenAt.IsZero() && (o.Began || unread || record.After(o.Now)) {
		return o.SeenAt
	}
	return record
}

// asked reports whether the annotation or the label asks for a reboot.
func (o Observation) asked() bool { return o.Requested || o.Labelled }

// upTooLong reports whether the node has been up for as long as it may be. Unknown is no.
func (o Observation) upTooLong() bool { return o.MaxUptime > 0 && o.Uptime >= o.MaxUptime }

// bootTolerance is by how much a reported boot may be off before it is reported anew. The clock of a host is set now and then.
const bootTolerance = time.Minute

// bootedAt is when the host booted, as it is reported. Nil: the uptime is unknown.
func (o Observation) bootedAt() *string {
	if o.Uptime <= 0 {
		return nil
	}
	return new(o.booted().UTC().Format(time.RFC3339))
}

// booted is when the host booted, where its uptime is known. What is reported stays while it is about right.
func (o Observation) booted() time.Time {
	at := o.Now.Add(-o.Uptime)
	if o.BootedAt.Sub(at).Abs() < bootTolerance {
		return o.BootedAt
	}
	return at
}

// dueAt is when the node has been up for as long as it may be. Zero: it has been, or never, or that is unknown.
func (o Observation) dueAt() time.Time {
	if o.Uptime <= 0 || o.MaxUptime == 0 || o.upTooLong() {
		return time.Time{}
	}
	return o.Now.Add(o.MaxUptime - o.Uptime)
}
