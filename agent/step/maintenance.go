package step

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Messages of the conditions.
const (
	leaving      = "Pods are leaving the node."
	podsHaveLeft = "The pods that must leave the node before a reboot have left."
	down         = "The host is being rebooted."
)

// shortDrain is the duration up to which a drain is not reported until it ends.
const shortDrain = 2 * time.Second

// drainEvery is the shortest time between two changes of the drain's message. It limits the writes
// if one pod after the other blocks the drain.
const drainEvery = 10 * time.Second

// maintenance returns the conditions of KEP-5683, which show other controllers the progress of an
// attempt. Conditions that it does not return stay as they are. If the progress is unreadable, all
// of them stay.
func maintenance(o Observation) []corev1.NodeCondition {
	switch {
	case o.Record.ProgressErr != nil:
		return nil
	case o.InPhase(protocol.PhaseRebooting):
		return append(emptied(o), condition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, string(v1alpha1.ReasonRebooting), goesDown(o)))
	case o.InPhase(protocol.PhaseDraining):
		return drainProgress(o)
	case o.rebooted():
		return fallen(o, v1alpha1.EventRebootSucceeded, "The node has been rebooted.")
	}
	return fallen(o, v1alpha1.EventDrainAborted, strings.TrimSpace("The attempt ended without a reboot. "+o.Record.Last().Message))
}

// HoldsUpgrades reports whether upgrades of the host must wait. They must while an attempt is or
// may be under way, or the node is paused. An active grant counts in any boot, because the node is
// watched until the grant is finished.
func HoldsUpgrades(o Observation) bool {
	granted := o.Record.Grant != nil && o.Record.Grant.State == protocol.GrantActive
	return o.Record.GrantErr != nil || o.Record.ProgressErr != nil || granted || o.UnderWay() || o.Paused
}

// drainProgress reports the lead time, a drain that takes long or fails, or a finished drain that
// waits to reboot.
func drainProgress(o Observation) []corev1.NodeCondition {
	if o.leads() && o.Drain.State == DrainNone {
		return []corev1.NodeCondition{condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, v1alpha1.EventDraining, leading(o.evictsFrom()))}
	}
	if o.Now.Before(reportedFrom(o)) {
		return nil
	}
	switch {
	case o.Drain.State == DrainRunning && o.Drain.Failures > 0 && !o.Drain.Listed && o.Drain.Unread == "":
		return nil // It may fail in the same way, so the reported failure stays.
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

// unreadPolicy says that no drain runs because its policy cannot be read. It is empty if the policy
// was read, or the drain is done.
func unreadPolicy(o Observation) string {
	if o.policy() != nil || o.Record.Grant == nil || o.Drain.State == DrainDone {
		return ""
	}
	return fmt.Sprintf("The node is not drained while policy %s cannot be read.", o.Record.Grant.Policy)
}

// drainGoesOn reports whether a drain runs, or has failed and waits to be tried again under a known
// policy.
func drainGoesOn(o Observation) bool {
	return o.Drain.State == DrainRunning || o.Drain.State == DrainFailed && o.policy() != nil && o.Now.Before(o.Drain.triedAgain())
}

// drainReported returns the message of a drain that goes on, and the earliest time at which it may
// change, or zero if it may change at any time. After a failed drain the remaining pods are
// unknown, so the node is not rebooted with them.
func drainReported(o Observation) (message string, then time.Time) {
	follows := o.Settings().Drain.OnTimeoutOrDefault()
	if o.Drain.State == DrainFailed {
		follows = v1alpha1.DrainTimeoutAbort
	}
	message = drains(waitsFor(o.Drain), o.deadline(), follows)
	if o.holds(corev1.NodeDrainInProgress) {
		message, then = spaced(o, o.Condition(corev1.NodeDrainInProgress), drainEvery, message)
	}
	if then.IsZero() && o.Drain.Total > 0 {
		then = o.Now.Add(drainEvery) // a pod that leaves wakes nobody
	}
	return message, then
}

// spaced returns the message of a condition on the Node, and the earliest time at which it may
// change. It returns the new message if the last write is not recent, or is in the future because
// the host's clock was set back.
func spaced(o Observation, shown corev1.NodeCondition, every time.Duration, message string) (text string, then time.Time) {
	t := shown.LastHeartbeatTime.Time
	then = t.Add(every)
	if shown.Message == message || t.After(o.Now) || !o.Now.Before(then) {
		return message, time.Time{}
	}
	return shown.Message, then
}

// emptied returns the conditions of a drain that is over. The message names the pods left after a
// time-out, the volumes that the agent waits for, or what holds the host up and until when the
// agent waits for it.
func emptied(o Observation) []corev1.NodeCondition {
	reason, message := v1alpha1.EventDrained, podsHaveLeft
	_, waits := detached(o)
	why, _ := heldUp(o)
	switch p := o.Record.Last(); {
	case p.Reason == v1alpha1.ReasonDrainTimedOut:
		reason, message = string(v1alpha1.ReasonDrainTimedOut), p.Message
	case waits && o.InPhase(protocol.PhaseDraining):
		reason = v1alpha1.EventVolumesInUse
		message, _ = volumesReported(o)
	case why.Reason == v1alpha1.ReasonPeopleLoggedIn && o.InPhase(protocol.PhaseDraining):
		reason = string(why.Reason)
		message = fmt.Sprintf("%s The reboot waits until %s at most. %s", podsHaveLeft, timing.Instant(o.sessionsUntil()), why.Message)
	case why.Message != "" && o.InPhase(protocol.PhaseDraining):
		message = fmt.Sprintf("%s The reboot waits until %s at most; then the node is uncordoned and backs off. %s", podsHaveLeft, timing.Instant(o.deadline()), why.Message)
	case o.Drain.Refused != "" && o.InPhase(protocol.PhaseDraining):
		message = drains(podsHaveLeft+" "+o.Drain.Refused, o.deadline(), o.Settings().Drain.OnTimeoutOrDefault())
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeDrainInProgress, corev1.ConditionFalse, reason, message),
		condition(corev1.NodeDrained, corev1.ConditionTrue, reason, message),
	}
}

