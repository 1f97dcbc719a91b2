package step

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var errUnreadable = errors.New("annotation x: unreadable")

func TestNext_AtRest(t *testing.T) {
	begin := makeProgress(1, drainingPhase, boot)
	begin.At, begin.DrainStartedAt = metav1.NewTime(now), &metav1.Time{Time: now}
	requested := *begin
	begin.Update = &protocol.Update{}
	begin2 := *begin
	begin2.Seq = 2
	uncordoned := func(o *Observation) { o.Unschedulable = false }
	unknown := engineReports(engine.Report{Engine: "update-engine", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable})
	cases[Step]{
		"a granted host that needs no reboot any more after a power loss": {makeObservation(granted(1, active)), Idle{}},
		"an engine that is gone does not count as a need":                 {makeObservation(unknown, granted(1, active)), Idle{}},
		"an administrator's request is a need":                            {makeObservation(requesting("x"), granted(1, active)), StartDrain{requested}},
		"nothing to do":                                                   {makeObservation(), Idle{}},
		"a grant begins the drain":                                        {makeObservation(staged(""), granted(1, active)), StartDrain{*begin}},
		"a pause comes first (behaviour 23)":                              {makeObservation(staged(""), granted(1, active), paused), Idle{}},
		"a policy that cannot be read is asked for again":                 {makeObservation(staged(""), granted(1, active), noPolicy), Wait{now.Add(30 * time.Second)}},
		"a ledger that does not hold the grant begins nothing":            {makeObservation(staged(""), granted(1, active), unlisted), Wait{now.Add(policyRetry)}},
		"a ledger that has withdrawn the grant begins nothing":            {makeObservation(staged(""), granted(1, active), withdrawnGrant), Wait{now.Add(policyRetry)}},
		"no policy is asked for without a grant":                          {makeObservation(noPolicy), Idle{}},
		"an aborted attempt is not begun again":                           {makeObservation(staged(""), granted(1, active), inPhase(1, abortedPhase)), Idle{}},
		"the next grant begins after an aborted attempt":                  {makeObservation(staged(""), granted(2, active), inPhase(1, abortedPhase)), StartDrain{begin2}},
		"an agent that has just started reports the reason first":         {makeObservation(staged(""), granted(1, active), silent), Idle{}},
		"a host that has just booted settles first":                       {makeObservation(staged(""), granted(1, active), up(20*time.Second, 0)), Wait{now.Add(100 * time.Second)}},
		"a requested reboot waits for two minutes of uptime":              {makeObservation(requesting("x"), granted(1, active), noPolicy, up(2*time.Minute-1, 0)), Wait{now.Add(1)}},
		"a host that needs nothing does not wait for uptime":              {makeObservation(granted(1, active), up(20*time.Second, 0)), Idle{}},
		"a host that has been up for two minutes begins":                  {makeObservation(staged(""), granted(1, active), up(2*time.Minute, 0)), StartDrain{*begin}},
		"engines that do not confirm their need are queried again": {
			makeObservation(staged(""), granted(1, active), unanswered(0)), Wait{now.Add(confirmRetry)},
		},
		"engines that do not confirm for almost two minutes are queried again": {
			makeObservation(staged(""), granted(1, active), unanswered(2*time.Minute-time.Second)), Wait{now.Add(confirmRetry)},
		},
		"after two minutes without confirmation the reported need counts": {makeObservation(staged(""), granted(1, active), unanswered(2*time.Minute)), StartDrain{*begin}},
		"engines that have not been queried again are queried": {
			makeObservation(staged(""), granted(1, active), func(o *Observation) { o.Confirmed = false }), Wait{now.Add(confirmRetry)},
		},
		"a host that is inhibited is not drained": {
			makeObservation(staged(""), granted(1, active), func(o *Observation) { o.Inhibitors.Message = "A shutdown is blocked by x." }), Wait{now.Add(heldUpRetry)},
		},
		"a host with another coordinator is not drained": {
			makeObservation(staged(""), granted(1, active), func(o *Observation) { o.Coordinators.Message = "locksmithd is active." }), Wait{now.Add(heldUpRetry)},
		},
		"a host whose inhibitors are unknown is not drained": {
			makeObservation(staged(""), granted(1, active), unasked), Wait{now.Add(heldUpRetry)},
		},
		"a policy may ignore inhibitors and coordinators": {
			makeObservation(staged(""), granted(1, active), func(o *Observation) {
				o.Inhibitors.Message, o.Coordinators.Message = "A shutdown is blocked by x.", "locksmithd is active."
				o.Policy.Reboot = v1alpha1.Reboot{Inhibitors: v1alpha1.ObstacleIgnore, Coordinators: v1alpha1.ObstacleIgnore}
			}), StartDrain{*begin},
		},
		"a finished reboot is left to the manager":      {makeObservation(rebootedBefore), Idle{}},
		"the next grant begins after a finished reboot": {makeObservation(rebootedBefore, staged(""), granted(2, active), uncordoned), StartDrain{begin2}},
	}.each(t, Next)
}

