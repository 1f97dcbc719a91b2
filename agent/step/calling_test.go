package step

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// called sets the outcome of the last call. onRecord sets the number of recorded calls, the last of
// them some time ago.
func called(c Call) func(*Observation) { return func(o *Observation) { o.Call = c } }

func onRecord(calls int32, ago time.Duration) func(*Observation) {
	return func(o *Observation) {
		o.Record.Progress.Recalls = calls - 1
		if calls > 1 {
			o.Record.Progress.CalledAt = &metav1.Time{Time: now.Add(-ago)}
		}
	}
}

// byAnother sets a progress that another process wrote. seenFor sets the time since which this
// process has seen it.
func byAnother(o *Observation) { o.Began = false }

func seenFor(d time.Duration) func(*Observation) {
	return func(o *Observation) { o.SeenAt = now.Add(-d) }
}

// stayingUp is a host that logind is not taking down.
func stayingUp(o *Observation) { o.Shutdown = Shutdown{Known: true} }

func TestNext_Rebooting(t *testing.T) {
	respect := CallReboot{Inhibitors: v1alpha1.ObstacleBlock}
	ignore := CallReboot{Inhibitors: v1alpha1.ObstacleIgnore}
	ignored := func(o *Observation) { o.LastPolicy.Reboot.Inhibitors = v1alpha1.ObstacleIgnore }
	later := Wait{now.Add(policyRetry)}
	cases[Step]{
		"logind is called": {makeObservation(goingDown), respect},
		"with the settings read before, if the policy cannot be read":             {makeObservation(goingDown, readLast(time.Hour), ignored), ignore},
		"as the policy specifies":                                                 {makeObservation(goingDown, func(o *Observation) { o.Policy.Reboot.Inhibitors = v1alpha1.ObstacleIgnore }), ignore},
		"even if somebody uncordons":                                              {makeObservation(goingDown, func(o *Observation) { o.Unschedulable = false }), respect},
		"not without an entry in the ledger":                                      {makeObservation(goingDown, unlisted), later},
		"not with an entry of another number":                                     {makeObservation(goingDown, func(o *Observation) { o.Entry.Seq = 2 }), later},
		"not with an entry of another Node":                                       {makeObservation(goingDown, func(o *Observation) { o.Entry.NodeUID = "another" }), later},
		"even if the entry was withdrawn too late":                                {makeObservation(goingDown, withdrawnGrant), respect},
		"not under a cancelled grant":                                             {makeObservation(goingDown, granted(1, cancelled)), later},
		"not without a grant":                                                     {makeObservation(goingDown, func(o *Observation) { o.Record.Grant = nil }), later},
		"not under a grant that cannot be read":                                   {makeObservation(goingDown, func(o *Observation) { o.Record.Grant, o.Record.GrantErr = nil, errUnreadable }), later},
		"not under an earlier grant":                                              {makeObservation(goingDown, inPhase(2, rebootingPhase)), later},
		"not under a grant for another boot":                                      {makeObservation(goingDown, func(o *Observation) { o.Record.Grant.BootID = otherBoot }), later},
		"restored to the previous boot: the attempt is over":                      {makeObservation(goingDown, granted(1, finished)), Idle{}},
		"restored to the previous boot, under a later grant: the attempt is over": {makeObservation(goingDown, granted(2, active)), Idle{}},
		"another boot: it took effect (behaviour 49)":                             {makeObservation(rebootedBefore), Idle{}},
	}.each(t, Next)
}

