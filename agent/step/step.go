// Package step decides what the agent does next, and what it reports on its Node: a function of one Observation, without
// clock, client or logger.
package step

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// bootSettles is how long a host has been up before it is drained. update_engine marks what the host runs as good 45 seconds after
	// its own start. A host that goes down before falls back to the system before the update.
	bootSettles = 2 * time.Minute
	// policyRetry is how soon a policy that could not be read is asked for again.
	policyRetry = 30 * time.Second
	// confirmRetry is how soon an engine that did not answer before the start is asked again.
	confirmRetry = 30 * time.Second
	// confirmPatience is for how long one that does not answer is asked again. A need is on the host's disk and outlives its engine, and a
	// node whose engine is broken must not be up for ever. The manager gives the agent five minutes.
	confirmPatience = 2 * time.Minute
	// heldUpRetry is how soon a node that is granted or drained looks again whether the host may go down.
	heldUpRetry = 15 * time.Second
	// drainRetry and drainRetryMax space drains that end with an error.
	drainRetry, drainRetryMax = 5 * time.Second, time.Minute
	// callRetry and callRetryMax space calls that logind refused.
	callRetry, callRetryMax = 5 * time.Second, 5 * time.Minute
	// rebootPatience is how long an accepted reboot may take to end this boot: longer than delay inhibitors usually last.
	rebootPatience = 5 * time.Minute
	// maxCalls is the largest number of calls that logind neither refused nor provably obeyed.
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

// EvictLeft asks the pods that came back to the drained node once more to leave.
type EvictLeft struct{ Settings Settings }

// CommitReboot writes the progress past the point of no return, in a compare-and-swap.
type CommitReboot struct {
	Progress protocol.Progress
	// Volumes are those that were waited for in vain.
	Volumes []corev1.UniqueVolumeName
}

// RecordCall writes that logind is about to be asked once more.
type RecordCall struct{ Progress protocol.Progress }

// RecordBoot writes that the host has booted under the same boot ID.
type RecordBoot struct{ Progress protocol.Progress }

// CallReboot asks logind to reboot the host.
type CallReboot struct {
	Inhibitors v1alpha1.Obstacle
	// Finalize has the update finalized first: the FleetLock client that was to do it has not.
	Finalize bool
}

// AbortDrain ends the attempt without a reboot: it stops the drain, then writes the progress and undoes the agent's own cordon, in one
// compare-and-swap.
type AbortDrain struct{ Progress protocol.Progress }

// RepairRecord replaces an unreadable progress. Whose cordon there is is unknown, so it stays.
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

// Next is what the agent does next. Where something is unknown that it takes, the agent waits.
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

// resting waits for a grant, and for the ledger to hold it. A node does not begin while it is paused, where the reboot would have no
// effect, or while its pods are in the way. The manager cancels the grant. An agent that has just started first asks what the reboot
// is for. A host that went down by itself may need none any more, and the manager does not know yet. Right before it begins the engines
// are asked once more: one that was reset may have sent no signal. It does not begin right after a boot, or while the host is held up:
// its pods would leave for nothing.
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

// confirmed reports whether the engines have answered once more, or one of them has not for so long that what it had reported counts.
func confirmed(o Observation) bool {
	return o.Confirmed || !o.UnansweredSince.IsZero() && !o.Now.Before(o.UnansweredSince.Add(confirmPatience))
}

// mayBegin reports whether only what is looked at right before can keep the agent from beginning: pods, engines and the host.
func (o Observation) mayBegin() bool {
	return o.isDue() && !o.hasJustBooted() && o.policy() != nil && protocol.Listed(o.Record, o.Entry)
}

// isDue reports whether the node needs a granted reboot, is not paused, and the reboot would not be in vain.
func (o Observation) isDue() bool { return mayStart(o) && !o.Paused && o.asks() && !inVain(o) }

// hasJustBooted reports whether the host may not have settled since its boot. Unknown is no.
func (o Observation) hasJustBooted() bool { return o.Uptime > 0 && o.Uptime < bootSettles }

// asks reports whether the host needs a reboot, by what its engines have reported in this boot.
func (o Observation) asks() bool { return o.Engines != nil && need(o).Status == corev1.ConditionTrue }

// heldUp is why the host may not go down now under the policy: an inhibitor, or else another program that reboots it.
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
	}
	return protocol.Blocker{}, false
}

// repair ends an attempt whose progress cannot be read. After the point of no return it waits for the boot: the agent's
// MaintenanceInProgress and this process show whether it was passed.
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
	return AbortDrain{Progress: progress}
}

// forced fits a number of pods into the record.
func forced(pods int) int32 { return int32(min(max(pods, 0), math.MaxInt32)) }

// Decision is what the agent does about an Observation.
type Decision struct {
	// Missing is the fact that has to be found out first: nothing else is decided then.
	Missing Fact
	// Next is the step.
	Next Step
	// Status is what the Node states when the step is done.
	Status NodeStatus
	// Inspect is the manager's request about the pods of the node, while its answer is wanted. Nil: no look is needed.
	Inspect *protocol.Preflight
	// KeepsDraining reports whether a drain that runs goes on: while the attempt is neither committed nor aborted.
	KeepsDraining bool
}

// Decide is the agent's decision.
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
