package step

import (
	"iter"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestNext_Safety checks the result of Next for every combination of its inputs.
func TestNext_Safety(t *testing.T) {
	counts := map[string]int{}
	for o := range everything() {
		switch s := Next(o).(type) {
		case StartDrain:
			counts["start"]++
			must(t, o, "begins without a grant", o.Record.Grant != nil && o.Record.GrantErr == nil && o.Record.Grant.State == active)
			must(t, o, "begins on a used grant", o.Record.Grant.Seq > o.Record.Last().Seq)
			must(t, o, "begins under a grant that the ledger does not hold", o.Entry != nil && o.Entry.Seq == o.Record.Grant.Seq && o.Entry.WithdrawnAt == nil)
			must(t, o, "begins right after the boot", o.Uptime == 0 || o.Uptime >= 2*time.Minute)
			must(t, o, "begins in another boot", o.Record.Grant.BootID == o.BootID && s.Progress.BootID == o.BootID)
			must(t, o, "begins paused, or on an unreadable record", !o.Paused && o.Record.ProgressErr == nil)
			must(t, o, "begins without knowing how to drain", o.Policy != nil)
			must(t, o, "begins before the engines have confirmed the need", o.Confirmed)
			must(t, o, "begins inhibited", o.Settings().Reboot.Inhibitors == v1alpha1.ObstacleIgnore || o.Inhibitors.Known && o.Inhibitors.Message == "")
			must(t, o, "begins although logind would refuse", o.Inhibitors.Refusal == "")
			must(t, o, "begins although another coordinator is active", o.Settings().Reboot.Coordinators == v1alpha1.ObstacleIgnore || o.Coordinators.Known && o.Coordinators.Message == "")
			must(t, o, "takes an administrator's cordon", !s.Progress.Cordoned || !o.Unschedulable)
			must(t, o, "begins before an engine has reported", o.Engines != nil)
			must(t, o, "begins without a need in this boot", engine.Merge(o.Engines).State == engine.Needed || o.Requested)
			tried := o.Record.Last().Update
			must(t, o, "reboots a third time without effect", tried == nil || tried.VainReboots == 0 || o.Requested)
		case RunDrain:
			counts["drain"]++
			must(t, o, "drains out of phase", o.InPhase(drainingPhase) && permitted(o) && o.Unschedulable)
			must(t, o, "drains in the lead time", o.Settings().Drain.LeadTime == nil || !o.Now.Before(begun.Add(o.Settings().Drain.LeadTime.Duration)) || o.Drain.State == DrainFailed)
			must(t, o, "drains while a drain runs", !slices.Contains([]DrainState{DrainRunning, DrainDone, DrainUndrainable}, o.Drain.State))
		case EvictLeft:
			counts["evict"]++
			must(t, o, "evicts undrained or out of phase", o.Drain.State == DrainDone && o.InPhase(drainingPhase) && permitted(o) && o.policy() != nil)
		case CommitReboot:
			counts["commit"]++
			must(t, o, "commits out of phase", o.InPhase(drainingPhase) && permitted(o) && o.Unschedulable)
			underWay := o.Drain.State == DrainRunning || o.Drain.State == DrainStopped
			regardless := underWay && o.Drain.Listed && late(o) && o.Settings().Drain.OnTimeout == v1alpha1.DrainTimeoutReboot
			must(t, o, "commits undrained", o.Drain.State == DrainDone || regardless)
			must(t, o, "commits though a budget refuses", o.Drain.Refused == "" || o.policy() == nil || late(o) && o.Settings().Drain.OnTimeout == v1alpha1.DrainTimeoutReboot)
			ignored := o.Settings().Reboot.Inhibitors == v1alpha1.ObstacleIgnore
			must(t, o, "commits inhibited", ignored || o.Inhibitors.Known && o.Inhibitors.Message == "")
			must(t, o, "commits although logind would refuse", o.Inhibitors.Refusal == "")
			ignoresOthers := o.Settings().Reboot.Coordinators == v1alpha1.ObstacleIgnore
			must(t, o, "commits although another coordinator is active", ignoresOthers || o.Coordinators.Known && o.Coordinators.Message == "")
			must(t, o, "commits to another boot", s.Progress.Phase == rebootingPhase && s.Progress.BootID == o.BootID)
		case CallReboot:
			counts["call"]++
			must(t, o, "reboots uncommitted", o.Record.ProgressErr == nil && o.InPhase(rebootingPhase))
			must(t, o, "reboots under a grant that is not in force", permitted(o) && o.Record.Grant.BootID == o.BootID)
			must(t, o, "reboots under a grant that the ledger does not hold", o.Entry != nil && o.Entry.Seq == o.Record.Grant.Seq)
			must(t, o, "reboots at once after it was refused", o.Call.Refusals == 0 || o.Call.RefusedAt.Before(now))
		case RecordCall:
			counts["record"]++
			must(t, o, "counts a call that it may not make", permitted(o) && o.InPhase(rebootingPhase) && s.Progress.Recalls == o.Record.Last().Recalls+1)
		case RecordBoot:
			counts["boot"]++
			must(t, o, "records a boot of a host that may be going down", o.InPhase(rebootingPhase) && o.Shutdown == Shutdown{Known: true})
		case AbortDrain:
			counts["abort"]++
			retreats := o.InPhase(rebootingPhase) && o.Shutdown == Shutdown{Known: true}
			must(t, o, "aborts something other than a drain", o.Record.ProgressErr == nil && (o.Record.Last().Phase == drainingPhase || retreats))
			must(t, o, "leaves a cordon to undo", !s.Progress.Cordoned)
		case RepairRecord:
			counts["repair"]++
			must(t, o, "repairs what is sound", o.Record.ProgressErr != nil)
			gone := o.Record.Grant != nil && o.Record.Grant.BootID != o.BootID
			must(t, o, "frees the slot of a host that may go down", gone || !o.isTrue(corev1.NodeMaintenanceInProgress) && o.Call == Call{})
		case Wait:
			counts["wait"]++
			must(t, o, "waits for the past", s.Until.After(o.Now))
		case Idle:
			counts["idle"]++
			must(t, o, "is idle in an attempt", o.Record.ProgressErr != nil || !o.InPhase(drainingPhase) && !o.InPhase(rebootingPhase))
		}
	}
	if len(counts) != 11 {
		t.Errorf("only these steps were seen: %v", counts)
	}
	t.Logf("%v", counts)
}

func must(t *testing.T, o Observation, rule string, holds bool) {
	t.Helper()
	if !holds {
		t.Fatalf("%s: grant %v, progress %v, %+v", rule, o.Record.Grant, o.Record.Progress, o)
	}
}

func permitted(o Observation) bool {
	g := o.Record.Grant
	return o.Record.GrantErr == nil && g != nil && g.State == active && g.Seq == o.Record.Last().Seq
}

func late(o Observation) bool {
	return !o.Now.Before(begun.Add(o.Settings().Drain.LeadTimeOrDefault() + o.Settings().Drain.TimeoutOrDefault()))
}

// everything yields the product of all values that Next distinguishes.
func everything() iter.Seq[Observation] {
	variants := [][]func(*Observation){
		grants(), progresses(), policies(),
		{func(o *Observation) { o.Unschedulable = true }, none},
		{func(o *Observation) { o.Paused = true }, func(o *Observation) { o.Confirmed = false }, unlisted, up(time.Minute, 0), none},
		{
			drainIs(Drain{State: DrainRunning}), drainIs(Drain{State: DrainRunning, Listed: true}), drainIs(Drain{State: DrainDone, DoneAt: now}), drainIs(Drain{State: DrainUndrainable}),
			drainIs(Drain{State: DrainDone, Staying: "x"}), drainIs(Drain{State: DrainDone, Staying: "x", LeftAt: now, Refused: "x"}),
			drainIs(Drain{State: DrainFailed, Failures: 1, FailedAt: now}), drainIs(Drain{State: DrainStopped, Listed: true}), none,
		},
		heldUps(),
		{
			func(o *Observation) { o.Call = Call{AcceptedAt: now} },
			func(o *Observation) { o.Call = Call{AcceptedAt: now.Add(-time.Hour)} },
			func(o *Observation) { o.Call = Call{Refusals: 1, RefusedAt: now} },
			func(o *Observation) { o.Call = Call{Refusals: 1, RefusedAt: now.Add(-time.Hour)} },
			func(o *Observation) { o.Call = Call{Refusals: 100, RefusedAt: now.Add(-time.Hour)} },
			func(o *Observation) { o.Began, o.Uptime = true, time.Hour }, none,
		},
		{with(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, ""), none},
		{stayingUp, none},
	}
	// With -short only every eleventh combination runs. The number of values is never a multiple of
	// 11, so each value is still combined with all others.
	stride := 1
	if testing.Short() {
		stride = 11
	}
	return func(yield func(Observation) bool) { product(makeObservation(staged("")), variants, stride, yield) }
}

// product yields every stride-th combination of one change of each variant. It skips a prefix of
// changes if no chosen combination begins with it.
func product(o Observation, variants [][]func(*Observation), stride int, yield func(Observation) bool) {
	// below is the number of combinations that begin with the same changes of the first variants.
	below := make([]int, len(variants)+1)
	below[len(variants)] = 1
	for level := len(variants) - 1; level >= 0; level-- {
		below[level] = below[level+1] * len(variants[level])
	}
	made := make([]Observation, len(variants)+1)
	made[0] = o
	n := 0
	var combine func(level int) bool
	combine = func(level int) bool {
		if level == len(variants) {
			n++
			return yield(made[level])
		}
		for _, change := range variants[level] {
			if skipped := below[level+1]; n/stride == (n+skipped)/stride {
				n += skipped
				continue
			}
			made[level+1] = made[level]
			change(&made[level+1])
			if !combine(level + 1) {
				return false
			}
		}
		return true
	}
	combine(0)
}

func none(*Observation) {}

// heldUps are the reasons that hold the host up: each alone, all together, and unknown.
func heldUps() []func(*Observation) {
	inhibited := func(o *Observation) { o.Inhibitors.Message = "blocked" }
	rivalled := func(o *Observation) { o.Coordinators.Message = "locksmithd" }
	return []func(*Observation){
		none, inhibited, rivalled,
		func(o *Observation) { inhibited(o); rivalled(o) },
		func(o *Observation) { o.Inhibitors = Inhibitors{} },
		func(o *Observation) { o.Inhibitors.Refusal = "refused" },
		func(o *Observation) { o.Coordinators = Coordinators{} },
	}
}

func grants() []func(*Observation) {
	changes := []func(*Observation){none, func(o *Observation) { o.Record.GrantErr = errUnreadable }}
	for _, state := range []protocol.GrantState{active, cancelled, finished} {
		for _, bootID := range []string{boot, otherBoot} {
			for seq := range int64(3) {
				changes = append(changes, func(o *Observation) { o.shows(makeGrant(seq+1, state, bootID)) })
			}
		}
	}
	return changes
}

func progresses() []func(*Observation) {
	changes := []func(*Observation){none, func(o *Observation) { o.Record.ProgressErr = errUnreadable }}
	for _, phase := range []protocol.Phase{drainingPhase, rebootingPhase, abortedPhase} {
		for _, bootID := range []string{boot, otherBoot} {
			for _, cordoned := range []bool{true, false} {
				changes = append(changes, func(o *Observation) {
					o.Record.Progress = makeProgress(2, phase, bootID)
					o.Record.Progress.Cordoned = cordoned
				})
			}
		}
	}
	tried := func(vain int32, asks ...func(*Observation)) func(*Observation) {
		return func(o *Observation) {
			rolledBack(o)
			o.Record.Progress.Seq, o.Record.Progress.Update.VainReboots = 2, vain
			for _, ask := range asks {
				ask(o)
			}
		}
	}
	return append(changes, tried(0), tried(1), tried(1, survived), tried(1, requesting("x")), unneeded, func(o *Observation) { o.Engines = nil })
}

// unneeded is an engine that requires nothing.
func unneeded(o *Observation) {
	engineReports(engine.Report{Engine: "update-engine", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "Nothing is staged."})(o)
}

func policies() []func(*Observation) {
	changes := []func(*Observation){noPolicy, readLast(time.Second)}
	for _, timeout := range []time.Duration{time.Minute, time.Hour} {
		for _, onTimeout := range []v1alpha1.DrainTimeoutAction{v1alpha1.DrainTimeoutAbort, v1alpha1.DrainTimeoutReboot} {
			for _, reboot := range []v1alpha1.Reboot{
				{},
				{Inhibitors: v1alpha1.ObstacleIgnore},
				{Coordinators: v1alpha1.ObstacleIgnore},
				{Inhibitors: v1alpha1.ObstacleIgnore, Coordinators: v1alpha1.ObstacleIgnore},
			} {
				changes = append(changes, func(o *Observation) {
					o.Policy = &Settings{
						Drain:  v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: timeout}, OnTimeout: onTimeout},
						Reboot: reboot,
					}
				})
			}
		}
	}
	for _, lead := range []time.Duration{time.Minute, time.Hour} {
		changes = append(changes, func(o *Observation) {
			o.Policy = &Settings{Drain: v1alpha1.Drain{
				LeadTime: &v1alpha1.Duration{Duration: lead}, Timeout: &v1alpha1.Duration{Duration: time.Minute}, OnTimeout: v1alpha1.DrainTimeoutReboot,
			}}
		})
	}
	return changes
}
