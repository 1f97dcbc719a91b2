// Package step decides what the agent does next, and what it reports on its Node. Both are
// functions of one Observation, without clock, client or logger.
package step

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	// bootSettles is the uptime below which a host is not drained. update_engine marks the running
	// system as good 45 seconds after it starts. A host that reboots earlier falls back to the
	// system before the update.
	bootSettles = 2 * time.Minute
	// policyRetry is the delay before an unreadable policy is read again.
	policyRetry = 30 * time.Second
	// confirmRetry is the delay before an engine that did not answer is queried again.
	confirmRetry = 30 * time.Second
	// confirmPatience is the longest time for which such an engine is queried again. After that its
	// last report counts: a need is on the host's disk and outlives its engine, and a node with a
	// broken engine must be rebooted, too. The manager gives the agent five minutes.
	confirmPatience = 2 * time.Minute
	// heldUpRetry is the delay before a granted or drained node checks again whether the host may
	// go down.
	heldUpRetry = 15 * time.Second
	// drainRetry and drainRetryMax limit the back-off between drains that end with an error.
	drainRetry, drainRetryMax = 5 * time.Second, time.Minute
	// callRetry and callRetryMax limit the back-off between calls that logind refuses.
	callRetry, callRetryMax = 5 * time.Second, 5 * time.Minute
	// rebootPatience is the longest time that an accepted reboot may take to end this boot. Delay
	// inhibitors usually last less long.
	rebootPatience = 5 * time.Minute
	// maxCalls is the largest number of calls that logind did not refuse but may not have obeyed.
	maxCalls = 3
	// maxRefusals is the largest number of refusals in a row. They take about ten minutes.
	maxRefusals = 8
)

// Step is the next action of the agent: Idle, Wait, StartDrain, RunDrain, EvictLeft, CommitReboot,
// RecordCall, RecordBoot, CallReboot, AbortDrain or RepairRecord.
type Step interface{ step() }

// Idle does nothing until something changes.
type Idle struct{}

// Wait does nothing until something changes, or until a time.
type Wait struct{ Until time.Time }

// StartDrain writes the progress and cordons the node, in one compare-and-swap.
type StartDrain struct{ Progress protocol.Progress }

// RunDrain drains the node.
type RunDrain struct{ Settings Settings }

// EvictLeft evicts the pods again that came back to the drained node.
type EvictLeft struct{ Settings Settings }

// CommitReboot writes the progress past the point of no return, in a compare-and-swap.
type CommitReboot struct {
	Progress protocol.Progress
	// Volumes are the volumes that the agent waited for until the time-out.
	Volumes []corev1.UniqueVolumeName
}

// RecordCall writes that logind is about to be called again.
type RecordCall struct{ Progress protocol.Progress }

// RecordBoot writes that the host has rebooted under the same boot ID.
type RecordBoot struct{ Progress protocol.Progress }

// CallReboot calls logind to reboot the host.
type CallReboot struct {
	Inhibitors v1alpha1.Obstacle
	// Finalize finalizes the update first, because the FleetLock client that should do so has not.
	Finalize bool
}

// AbortDrain ends the attempt without a reboot. It stops the drain, then writes the progress and
// undoes the agent's own cordon in one compare-and-swap.
type AbortDrain struct{ Progress protocol.Progress }

// RepairRecord replaces an unreadable progress. A cordon stays, because it is unknown who set it.
type RepairRecord struct{ Progress protocol.Progress }

func (Idle) step()         {}
func (Wait) step()         {}
func (StartDrain) step()   {}
func (RunDrain) step()     {}
func (EvictLeft) step()    {}
func (CommitReboot) step() {}
func (RecordCall) step()   {}
func (RecordBoot) step()   {}
func (CallReboot) step()   {}
func (AbortDrain) step()   {}
func (RepairRecord) step() {}

// Next returns what the agent does next. It waits if a required fact is unknown.
func Next(o Observation) Step {
	switch {
	case o.Record.ProgressErr != nil:
		return repair(o)
	case o.Record.Last().Phase == protocol.PhaseDraining:
		return draining(o)
	case o.InPhase(protocol.PhaseRebooting):
		return rebooting(o)
	}
	return resting(o)
}

// resting waits for a grant, and then for everything else that a start requires. The node must not
// be paused, the reboot must have a chance to take effect, the ledger must hold the grant, and pods
// must not prevent the drain. The manager cancels the grant of a node that does not begin. A node
// does not begin right after a boot or while the host is held up, because its pods would be evicted
// for nothing. Right before the start the engines are queried again, because an engine that was
// reset may not have sent a signal.
func resting(o Observation) Step {
	switch {
	case !o.isDue():
		return Idle{}
	case o.hasJustBooted():
		return Wait{Until: o.Now.Add(bootSettles - o.Uptime)}
	case !o.mayBegin(), o.startLook().At.IsZero():
		return Wait{Until: o.Now.Add(policyRetry)}
	case o.blocks(o.startLook()):
		return Wait{Until: o.startLook().At.Add(LookRetry)}
	case !confirmed(o):
		return Wait{Until: o.Now.Add(confirmRetry)}
	}
	if _, held := heldUp(o); held {
		return Wait{Until: o.Now.Add(heldUpRetry)}
	}
	progress, _ := protocol.Start(o.Record, o.BootID, !o.Unschedulable, o.Now)
	progress.Update, _ = updateAsked(o)
	progress.Try = o.Entry.Try && o.startLook().Closed != nil
	return StartDrain{Progress: progress}
}

