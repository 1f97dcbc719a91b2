package step

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// This file decides the steps after the point of no return, until this boot ends.

// rebooting calls logind until this boot ends, and only while the grant is in force. If a FleetLock
// client is to reboot the host, the agent first waits for it. It gives up if the calls do not lead
// to a reboot, because the node is empty and holds a slot.
func rebooting(o Observation) Step {
	due := callDue(o)
	reason, message, failed := deadEnd(o)
	switch {
	case bootedSince(o):
		progress, _ := protocol.NoteBoot(o.Record, o.BootID)
		return unlessGoingDown(o, RecordBoot{Progress: progress})
	case o.Now.Before(due):
		return Wait{Until: due}
	case reason != "":
		progress, _ := protocol.Retreat(o.Record, o.BootID, reason, engine.Shorten(message), failed, o.Now)
		return unlessGoingDown(o, AbortDrain{Progress: progress})
	case !protocol.MayCall(o.Record, o.BootID, o.Entry):
		return Wait{Until: o.Now.Add(policyRetry)}
	case mayBeObeyed(o):
		progress, _ := protocol.Recall(o.Record, o.BootID, o.Now)
		return RecordCall{Progress: progress}
	}
	_, finalize := client(o)
	return CallReboot{Inhibitors: o.Settings().Reboot.InhibitorsOrDefault(), Finalize: finalize}
}

// callDue returns the time of the next call of logind. An earlier process may have been killed
// between its record and its call, so a new process calls at once. If all calls are used up, the
// last recorded one first gets time to take effect.
func callDue(o Observation) time.Time {
	last := o.Record.Last()
	switch {
	case !o.Call.AcceptedAt.IsZero():
		return o.Call.AcceptedAt.Add(rebootPatience)
	case o.Call.Refusals > 0:
		return o.Call.RefusedAt.Add(timing.Backoff(o.Call.Refusals, callRetry, callRetryMax))
	case o.Began || last.Recalls+1 < maxCalls || last.CalledAt == nil:
		if name, _ := client(o); name != "" {
			return clientUntil(o)
		}
		return o.Now
	case last.CalledAt.After(o.Now): // the host's clock was set back
		return o.SeenAt.Add(rebootPatience)
	}
	return last.CalledAt.Add(rebootPatience)
}

// mayBeObeyed reports whether logind may have obeyed the last recorded call. Then another call must
// be recorded before it is made.
func mayBeObeyed(o Observation) bool {
	switch {
	case o.Call.Unanswered || !o.Call.AcceptedAt.IsZero():
		return true
	case o.Call.Refusals > 0:
		return false
	}
	return !o.Began
}

// deadEnd returns the reason to give up past the point of no return, and whether that counts as a
// failure. The reason is empty if the agent goes on.
func deadEnd(o Observation) (reason v1alpha1.Reason, message string, failed bool) {
	why := notInForce(o)
	switch calls := o.Record.Last().Recalls + 1; {
	case o.Call.Refusals >= maxRefusals:
		return v1alpha1.ReasonRebootRefused, fmt.Sprintf("The agent gives up after %d calls. %s", o.Call.Refusals, o.Call.Message), true
	case calls >= maxCalls && mayBeObeyed(o):
		return v1alpha1.ReasonRebootTimedOut, fmt.Sprintf("Logind was asked %d times to reboot the host, which still has boot ID %s. "+
			"If hosts keep their boot ID across reboots, as containers do, a reboot cannot be confirmed.", calls, o.BootID), true
	case why != "" && !unreadLedger(o) && !o.Now.Before(o.SeenAt.Add(rebootPatience)):
		return v1alpha1.ReasonGrantWithdrawn, why, false
	}
	return "", "", false
}

// unlessGoingDown returns next, or waits if logind is or may be taking the host down. In that case
// the shutdown would make the written progress wrong.
func unlessGoingDown(o Observation, next Step) Step {
	if o.Shutdown.Known && !o.Shutdown.UnderWay {
		return next
	}
	return Wait{Until: o.Now.Add(heldUpRetry)}
}

// bootedSince reports whether the host has rebooted since the point of no return although its boot
// ID is the same. Its uptime is then less than the one recorded at that point, or if none was
// recorded, less than the time that has passed since. A clock that was set can falsify that time,
// so the agent also asks logind whether the host is going down.
func bootedSince(o Observation) bool {
	last := o.Record.Last()
	switch {
	case o.Uptime <= 0 || o.Began: // the process that passed the point of no return is still running
		return false
	case last.UpSeconds > 0:
		return o.Uptime < time.Duration(last.UpSeconds)*time.Second
	}
	return o.Uptime < o.Now.Sub(last.At.Time)
}

// notInForce says why the agent does not call logind although the node is past the point of no
// return. It is empty if the agent may call logind, or if the ledger was not read.
func notInForce(o Observation) string {
	grant, last := o.Record.Grant, o.Record.Last()
	var why string
	switch {
	case o.Record.GrantErr != nil:
		why = "it cannot be read"
	case grant == nil:
		why = "the Node does not show it"
	case grant.Seq == last.Seq && grant.State != protocol.GrantActive:
		why = "it is " + string(grant.State)
	case !protocol.Committed(o.Record, o.BootID):
		why = "the Node shows another one"
	case unreadLedger(o):
		why = fmt.Sprintf("policy %s cannot be read", grant.LedgerName())
	case slices.Contains(o.Sought, FactLedger) && !protocol.MayCall(o.Record, o.BootID, o.Entry):
		why = fmt.Sprintf("the ledger of policy %s does not hold it", grant.LedgerName())
	default:
		return ""
	}
	return fmt.Sprintf("The agent does not reboot the host, because grant %d is not in force: %s.", last.Seq, why)
}

// unreadLedger reports whether the agent tried to read the ledger and failed.
func unreadLedger(o Observation) bool {
	return slices.Contains(o.Sought, FactLedger) && o.Policy == nil
}
