package step

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// draining decides the next step of an attempt in Draining. Reasons to stop come before the state
// of the drain.
func draining(o Observation) Step {
	commit, permitted := protocol.Commit(o.Record, o.BootID, o.Now)
	commit.PodsForced, commit.UpSeconds = forced(o.Drain.Deleted), int64(o.Uptime.Seconds())
	switch {
	case !permitted:
		return unpermitted(o)
	case !o.Unschedulable:
		return abort(o, v1alpha1.ReasonUncordoned, "Somebody uncordoned the node while it was being drained.", true)
	case o.Drain.State == DrainUndrainable:
		return abort(o, v1alpha1.ReasonUndrainablePod, o.Drain.Message, true)
	case o.Drain.State == DrainDone:
		return drained(o, commit)
	case !o.Now.Before(o.deadline()):
		return timedOut(o, commit)
	case o.Drain.State == DrainRunning:
		return Wait{Until: o.deadline()}
	}
	return drainNow(o)
}

// unpermitted aborts an attempt that may not be committed any more.
func unpermitted(o Observation) Step {
	p, grant := o.Record.Last(), o.Record.Grant
	switch {
	case p.BootID != o.BootID:
		return abort(o, v1alpha1.ReasonCancelled, "The host was rebooted by somebody else while it was being drained.", false)
	case o.Record.GrantErr != nil:
		return abort(o, v1alpha1.ReasonRecordUnreadable, o.Record.GrantErr.Error(), true)
	case grant == nil:
		return abort(o, v1alpha1.ReasonCancelled, "The grant was removed.", false)
	case grant.Seq != p.Seq || grant.BootID != p.BootID:
		return abort(o, v1alpha1.ReasonCancelled, "The grant was replaced by another one.", false)
	}
	return abort(o, v1alpha1.ReasonCancelled, "The manager cancelled the grant.", false)
}

// drainNow drains the node after the lead time. It drains again if an earlier drain of the attempt
// failed, was stopped, or ended with its process.
func drainNow(o Observation) Step {
	start := o.Now
	switch {
	case o.Drain.State == DrainFailed:
		start = o.Drain.triedAgain()
	case o.leads():
		start = o.evictsFrom()
	}
	if o.policy() == nil {
		start = o.Now.Add(policyRetry)
	}
	if o.Now.Before(start) {
		return Wait{Until: timing.Earliest(start, o.deadline())}
	}
	return RunDrain{Settings: o.Settings()}
}

// triedAgain returns the time at which a failed drain is repeated.
func (d Drain) triedAgain() time.Time {
	return d.FailedAt.Add(timing.Backoff(d.Failures, drainRetry, drainRetryMax))
}

// timedOut gives up, or reboots without waiting if the policy says so. The pods that a drain has
// evicted but that have not left count as left over, even if the drain was stopped for this step.
// If the drain failed, ended with its process or never listed the pods, the number is unknown and
// the agent gives up.
func timedOut(o Observation, commit protocol.Progress) Step {
	spec := o.Settings().Drain
	message := tooLong(o, unreadPolicy(o), o.Drain.Message)
	if spec.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort || !o.Drain.knows() {
		return giveUp(o, message)
	}
	commit.Reason, commit.Message = v1alpha1.ReasonDrainTimedOut, message
	commit.PodsForced = forced(o.Drain.Deleted + o.Drain.Remaining)
	return drained(o, commit)
}

// tooLong returns the message about a drain that took too long.
func tooLong(o Observation, why ...string) string {
	message := fmt.Sprintf("The drain took longer than %s.", o.Settings().Drain.TimeoutOrDefault())
	return engine.Shorten(sentences(append([]string{message}, why...)...))
}

// giveUp aborts a drain that took too long. If a budget was closed when it began, that may be the
// cause, and the policy does not count a failure.
func giveUp(o Observation, message string) Step {
	reason := v1alpha1.ReasonDrainTimedOut
	if o.Record.Last().Try {
		reason = v1alpha1.ReasonUndrainablePod
	}
	return abort(o, reason, message, true)
}

// drained passes the point of no return unless something does or may hold the host up. If that is
// unknown, the node waits.
func drained(o Observation, commit protocol.Progress) Step {
	if until, waits := detached(o); waits {
		return Wait{Until: until}
	}
	why, held := heldUp(o)
	switch {
	case held && o.Now.Before(o.deadline()):
		return Wait{Until: timing.Earliest(o.Now.Add(heldUpRetry), o.deadline())}
	case held:
		return abort(o, why.Reason, why.Message, true)
	case evictsLeft(o):
		return askLeft(o, commit)
	}
	return CommitReboot{Progress: commit, Volumes: waitedFor(o)}
}

const (
	// leftAfter is the time after a drain from which pods may have come back and be ready.
	leftAfter = 5 * time.Second
	// leftLasts is the time for which a permission to evict such pods is trusted. After that,
	// controllers may have created other pods, and budgets may have changed.
	leftLasts = 10 * time.Second
)

// evictsLeft reports whether the drained node may have pods that came back during or after the
// drain. Their budgets do not count such pods as disrupted.
func evictsLeft(o Observation) bool {
	back := o.Drain.Staying != "" || !o.Now.Before(o.Drain.DoneAt.Add(leftAfter))
	return o.Drain.State == DrainDone && o.policy() != nil && back
}

// askLeft evicts these pods again right before the point of no return. If a budget refuses, the
// node waits until the deadline of the drain.
func askLeft(o Observation, commit protocol.Progress) Step {
	asked, refused := o.Drain.LeftAt, o.Drain.Refused
	switch {
	case refused == "" && o.Now.Before(asked.Add(leftLasts)):
		return CommitReboot{Progress: commit, Volumes: waitedFor(o)}
	case refused == "" || !o.Now.Before(asked.Add(heldUpRetry)) && o.Now.Before(o.deadline()):
		return EvictLeft{Settings: o.Settings()}
	case o.Now.Before(o.deadline()):
		return Wait{Until: timing.Earliest(asked.Add(heldUpRetry), o.deadline())}
	case o.Settings().Drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort:
		return giveUp(o, tooLong(o, refused))
	}
	commit.Reason, commit.Message = v1alpha1.ReasonDrainTimedOut, tooLong(o, refused)
	return CommitReboot{Progress: commit, Volumes: waitedFor(o)}
}