func TestNext_Draining(t *testing.T) {
	commit := func(change func(*protocol.Progress)) Step {
		p := makeProgress(1, rebootingPhase, boot)
		p.At = metav1.NewTime(now)
		change(p)
		return CommitReboot{Progress: *p}
	}
	as := func(*protocol.Progress) {}
	settings := func(timeout time.Duration, onTimeout v1alpha1.DrainTimeoutAction, inhibitors v1alpha1.Obstacle) func(*Observation) {
		return func(o *Observation) {
			o.Policy.Drain.Timeout, o.Policy.Drain.OnTimeout = &v1alpha1.Duration{Duration: timeout}, onTimeout
			o.Policy.Reboot.Inhibitors = inhibitors
		}
	}
	// The attempt began 5 minutes ago.
	late, lateButReboot := settings(5*time.Minute, "", ""), settings(5*time.Minute, v1alpha1.DrainTimeoutReboot, "")
	inTime := begun.Add(20 * time.Minute)
	inhibited := func(o *Observation) { o.Inhibitors.Message = "A shutdown is blocked by x." }
	loggedIn := func(o *Observation) { o.Inhibitors.Sessions = "People are logged in on the host: core (pts/0)." }
	drainedAgo := func(d time.Duration) func(*Observation) { return drainIs(Drain{State: DrainDone, DoneAt: now.Add(-d)}) }
	asked := func(o *Observation) { o.Drain.LeftAt = now }
	rivalled := func(o *Observation) { o.Coordinators.Message = "locksmithd is active." }
	ignoring := func(o *Observation) { o.Policy.Reboot.Coordinators = v1alpha1.ObstacleIgnore }
	done, running := drainIs(Drain{State: DrainDone, DoneAt: now}), drainIs(Drain{State: DrainRunning, Listed: true, Message: "1 pod is left."})
	stopped := drainIs(Drain{State: DrainStopped, Listed: true, Message: "1 pod is left."})
	forcing := func(deleted, remaining int) func(*Observation) {
		return func(o *Observation) { o.Drain.Deleted, o.Drain.Remaining = deleted, remaining }
	}
	begunAt := func(d time.Duration) func(*Observation) {
		return func(o *Observation) { o.SeenAt, o.Began = now.Add(d), true }
	}
	failedOnce := drainIs(Drain{State: DrainFailed, Failures: 1, FailedAt: now.Add(-4 * time.Second), Message: "No right."})
	failedOften := drainIs(Drain{State: DrainFailed, Failures: 9, FailedAt: now.Add(-4 * time.Second)})
	back := func(asked time.Duration, refused string) func(*Observation) {
		d := Drain{State: DrainDone, DoneAt: now, Staying: "staying: a/b (why).", Refused: refused}
		if asked > 0 {
			d.LeftAt = now.Add(-asked)
		}
		return drainIs(d)
	}
	triedAbort := aborts(v1alpha1.ReasonUndrainablePod, "The drain took longer than 5m0s. 1 pod is left.", 1).Progress
	triedAbort.Try = true
	budgeted := drainIs(Drain{State: DrainRunning, Listed: true, Message: "1 pod is left.", Budgeted: true})
	budgetedAbort := aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. 1 pod is left.", 1).Progress
	budgetedAbort.Budgeted = true
	cases[Step]{
		"a granted node is drained":                            {makeObservation(beingDrained), RunDrain{}},
		"a running drain is waited for":                        {makeObservation(beingDrained, running), Wait{inTime}},
		"a finished drain leads to the reboot":                 {makeObservation(beingDrained, done), commit(as)},
		"a drain that finished late leads to the reboot":       {makeObservation(beingDrained, done, late), commit(as)},
		"a failed drain runs again":                            {makeObservation(beingDrained, drainIs(Drain{State: DrainFailed, Failures: 1, FailedAt: now.Add(-5 * time.Second)})), RunDrain{}},
		"a failed drain runs again after a pause":              {makeObservation(beingDrained, failedOnce), Wait{now.Add(time.Second)}},
		"a drain that keeps failing runs again after a minute": {makeObservation(beingDrained, failedOften), Wait{now.Add(56 * time.Second)}},
		"no drain without the policy":                          {makeObservation(beingDrained, noPolicy), Wait{now.Add(30 * time.Second)}},
		"a finished drain without the policy":                  {makeObservation(beingDrained, noPolicy, done), commit(as)},
		"a policy that stays unreadable is a time-out": {
			makeObservation(beingDrained, noPolicy, func(o *Observation) { o.Now = inTime }),
			abortAt(inTime, v1alpha1.ReasonDrainTimedOut, "The drain took longer than 20m0s. The node is not drained while policy workers cannot be read.", 1),
		},
		"a pause does not stop it": {makeObservation(beingDrained, running, paused), Wait{inTime}},

		"the host's clock was set back, and another process began it": {
			makeObservation(beingDrained, running, func(o *Observation) {
				o.Record.Progress.At, o.SeenAt = metav1.NewTime(now.Add(time.Hour)), now.Add(-time.Minute)
			}), Wait{now.Add(19 * time.Minute)},
		},
		"another process began it, whose time counts": {
			makeObservation(beingDrained, running, func(o *Observation) { o.SeenAt = now.Add(-time.Minute) }), Wait{inTime},
		},
		"another process began it, and the policy cannot be read": {
			makeObservation(beingDrained, noPolicy, func(o *Observation) {
				o.Now, o.SeenAt, o.Sought = inTime, inTime.Add(-time.Minute), []Fact{FactPolicy}
			}), Wait{inTime.Add(30 * time.Second)},
		},
		"the host's clock was set forward, and it is not too long": {
			makeObservation(beingDrained, running, late, begunAt(-time.Minute)), Wait{now.Add(4 * time.Minute)},
		},
		"the host's clock was set back, and it is too long": {
			makeObservation(beingDrained, running, begunAt(-20*time.Minute)),
			aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 20m0s. 1 pod is left.", 1),
		},
		"too long: given up (behaviour 38)": {
			makeObservation(beingDrained, running, late),
			aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. 1 pod is left.", 1),
		},
		"too long, and only budgets held it up": {makeObservation(beingDrained, budgeted, late), AbortDrain{budgetedAbort}},
		"uncordoned while only budgets held it up": {
			makeObservation(beingDrained, budgeted, func(o *Observation) { o.Unschedulable = false }),
			aborts(v1alpha1.ReasonUncordoned, "Somebody uncordoned the node while it was being drained.", 1),
		},
		"too long in a try of a closed budget: given up, and no failure of the policy": {
			makeObservation(beingDrained, running, late, func(o *Observation) { o.Record.Progress.Try = true }), AbortDrain{triedAbort},
		},
		"too long: reboots with onTimeout Reboot": {makeObservation(beingDrained, running, lateButReboot), commit(func(p *protocol.Progress) {
			p.Reason, p.Message = v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. 1 pod is left."
		})},
		"too long: reboots with pods left, which are counted": {
			makeObservation(beingDrained, running, lateButReboot, forcing(2, 3)), commit(func(p *protocol.Progress) {
				p.Reason, p.Message, p.PodsForced = v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. 1 pod is left.", 5
			}),
		},
		"too long: reboots although the drain was stopped by a failed write": {
			makeObservation(beingDrained, stopped, lateButReboot, forcing(2, 3)), commit(func(p *protocol.Progress) {
				p.Reason, p.Message, p.PodsForced = v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. 1 pod is left.", 5
			}),
		},
		"too long: given up, with the pods that were in the way when the drain was stopped": {
			makeObservation(beingDrained, stopped, late),
			aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. 1 pod is left.", 1),
		},
		"a drain that was stopped for nothing runs again":    {makeObservation(beingDrained, stopped), RunDrain{}},
		"pods came back: they are evicted again":             {makeObservation(beingDrained, back(0, "")), EvictLeft{}},
		"the drain was done a while ago: pods may have come": {makeObservation(beingDrained, drainIs(Drain{State: DrainDone, DoneAt: now.Add(-leftAfter)})), EvictLeft{}},
		"pods came back, and may go":                         {makeObservation(beingDrained, back(9*time.Second, "")), commit(as)},
		"pods came back, and could go a while ago":           {makeObservation(beingDrained, back(leftLasts, "")), EvictLeft{}},
		"pods came back, and a budget refuses":               {makeObservation(beingDrained, back(time.Second, "a/b (why).")), Wait{now.Add(14 * time.Second)}},
		"pods came back, and a budget has refused":           {makeObservation(beingDrained, back(heldUpRetry, "a/b (why).")), EvictLeft{}},
		"pods came back, and a budget refuses for too long": {
			makeObservation(beingDrained, back(time.Second, "a/b (why)."), late), aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. a/b (why).", 1),
		},
		"pods came back, a budget refuses for too long: reboots with onTimeout Reboot": {
			makeObservation(beingDrained, back(time.Second, "a/b (why)."), lateButReboot), commit(func(p *protocol.Progress) {
				p.Reason, p.Message = v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. a/b (why)."
			}),
		},
		"pods came back, and the host is held up: they are not evicted": {
			makeObservation(beingDrained, back(0, ""), inhibited), Wait{now.Add(heldUpRetry)},
		},
		"pods came back, and it is unknown which of them stay by a rule": {makeObservation(beingDrained, back(0, ""), noPolicy), commit(as)},
		"pods that were deleted are counted": {
			makeObservation(beingDrained, done, forcing(2, 0)), commit(func(p *protocol.Progress) { p.PodsForced = 2 }),
		},
		"remaining pods are not evicted if the attempt is given up": {
			makeObservation(beingDrained, running, late, forcing(2, 3)), forcedAbort(2, "The drain took longer than 5m0s. 1 pod is left."),
		},
		"remaining pods are not evicted while the host is held up": {
			makeObservation(beingDrained, running, lateButReboot, inhibited, forcing(0, 3)),
			aborts(v1alpha1.ReasonInhibited, "A shutdown is blocked by x.", 1),
		},
		"too long because the drain fails: never reboots (behaviour 40)": {
			makeObservation(beingDrained, failedOnce, lateButReboot),
			aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. No right.", 1),
		},
		"too long, and remaining pods are unknown: never reboots": {
			makeObservation(beingDrained, lateButReboot),
			aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s.", 1),
		},
		"too long, and the pods could never be read: never reboots, and the cause is reported": {
			makeObservation(beingDrained, lateButReboot, drainIs(Drain{State: DrainRunning, Message: "The node's pods could not be read: too busy."})),
			aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. The node's pods could not be read: too busy.", 1),
		},
		"too long, and the stopped drain could never read the pods: never reboots": {
			makeObservation(beingDrained, lateButReboot, drainIs(Drain{State: DrainStopped, Message: "The node's pods have not been read yet."})),
			aborts(v1alpha1.ReasonDrainTimedOut, "The drain took longer than 5m0s. The node's pods have not been read yet.", 1),
		},
		"undrainable: given up at once (behaviour 39)": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainUndrainable, Message: "a/b is bare."}), lateButReboot),
			aborts(v1alpha1.ReasonUndrainablePod, "a/b is bare.", 1),
		},

		"the lead time passes before the first eviction": {makeObservation(beingDrained, lead(7*time.Minute)), Wait{begun.Add(7 * time.Minute)}},
		"the rest of the lead time passes if another process began it": {
			makeObservation(beingDrained, lead(7*time.Minute), begunAt(-6*time.Minute)), Wait{now.Add(time.Minute)},
		},
		"the drain runs after the lead time": {makeObservation(beingDrained, lead(5*time.Minute)), RunDrain{Settings{Drain: v1alpha1.Drain{LeadTime: &v1alpha1.Duration{Duration: 5 * time.Minute}}}}},
		"no lead time, and the host's clock was set back: the drain is run": {
			makeObservation(beingDrained, func(o *Observation) { o.Now = begun.Add(-time.Minute) }), RunDrain{},
		},
		"the time-out counts from the end of the lead time": {
			makeObservation(beingDrained, running, late, lead(time.Minute)), Wait{begun.Add(6 * time.Minute)},
		},
		"cancelled in the lead time: given up": {
			makeObservation(beingDrained, lead(time.Hour), granted(1, cancelled)),
			aborts(v1alpha1.ReasonCancelled, "The manager cancelled the grant.", 0),
		},
		"uncordoned in the lead time: given up": {
			makeObservation(beingDrained, lead(time.Hour), func(o *Observation) { o.Unschedulable = false }),
			aborts(v1alpha1.ReasonUncordoned, "Somebody uncordoned the node while it was being drained.", 1),
		},

		"inhibited: waits (behaviour 46)": {makeObservation(beingDrained, done, inhibited), Wait{now.Add(15 * time.Second)}},
		"inhibited: waits no longer than the drain may take": {
			makeObservation(beingDrained, done, inhibited, settings(5*time.Minute+time.Second, "", "")), Wait{now.Add(time.Second)},
		},
		"inhibited: given up in the end": {
			makeObservation(beingDrained, done, inhibited, late),
			aborts(v1alpha1.ReasonInhibited, "A shutdown is blocked by x.", 1),
		},
		"inhibited: given up in the end even with onTimeout Reboot": {
			makeObservation(beingDrained, running, inhibited, lateButReboot),
			aborts(v1alpha1.ReasonInhibited, "A shutdown is blocked by x.", 1),
		},
		"inhibited: ignored": {
			makeObservation(beingDrained, done, inhibited, settings(time.Hour, "", v1alpha1.ObstacleIgnore)), commit(as),
		},
		"people are logged in: waits":                                   {makeObservation(beingDrained, done, loggedIn), Wait{now.Add(15 * time.Second)}},
		"people are logged in: waits for ten minutes":                   {makeObservation(beingDrained, drainedAgo(10*time.Minute-1), loggedIn), Wait{now.Add(15 * time.Second)}},
		"people are logged in: reboots after ten minutes":               {makeObservation(beingDrained, drainedAgo(10*time.Minute), loggedIn, asked), commit(as)},
		"people are logged in: waits no longer than the drain may take": {makeObservation(beingDrained, done, loggedIn, late), commit(as)},
		"people are logged in, and inhibited: given up":                 {makeObservation(beingDrained, done, loggedIn, inhibited, late), aborts(v1alpha1.ReasonInhibited, "A shutdown is blocked by x.", 1)},
		"another coordinator: waits (behaviour 57)":                     {makeObservation(beingDrained, done, rivalled), Wait{now.Add(15 * time.Second)}},
		"another coordinator: given up in the end": {
			makeObservation(beingDrained, done, rivalled, late),
			aborts(v1alpha1.ReasonCoordinatorConflict, "locksmithd is active.", 1),
		},
		"another coordinator: ignored": {makeObservation(beingDrained, done, rivalled, ignoring), commit(as)},
		"another coordinator ignored, and inhibited": {
			makeObservation(beingDrained, done, rivalled, inhibited, late, ignoring),
			aborts(v1alpha1.ReasonInhibited, "A shutdown is blocked by x.", 1),
		},
		"inhibitors ignored, and another coordinator": {
			makeObservation(beingDrained, done, rivalled, inhibited, settings(5*time.Minute, "", v1alpha1.ObstacleIgnore)),
			aborts(v1alpha1.ReasonCoordinatorConflict, "locksmithd is active.", 1),
		},
		"coordinators are unknown: waits": {makeObservation(beingDrained, done, unseen), Wait{now.Add(15 * time.Second)}},
		"inhibitors are unknown: waits":   {makeObservation(beingDrained, done, unasked), Wait{now.Add(15 * time.Second)}},

		"cancelled: given up": {
			makeObservation(beingDrained, done, granted(1, cancelled)),
			aborts(v1alpha1.ReasonCancelled, "The manager cancelled the grant.", 0),
		},
		"finished by mistake: given up": {
			makeObservation(beingDrained, done, granted(1, finished)),
			aborts(v1alpha1.ReasonCancelled, "The manager cancelled the grant.", 0),
		},
		"replaced: given up": {
			makeObservation(beingDrained, done, granted(2, active)),
			aborts(v1alpha1.ReasonCancelled, "The grant was replaced by another one.", 0),
		},
		"the grant is gone: given up": {
			makeObservation(beingDrained, done, func(o *Observation) { o.Record.Grant = nil }),
			aborts(v1alpha1.ReasonCancelled, "The grant was removed.", 0),
		},
		"the grant is unreadable: given up": {
			makeObservation(beingDrained, done, func(o *Observation) { o.Record.Grant, o.Record.GrantErr = nil, errUnreadable }),
			aborts(v1alpha1.ReasonRecordUnreadable, "annotation x: unreadable", 1),
		},
		"uncordoned: given up": {
			makeObservation(beingDrained, done, func(o *Observation) { o.Unschedulable = false }),
			aborts(v1alpha1.ReasonUncordoned, "Somebody uncordoned the node while it was being drained.", 1),
		},
		"rebooted by somebody else: given up": {
			makeObservation(beingDrained, done, func(o *Observation) { o.Record.Progress.BootID = otherBoot }),
			func() Step {
				s := aborts(v1alpha1.ReasonCancelled, "The host was rebooted by somebody else while it was being drained.", 0)
				s.Progress.BootID = otherBoot
				return s
			}(),
		},
	}.each(t, Next)
}

