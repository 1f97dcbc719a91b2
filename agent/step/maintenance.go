package step

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// What the conditions show to people.
const (
	leaving = "Pods are leaving the node."
	left    = "The pods that must leave the node before a reboot have left."
	down    = "The host is being rebooted."
)

// shortDrain is how long a drain may last before it is reported: one that is over by then is reported by its end alone.
const shortDrain = 2 * time.Second

// drainEvery is how often what a drain waits for may change in its condition. Otherwise pods that block it one after the other cost a
// write each.
const drainEvery = 10 * time.Second

// maintenance are the conditions of KEP-5683, by which other controllers see how far an attempt is. One that is not
// among them stays as it is; all do while how far it is is unknown.
func maintenance(o Observation) []corev1.NodeCondition {
	switch {
	case o.Record.ProgressErr != nil:
		return nil
	case o.InPhase(protocol.PhaseRebooting):
		return append(emptied(o), condition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, string(v1alpha1.ReasonRebooting), goesDown(o)))
	case o.InPhase(protocol.PhaseDraining):
		return drainProgress(o)
	case o.rebooted():
		return fallen(o, v1alpha1.EventRebootSucceeded)
	}
	return fallen(o, v1alpha1.EventDrainAborted)
}

// HoldsUpgrades reports whether no upgrade of the host may begin now. None may while an attempt is under way or the node is paused, and
// while that is unknown. An active grant counts in any boot: until it is finished the node is watched.
func HoldsUpgrades(o Observation) bool {
	granted := o.Record.Grant != nil && o.Record.Grant.State == protocol.GrantActive
	return o.Record.GrantErr != nil || o.Record.ProgressErr != nil || granted || o.UnderWay() || o.Paused
}

// drainProgress reports the lead time, a drain that takes its time or fails, and one that is done and waits for leave to reboot.
func drainProgress(o Observation) []corev1.NodeCondition {
	if o.leads() && o.Drain.State == DrainNone {
		return []corev1.NodeCondition{condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, v1alpha1.EventDraining, leading(o.evictsFrom()))}
	}
	if o.Now.Before(reportedFrom(o)) {
		return nil
	}
	switch {
	case o.Drain.State == DrainRunning && o.Drain.Failures > 0 && !o.Drain.Listed && o.Drain.Unread == "":
		return nil // It may fail as before: what is reported of that stays.
	case unreadPolicy(o) != "":
		message := drains(unreadPolicy(o), o.deadline(), v1alpha1.DrainTimeoutAbort)
		return []corev1.NodeCondition{condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, v1alpha1.EventDraining, message)}
	case drainGoesOn(o):
		message, _ := drainReported(o)
		return []corev1.NodeCondition{condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, v1alpha1.EventDraining, message)}
	case o.Drain.State == DrainDone:
		return emptied(o)
	}
	return nil
}

// unreadPolicy states that no drain runs, because the policy cannot be read that specifies how. Empty: it was read, or the drain is done.
func unreadPolicy(o Observation) string {
	if o.policy() != nil || o.Record.Grant == nil || o.Drain.State == DrainDone {
		return ""
	}
	return fmt.Sprintf("The node is not drained while policy %s cannot be read.", o.Record.Grant.Policy)
}

// drainGoesOn reports whether a drain runs, or has failed and waits to be tried again under a policy that is known.
func drainGoesOn(o Observation) bool {
	return o.Drain.State == DrainRunning || o.Drain.State == DrainFailed && o.policy() != nil && o.Now.Before(o.Drain.triedAgain())
}

// drainReported is the message of a drain that goes on, and when it may change; the zero time: at any time. The condition states
// when it was written last. Where a drain fails it is unknown which pods are left, so the node is not rebooted with them.
func drainReported(o Observation) (message string, then time.Time) {
	follows := o.Settings().Drain.OnTimeoutOrDefault()
	if o.Drain.State == DrainFailed {
		follows = v1alpha1.DrainTimeoutAbort
	}
	message = drains(waitsFor(o.Drain), o.deadline(), follows)
	if o.holds(corev1.NodeDrainInProgress) {
		return spaced(o, o.Condition(corev1.NodeDrainInProgress), drainEvery, message)
	}
	return message, time.Time{}
}

// spaced is the message of a condition that is on the Node, and when it may change. It is the new one where the last write is not
// recent. It is too where that is later than now, because the host's clock was set back meanwhile.
func spaced(o Observation, shown corev1.NodeCondition, every time.Duration, message string) (text string, then time.Time) {
	at := shown.LastHeartbeatTime.Time
	then = at.Add(every)
	if shown.Message == message || at.After(o.Now) || !o.Now.Before(then) {
		return message, time.Time{}
	}
	return shown.Message, then
}

// emptied reports that the drain is over. After a time-out it states which pods were left, and while volumes are waited for it names
// them. While the host is held up it names who does that, and until when it is waited for.
func emptied(o Observation) []corev1.NodeCondition {
	reason, message := v1alpha1.EventDrained, left
	_, waits := detached(o)
	why, _ := heldUp(o)
	switch p := o.Record.Last(); {
	case p.Reason == v1alpha1.ReasonDrainTimedOut:
		reason, message = string(v1alpha1.ReasonDrainTimedOut), p.Message
	case waits && o.InPhase(protocol.PhaseDraining):
		reason = v1alpha1.EventVolumesInUse
		message, _ = volumesReported(o)
	case why.Message != "" && o.InPhase(protocol.PhaseDraining):
		message = fmt.Sprintf("%s The reboot waits until %s at most; then the node is uncordoned and backs off. %s", left, timing.Instant(o.deadline()), why.Message)
	case o.Drain.Refused != "" && o.InPhase(protocol.PhaseDraining):
		message = drains(left+" "+o.Drain.Refused, o.deadline(), o.Settings().Drain.OnTimeoutOrDefault())
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeDrainInProgress, corev1.ConditionFalse, reason, message),
		condition(corev1.NodeDrained, corev1.ConditionTrue, reason, message),
	}
}

// reportedFrom is when the drain of the current attempt stops being a short one.
func reportedFrom(o Observation) time.Time { return o.evictsFrom().Add(shortDrain) }

// fallen are the agent's conditions that are still True and have nothing to report any more. Absent ones stay absent, and those of
// other programs as they are.
func fallen(o Observation, reason string) []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress,
	} {
		if o.holds(kind) {
			conditions = append(conditions, condition(kind, corev1.ConditionFalse, reason, ""))
		}
	}
	return conditions
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

// leading states until when the lead time lasts.
func leading(until time.Time) string {
	return fmt.Sprintf("The node is cordoned. Its pods are asked to leave from %s on (drain.leadTime).", timing.Instant(until))
}

// waitsFor states what a drain that runs waits for, why it cannot read the pods, or why it is tried again.
func waitsFor(drain Drain) string {
	switch {
	case drain.State == DrainFailed:
		return engine.Shorten("The drain failed and is tried again. " + drain.Message)
	case drain.Unread != "":
		return drain.Unread
	case drain.Waits != "":
		return "The drain waits for " + drain.Waits + "."
	}
	return leaving
}

// drains states what a drain waits for, until when, and what follows then.
func drains(what string, deadline time.Time, then v1alpha1.DrainTimeoutAction) string {
	follows := "the node is uncordoned and backs off"
	if then == v1alpha1.DrainTimeoutReboot {
		follows = "the node is rebooted with the pods that are left"
	}
	return fmt.Sprintf("%s The drain may take until %s; then %s.", what, timing.Instant(deadline), follows)
}