func TestNext_CallsAgain(t *testing.T) {
	respect := CallReboot{Inhibitors: v1alpha1.ObstacleBlock}
	records := func(calls int32) RecordCall {
		o := makeObservation(goingDown, onRecord(calls, 0))
		o.Record.Progress.CalledAt = &metav1.Time{Time: now}
		return RecordCall{Progress: *o.Record.Progress}
	}
	cases[Step]{
		"accepted: is waited for":                                          {makeObservation(goingDown, onRecord(1, 0), called(Call{AcceptedAt: now.Add(-time.Minute)})), Wait{now.Add(4 * time.Minute)}},
		"accepted without effect: another call is recorded":                {makeObservation(goingDown, onRecord(1, 0), called(Call{AcceptedAt: now.Add(-5 * time.Minute)})), records(2)},
		"refused: is asked again later":                                    {makeObservation(goingDown, called(Call{Refusals: 1, RefusedAt: now})), Wait{now.Add(5 * time.Second)}},
		"refused twice: waits longer":                                      {makeObservation(goingDown, called(Call{Refusals: 2, RefusedAt: now})), Wait{now.Add(10 * time.Second)}},
		"refused often: every 5 minutes":                                   {makeObservation(goingDown, called(Call{Refusals: 7, RefusedAt: now})), Wait{now.Add(5 * time.Minute)}},
		"refused: the same call is repeated":                               {makeObservation(goingDown, called(Call{Refusals: 1, RefusedAt: now.Add(-5 * time.Second)})), respect},
		"no answer: another call is recorded":                              {makeObservation(goingDown, onRecord(1, 0), called(Call{Refusals: 1, Unanswered: true, RefusedAt: now.Add(-5 * time.Second)})), records(2)},
		"the process that recorded the first is gone":                      {makeObservation(goingDown, onRecord(1, 0), byAnother), records(2)},
		"the process that recorded the second is gone":                     {makeObservation(goingDown, onRecord(2, time.Minute), byAnother), records(3)},
		"the process that recorded the last is gone":                       {makeObservation(goingDown, onRecord(3, time.Minute), byAnother), Wait{now.Add(4 * time.Minute)}},
		"the process that recorded it is gone, and the clock was set back": {makeObservation(goingDown, onRecord(3, -time.Hour), byAnother, seenFor(time.Minute)), Wait{now.Add(4 * time.Minute)}},
		"a record of an older agent that did not count calls":              {makeObservation(goingDown, byAnother), records(2)},
		"a second call is made by the process that wrote it":               {makeObservation(goingDown, onRecord(2, 0)), respect},
		"no call is recorded while the grant is not in force":              {makeObservation(goingDown, onRecord(1, 0), byAnother, granted(1, cancelled)), Wait{now.Add(policyRetry)}},
	}.each(t, Next)
}

func TestNext_GivesUpPastThePointOfNoReturn(t *testing.T) {
	retreats := func(calls int32, reason v1alpha1.Reason, message string, failures int32) AbortDrain {
		o := makeObservation(goingDown, onRecord(calls, 5*time.Minute))
		p := *o.Record.Progress
		p.Phase, p.At, p.Cordoned, p.Reason, p.Message, p.Failures = abortedPhase, metav1.NewTime(now), false, reason, message, failures
		return AbortDrain{Progress: p}
	}
	refused := called(Call{Refusals: maxRefusals, RefusedAt: now.Add(-5 * time.Minute), Message: "No."})
	unproved := "Logind was asked 3 times to reboot the host, which still has boot ID boot-2. " +
		"If hosts keep their boot ID across reboots, as containers do, a reboot cannot be confirmed."
	cancelledGrant := "The agent does not reboot the host, because grant 1 is not in force: it is Cancelled."
	withoutEntry := func(o *Observation) { o.Entry, o.Sought = nil, []Fact{FactLedger} }
	unread := func(o *Observation) { withoutEntry(o); o.Policy = nil }
	cases[Step]{
		"after many refusals in a row":                       {makeObservation(goingDown, refused, stayingUp), retreats(1, v1alpha1.ReasonRebootRefused, "The agent gives up after 8 calls. No.", 1)},
		"not while the host goes down after all":             {makeObservation(goingDown, refused, func(o *Observation) { o.Shutdown = Shutdown{Known: true, UnderWay: true} }), Wait{now.Add(heldUpRetry)}},
		"not while it is unknown whether the host goes down": {makeObservation(goingDown, refused), Wait{now.Add(heldUpRetry)}},
		"after three calls that nobody refused":              {makeObservation(goingDown, onRecord(3, 5*time.Minute), byAnother, stayingUp), retreats(3, v1alpha1.ReasonRebootTimedOut, unproved, 1)},
		"not before the third call has had its time":         {makeObservation(goingDown, onRecord(3, time.Minute), byAnother, stayingUp), Wait{now.Add(4 * time.Minute)}},
		"under a grant that was cancelled":                   {makeObservation(goingDown, granted(1, cancelled), seenFor(5*time.Minute), stayingUp), retreats(1, v1alpha1.ReasonGrantWithdrawn, cancelledGrant, 0)},
		"not at once":                                        {makeObservation(goingDown, granted(1, cancelled), seenFor(time.Minute), stayingUp), Wait{now.Add(policyRetry)}},
		"under a grant that the ledger does not hold":        {makeObservation(goingDown, withoutEntry, seenFor(time.Hour), stayingUp), retreats(1, v1alpha1.ReasonGrantWithdrawn, "The agent does not reboot the host, because grant 1 is not in force: the ledger of policy workers does not hold it.", 0)},
		"not while the ledger cannot be read":                {makeObservation(goingDown, unread, seenFor(time.Hour), stayingUp), Wait{now.Add(policyRetry)}},
	}.each(t, Next)
}