// A FleetLock client gets half of reboot.timeout to reboot the host by itself. An agent that has
// started since then knows the client from the record of the engines.
func TestNext_RebootingByAFleetLockClient_Behaviour65(t *testing.T) {
	zincati := func(o *Observation) {
		o.Engines = []engine.Report{{Engine: "rpm-ostree", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Client: "Zincati"}}
	}
	recorded := func(bootID string) func(*Observation) {
		return func(o *Observation) {
			o.Engines = nil
			o.Before = &protocol.Engines{BootID: bootID, Reported: []protocol.EngineRecord{{Name: "rpm-ostree", Asks: true, Client: "Zincati"}}}
		}
	}
	passed := func(d time.Duration) func(*Observation) {
		return func(o *Observation) { o.Record.Progress.At = metav1.NewTime(now.Add(-d)) }
	}
	timeout := func(d time.Duration) func(*Observation) {
		return func(o *Observation) {
			o.Policy.Reboot.Timeout = &v1alpha1.Duration{Duration: d}
			o.LastPolicy = o.Policy
		}
	}
	finalize := CallReboot{Inhibitors: v1alpha1.ObstacleBlock, Finalize: true}
	cases[Step]{
		"is waited for":                           {makeObservation(goingDown, zincati, passed(time.Minute)), Wait{now.Add(14 * time.Minute)}},
		"is waited for by a process that starts":  {makeObservation(goingDown, recorded(boot), passed(time.Minute)), Wait{now.Add(14 * time.Minute)}},
		"is not, by the record of another boot":   {makeObservation(goingDown, recorded(otherBoot), passed(time.Minute)), CallReboot{Inhibitors: v1alpha1.ObstacleBlock}},
		"by reboot.timeout of the policy":         {makeObservation(goingDown, zincati, passed(time.Minute), timeout(4*time.Minute)), Wait{now.Add(time.Minute)}},
		"has not rebooted in time":                {makeObservation(goingDown, zincati, passed(15*time.Minute)), finalize},
		"by a clock that was set back":            {makeObservation(goingDown, zincati, passed(-time.Hour), func(o *Observation) { o.SeenAt = now.Add(-15 * time.Minute) }), finalize},
		"refused: is asked again later":           {makeObservation(goingDown, zincati, passed(time.Hour), called(Call{Refusals: 1, RefusedAt: now})), Wait{now.Add(5 * time.Second)}},
		"of another host is waited for":           {makeObservation(goingDown, asking(boot, 0), passed(time.Minute)), Wait{now.Add(14 * time.Minute)}},
		"of another host has nothing to finalize": {makeObservation(goingDown, asking(boot, 0), passed(15*time.Minute)), CallReboot{Inhibitors: v1alpha1.ObstacleBlock}},
		"of another host has not asked again":     {makeObservation(goingDown, asking(boot, time.Hour), passed(time.Minute)), CallReboot{Inhibitors: v1alpha1.ObstacleBlock}},
		"has finalized: the agent follows":        {makeObservation(goingDown, passed(time.Minute)), CallReboot{Inhibitors: v1alpha1.ObstacleBlock}},
	}.each(t, Next)

	for want, who := range map[string]func(*Observation){
		"Zincati finalizes the update and reboots the host, up to ten minutes later if users are logged in. If it has not by ": zincati,
		"FleetLock client n1 reboots the host. If it has not by ":                                                              asking(boot, 0),
	} {
		conditions := maintenance(makeObservation(goingDown, who, passed(time.Minute)))
		if got := conditions[len(conditions)-1]; !strings.HasPrefix(got.Message, want) || got.Reason != string(v1alpha1.ReasonRebooting) {
			t.Errorf("%+v", got)
		}
	}
}