// reportedFrom returns the time from which the drain of the current attempt is reported.
func reportedFrom(o Observation) time.Time { return o.evictsFrom().Add(shortDrain) }

// fallen sets the agent's conditions that are still True to False. Absent conditions and those of
// other programs stay as they are.
func fallen(o Observation, reason, message string) []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress,
	} {
		if o.holds(kind) {
			conditions = append(conditions, condition(kind, corev1.ConditionFalse, reason, message))
		}
	}
	return conditions
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

// leading returns the message about the lead time.
func leading(until time.Time) string {
	return fmt.Sprintf("The node is cordoned. Its pods are evicted from %s on (drain.leadTime).", timing.Instant(until))
}

// waitsFor says what a running drain waits for, why it cannot list the pods, or why it is tried
// again.
func waitsFor(drain Drain) string {
	switch {
	case drain.State == DrainFailed:
		return engine.Shorten("The drain failed and is tried again. " + drain.Message)
	case drain.Unread != "":
		return drain.Unread
	case drain.Waits != "":
		return "The drain waits for " + drain.Waits + "." + gone(drain)
	}
	return leaving + gone(drain)
}

// gone says how many pods have left. It is empty until the pods were listed.
func gone(drain Drain) string {
	if drain.Total == 0 {
		return ""
	}
	return fmt.Sprintf(" %d of %d pods have left.", drain.Gone, drain.Total)
}

// drains says what a drain waits for, until when, and what happens then.
func drains(subject string, deadline time.Time, then v1alpha1.DrainTimeoutAction) string {
	follows := "the node is uncordoned and backs off"
	if then == v1alpha1.DrainTimeoutReboot {
		follows = "the node is rebooted with the pods that are left"
	}
	return fmt.Sprintf("%s The drain may take until %s; then %s.", subject, timing.Instant(deadline), follows)
}