// TestNext_ProvesABootByTheUptime covers hosts that keep their boot ID: containers, and machines
// whose random numbers repeat.
func TestNext_ProvesABootByTheUptime(t *testing.T) {
	crossed := now.Sub(begun)
	notedAfter := func(uptime time.Duration) protocol.Progress {
		p := *makeProgress(1, rebootingPhase, boot)
		p.Rebooted, p.UpSeconds = true, int64(uptime.Seconds())
		return p
	}
	upBefore := func(uptime time.Duration) func(*Observation) {
		return func(o *Observation) { o.Record.Progress.UpSeconds = int64(uptime.Seconds()) }
	}
	over := func(o *Observation) { o.Record.Progress.Rebooted = true }
	cases[Step]{
		"up for less time than before":                      {makeObservation(goingDown, byAnother, upBefore(time.Hour), up(time.Hour-time.Second, 0), stayingUp), RecordBoot{Progress: notedAfter(time.Hour)}},
		"up for longer than before":                         {makeObservation(goingDown, onRecord(3, time.Minute), byAnother, upBefore(time.Minute), up(time.Minute, 0), stayingUp), Wait{now.Add(4 * time.Minute)}},
		"up for less time than has passed":                  {makeObservation(goingDown, byAnother, up(crossed-time.Second, 0), stayingUp), RecordBoot{Progress: notedAfter(0)}},
		"up for longer":                                     {makeObservation(goingDown, onRecord(3, time.Minute), byAnother, up(crossed+time.Second, 0), stayingUp), Wait{now.Add(4 * time.Minute)}},
		"in the process that passed the point of no return": {makeObservation(goingDown, up(time.Minute, 0), stayingUp), CallReboot{Inhibitors: v1alpha1.ObstacleBlock}},
		"while the host may be going down":                  {makeObservation(goingDown, byAnother, up(time.Minute, 0)), Wait{now.Add(heldUpRetry)}},
		"nothing to do once the boot is recorded":           {makeObservation(goingDown, byAnother, up(time.Minute, 0), over), Idle{}},
		"a recorded boot starts a new series of failures":   {makeObservation(goingDown, over, staged("1"), granted(2, active), failedBefore), beginsAfter(0)},
	}.each(t, func(o Observation) Step {
		if s, ok := Next(o).(StartDrain); ok {
			return beginsAfter(s.Progress.Failures)
		}
		return Next(o)
	})
}

func failedBefore(o *Observation) { o.Record.Progress.Failures = 3 }

// beginsAfter returns the start of an attempt after the given number of failures.
func beginsAfter(failures int32) Step {
	return StartDrain{Progress: protocol.Progress{Failures: failures}}
}