// A request ends by itself, and the agent looks then.
func TestNodeStatusOf_LooksAgainWhenAFleetLockRequestEnds(t *testing.T) {
	before := makeObservation(asking(boot, time.Hour-time.Second))
	if got := NodeStatusOf(before).Again; !got.Equal(now.Add(time.Second)) {
		t.Errorf("looks again at %s", got)
	}
	if got := NodeStatusOf(makeObservation(asking(boot, time.Hour))).Again; !got.IsZero() {
		t.Errorf("looks again at %s", got)
	}
}

func TestNext_UnreadableProgress(t *testing.T) {
	unreadable := func(o *Observation) { o.Record.Progress, o.Record.ProgressErr = nil, errUnreadable }
	committed := with(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, "")
	repaired := func(failures int32) Step {
		return RepairRecord{protocol.Progress{
			Seq: 1, Phase: abortedPhase, BootID: boot, Reason: v1alpha1.ReasonRecordUnreadable,
			Message:  "annotation x: unreadable. If the node is cordoned, the cordon was left alone.",
			At:       metav1.NewTime(now),
			Failures: failures,
		}}
	}
	cases[Step]{
		"is repaired without a grant, with the lowest number, so that it uses up no grant of a policy": {makeObservation(unreadable), repaired(0)},
		"is left without a grant past the point of no return":                                          {makeObservation(committed, unreadable), Idle{}},
		"is left without a grant once logind was called":                                               {makeObservation(unreadable, func(o *Observation) { o.Call.Refusals = 1 }), Idle{}},
		"uses up the grant": {makeObservation(granted(1, active), unreadable), repaired(1)},
		"uses up the grant during another program's maintenance": {makeObservation(granted(1, active), theirs, unreadable), repaired(1)},
		"does not count as a failure of a grant that is over":    {makeObservation(granted(1, finished), unreadable), repaired(0)},
		"is left past the point of no return":                    {makeObservation(granted(1, active), committed, unreadable), Idle{}},
		"is left once logind was called":                         {makeObservation(granted(1, active), unreadable, func(o *Observation) { o.Call.Refusals = 1 }), Idle{}},
		"is repaired after the boot that made it harmless": {
			makeObservation(func(o *Observation) { o.Record.Grant = makeGrant(1, active, otherBoot) }, committed, unreadable), repaired(1),
		},
	}.each(t, Next)
}