// confirmed reports whether the engines have confirmed the need, or one of them has not answered
// for so long that its last report counts.
func confirmed(o Observation) bool {
	return o.Confirmed || !o.UnansweredSince.IsZero() && !o.Now.Before(o.UnansweredSince.Add(confirmPatience))
}

// mayBegin reports whether the agent may begin if the last checks, of pods, engines and host,
// permit it.
func (o Observation) mayBegin() bool {
	return o.isDue() && !o.hasJustBooted() && o.policy() != nil && protocol.Listed(o.Record, o.Entry)
}

// isDue reports whether the node has a grant and needs the reboot, is not paused, and the reboot
// has a chance to take effect.
func (o Observation) isDue() bool { return mayStart(o) && !o.Paused && o.asks() && !inVain(o) }

// hasJustBooted reports whether the host may not have settled since its boot. It is false if the
// uptime is unknown.
func (o Observation) hasJustBooted() bool { return o.Uptime > 0 && o.Uptime < bootSettles }

// asks reports whether the host requires a reboot, once its engines have reported in this boot.
func (o Observation) asks() bool { return o.Engines != nil && need(o).Status == corev1.ConditionTrue }

// heldUp returns why the host may not go down now under the policy: an inhibitor, or else another
// program that may reboot it.
func heldUp(o Observation) (why protocol.Blocker, held bool) {
	reboot := o.Settings().Reboot
	inhibitors, coordinators := o.Inhibitors, o.Coordinators
	switch {
	case reboot.InhibitorsOrDefault() != v1alpha1.ObstacleIgnore && (!inhibitors.Known || inhibitors.Message != ""):
		return protocol.Blocker{Reason: v1alpha1.ReasonInhibited, Message: inhibitors.Message}, true
	case inhibitors.Refusal != "":
		return protocol.Blocker{Reason: v1alpha1.ReasonRebootRefused, Message: inhibitors.Refusal}, true
	case reboot.CoordinatorsOrDefault() != v1alpha1.ObstacleIgnore && (!coordinators.Known || coordinators.Message != ""):
		return protocol.Blocker{Reason: v1alpha1.ReasonCoordinatorConflict, Message: coordinators.Message}, true
	case inhibitors.Sessions != "" && o.Now.Before(o.sessionsUntil()):
		return protocol.Blocker{Reason: v1alpha1.ReasonPeopleLoggedIn, Message: inhibitors.Sessions}, true
	}
	return protocol.Blocker{}, false
}

// sessionsUntil returns the time until which the drained node waits for people who are logged in.
func (o Observation) sessionsUntil() time.Time {
	return timing.Earliest(o.Drain.DoneAt.Add(v1alpha1.SessionsLast), o.deadline())
}

// WaitsForSessions reports whether people who are logged in may hold the reboot up.
func WaitsForSessions(o Observation) bool {
	return o.InPhase(protocol.PhaseDraining) && o.Drain.State == DrainDone && o.Settings().Reboot.SessionsOrDefault() == v1alpha1.SessionsWait &&
		o.Now.Before(o.sessionsUntil())
}

// repair ends an attempt whose progress cannot be read. If the attempt is past the point of no
// return, it waits for the boot. The agent's MaintenanceInProgress and the calls of this process
// show whether it is.
func repair(o Observation) Step {
	committed := o.holds(corev1.NodeMaintenanceInProgress) || o.Call != Call{}
	message := engine.Shorten(o.Record.ProgressErr.Error() + ". If the node is cordoned, the cordon was left alone.")
	progress, ok := protocol.Repair(o.Record, o.BootID, message, committed, o.Now)
	if !ok {
		return Idle{}
	}
	return RepairRecord{Progress: progress}
}

func abort(o Observation, reason v1alpha1.Reason, message string, failed bool) Step {
	progress, ok := protocol.Abort(o.Record, o.BootID, reason, engine.Shorten(message), failed, o.Now)
	if !ok {
		return Idle{}
	}
	progress.PodsForced = forced(o.Drain.Deleted)
	progress.Budgeted = reason == v1alpha1.ReasonDrainTimedOut && o.Drain.Budgeted && o.Drain.knows()
	return AbortDrain{Progress: progress}
}

// forced converts a number of pods to the type of the record.
func forced(pods int) int32 { return int32(min(max(pods, 0), math.MaxInt32)) }

// Decision is the agent's decision about an Observation.
type Decision struct {
	// Missing is a fact that has to be looked up first. If it is set, nothing else is decided.
	Missing Fact
	// Next is the step.
	Next Step
	// Status is the status of the Node once the step is done.
	Status NodeStatus
	// Inspect is the manager's request about the pods of the node, or nil if it need not be
	// answered now.
	Inspect *protocol.Preflight
	// KeepsDraining reports whether a running drain continues, which it does until the attempt is
	// committed or aborted.
	KeepsDraining bool
}

// Decide returns the agent's decision.
func Decide(o Observation) Decision {
	if fact := o.missing(); fact != FactNone {
		return Decision{Missing: fact}
	}
	d := Decision{Next: Next(o), Inspect: wantsLook(o)}
	switch next := d.Next.(type) {
	case CommitReboot:
		o.Record.Progress = &next.Progress
	case RunDrain, Wait:
		d.KeepsDraining = o.InPhase(protocol.PhaseDraining)
	}
	d.Status = NodeStatusOf(o)
	return d
}