func TestAbortOnlyEndsADrain(t *testing.T) {
	if diff := cmp.Diff(Step(Idle{}), abort(makeObservation(goingDown), v1alpha1.ReasonCancelled, "", false)); diff != "" {
		t.Errorf("abort (-want +got):\n%s", diff)
	}
}

func aborts(reason v1alpha1.Reason, message string, failures int32) AbortDrain {
	return abortAt(now, reason, message, failures)
}

func forcedAbort(pods int32, message string) AbortDrain {
	a := aborts(v1alpha1.ReasonDrainTimedOut, message, 1)
	a.Progress.PodsForced = pods
	return a
}

// A record accepts any number, so that the manager can read it.
func TestForced(t *testing.T) {
	for pods, want := range map[int]int32{-1: 0, 0: 0, 7: 7, math.MaxInt32: math.MaxInt32, math.MaxInt32 + 1: math.MaxInt32} {
		if got := forced(pods); got != want {
			t.Errorf("forced(%d) = %d, want %d", pods, got, want)
		}
	}
}

func abortAt(t time.Time, reason v1alpha1.Reason, message string, failures int32) AbortDrain {
	p := makeProgress(1, abortedPhase, boot)
	p.At, p.Cordoned, p.Reason, p.Message, p.Failures = metav1.NewTime(t), false, reason, message, failures
	return AbortDrain{Progress: *p}
}
