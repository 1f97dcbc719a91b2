// Package schedule draws schedules of faults. A schedule depends only on its seed, and the package
// is pure.
package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Nodes is the number of machines in a schedule.
const Nodes = 20

// Schedule describes everything that happens in one run apart from what the operator does.
type Schedule struct {
	// Seed is the seed that the schedule was drawn from.
	Seed uint64
	// Limit is spec.concurrency.maxUnavailable at the start.
	Limit int
	// Pods is the number of pods. A PodDisruptionBudget keeps MinAvailable of them.
	Pods, MinAvailable int
	// Needs lists the machines, by number, that need a reboot at the start.
	Needs []int
	// Windows holds the windows of each policy: one daily window, or none.
	Windows []v1alpha1.Window
	// Sharing adds a second policy, which governs every other machine and shares the limit of the
	// first.
	Sharing bool
	// Begins is the time on all clocks at the start, or zero for the real time.
	Begins time.Time
	// Steps lists the faults in the order in which they strike.
	Steps []Step
}

// Step is one fault.
type Step struct {
	// Kind is the kind of fault.
	Kind Kind
	// After is the number of drains begun and reboots ended to wait for. The fault strikes anyway
	// if nothing progresses for a while.
	After int
	// Delay is the wait after that.
	Delay time.Duration
	// Target selects the target, modulo the number of candidates.
	Target int
	// For is the duration of the fault.
	For time.Duration
	// Rate is the share of requests that fail, for faults of requests.
	Rate float64
}

// Of draws the schedule of a seed. Kinds of faults take turns, so consecutive seeds cover all of
// them.
func Of(seed uint64) Schedule {
	r := rand.New(rand.NewPCG(seed, 0x6368616f73))
	kinds := Kinds()
	turn := kinds[seed%uint64(len(kinds))]
	s := Schedule{Seed: seed, Limit: 1 + r.IntN(4), Pods: 8 + r.IntN(6)}
	s.MinAvailable = s.Pods - 1 - r.IntN(2)
	s.Needs = r.Perm(Nodes)[:6+r.IntN(5)]
	slices.Sort(s.Needs)
	s.drawWindow(r, turn)
	steps := 3 + r.IntN(4)
	index := r.IntN(steps)
	for i := range steps {
		kind := kinds[r.IntN(len(kinds))]
		for rare[kind] {
			kind = kinds[r.IntN(len(kinds))]
		}
		if i == index {
			kind = turn
		}
		s.Steps = append(s.Steps, drawStep(r, kind, len(s.Needs)))
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return a.After - b.After })
	s.Sharing = r.IntN(4) == 0 // drawn last, so that the rest of the schedule does not depend on it
	return s
}

func drawStep(r *rand.Rand, kind Kind, needs int) Step {
	step := Step{
		Kind: kind, After: r.IntN(2*needs - 2), Delay: time.Duration(r.IntN(200)) * time.Millisecond, Target: r.IntN(1 << 16),
		For: time.Duration(100+r.IntN(900)) * time.Millisecond,
	}
	switch kind {
	case ManagerStopped:
		step.For += 2200 * time.Millisecond
	case ManagerCutOff:
		step.For *= 3
	case Conflict, AnswerLost, ServerError:
		step.Rate = 0.1 + 0.5*r.Float64()
	case TooMany:
		step.Rate = 0.1 + 0.2*r.Float64()
	default:
	}
	return step
}

// transitions lists nights on which clocks change, each with a daily window around the change. Some
// windows begin late, some begin twice on the wall clock, and one spans the change.
var transitions = []struct {
	start, zone string
	duration    time.Duration
	begins      time.Time
}{
	{"02:30", "Europe/Berlin", time.Hour, time.Date(2026, 3, 29, 0, 50, 0, 0, time.UTC)},
	{"02:30", "Europe/Berlin", 90 * time.Minute, time.Date(2026, 10, 25, 0, 10, 0, 0, time.UTC)},
	{"01:30", "Europe/Berlin", 2 * time.Hour, time.Date(2026, 10, 25, 0, 40, 0, 0, time.UTC)},
	{"01:45", "America/New_York", 30 * time.Minute, time.Date(2026, 11, 1, 5, 40, 0, 0, time.UTC)},
	{"02:15", "America/New_York", 45 * time.Minute, time.Date(2026, 3, 8, 6, 50, 0, 0, time.UTC)},
	{"01:50", "Australia/Lord_Howe", 20 * time.Minute, time.Date(2026, 4, 4, 14, 40, 0, 0, time.UTC)},
}

// drawWindow adds a window if clocks change or jump in this schedule, and to one in four of the
// others.
func (s *Schedule) drawWindow(r *rand.Rand, turn Kind) {
	t := transitions[r.IntN(len(transitions))]
	if turn != ClocksChanged && turn != ClockJumped && r.IntN(4) > 0 {
		return
	}
	s.Windows, s.Begins = []v1alpha1.Window{{Name: "night", Start: t.start, Duration: v1alpha1.Duration{Duration: t.duration}, TimeZone: t.zone}}, t.begins
}

// String describes the schedule in the report of a failure.
func (s Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d of %d nodes need a reboot, at most %d at once; %d pods, at least %d available", s.Seed, len(s.Needs),
		Nodes, s.Limit, s.Pods, s.MinAvailable)
	for _, w := range s.Windows {
		fmt.Fprintf(&b, "; window %s for %s in %s, from %s on", w.Start, w.Duration.Duration, w.TimeZone, s.Begins.Format(time.RFC3339))
	}
	if s.Sharing {
		b.WriteString("; two policies share the limit")
	}
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "\n  after %2d begun or back, %3d ms: %s, whom %d, for %s", step.After, step.Delay.Milliseconds(), step.Kind, step.Target, step.For)
		if step.Rate > 0 {
			fmt.Fprintf(&b, ", %2.0f %% of requests", 100*step.Rate)
		}
	}
	return b.String()
}

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	ManagerKilled       Kind = "manager killed"                   // SIGKILL; another process replaces it
	ManagerStopped      Kind = "manager stopped beyond its lease" // SIGSTOP for longer than its Lease, then SIGCONT
	ManagerCutOff       Kind = "manager cut off"                  // all its requests are dropped
	AgentKilled         Kind = "agent killed"                     // at any point of its work; another one replaces it
	AgentStopped        Kind = "agent stopped"                    // paused at its next request, answer or host call
	ServerRestarted     Kind = "API server restarted"             // killed and started again
	EtcdStopped         Kind = "etcd stopped"                     // SIGSTOP, then SIGCONT
	EtcdRestarted       Kind = "etcd restarted"                   // killed and started again
	WatchesDropped      Kind = "watches dropped"                  // open watches of managers and agents are cut
	Conflict            Kind = "409"                              // on writes, which have no effect
	TooMany             Kind = "429"                              // with Retry-After
	ServerError         Kind = "500"
	AnswerLost          Kind = "time-out after success"     // the write has an effect, but its answer is lost
	ClockJumped         Kind = "clock jumped an hour"       // of a manager or an agent, forward or back
	ClocksChanged       Kind = "summer time began or ended" // on all clocks, in the time zone of the window
	NodeDeleted         Kind = "node deleted"               // its machine is gone for good
	NodeRegisteredAgain Kind = "node registered again"      // deleted, and its kubelet registers it again
	NodeRenamed         Kind = "node renamed away"          // deleted, and its machine registers under another name
	PolicyEdited        Kind = "policy edited"              // its limit changes
	PolicyPaused        Kind = "policy paused"              // for a while
	PolicyRecreated     Kind = "policy re-created"          // deleted with its finalizer and ledger, then created again
	StatusWiped         Kind = "status wiped"               // everything that the API server allows to remove
	AdminCordons        Kind = "node cordoned by an administrator"

	// The following faults go on until the operator has coped with them. No schedule ends before.

	BudgetOpensLate  Kind = "budget closed until its node is cordoned" // then its controller opens it
	BudgetNeverOpens Kind = "budget that never opens"                  // until the node was given up
	EvictionDenied   Kind = "eviction denied by a webhook"             // which moves the pod instead
	PodsComeBack     Kind = "pods come back to the cordoned node"      // until the node was held, or went down
	MachineRestored  Kind = "machine restored to a snapshot"           // of the boot before its last reboot
	BootIDStays      Kind = "boot ID that stays over a reboot"
	NeedReturns      Kind = "need that returns after each boot" // until no more reboot is granted for it
	NodesRewritten   Kind = "nodes written by another program"  // each 18 times a second, until all is done
	AnnotationsFull  Kind = "annotations filled by another program"
	WriteStripped    Kind = "grant stripped by a mutating policy" // until the slot was given back
)

// Kinds returns all kinds of faults, in the order used in reports.
func Kinds() []Kind {
	return []Kind{
		ManagerKilled, ManagerStopped, ManagerCutOff, AgentKilled, AgentStopped, ServerRestarted, EtcdStopped, EtcdRestarted,
		WatchesDropped, Conflict, TooMany, ServerError, AnswerLost, ClockJumped, ClocksChanged, NodeDeleted, NodeRegisteredAgain,
		NodeRenamed, PolicyEdited, PolicyPaused, PolicyRecreated, StatusWiped, AdminCordons, BudgetOpensLate, BudgetNeverOpens,
		EvictionDenied, PodsComeBack, MachineRestored, BootIDStays, NeedReturns, NodesRewritten, AnnotationsFull, WriteStripped,
	}
}

// rare lists kinds that cost several CPU seconds, or make a schedule many seconds longer. A schedule
// has them only when it is their turn.
var rare = map[Kind]bool{
	ServerRestarted: true, EtcdRestarted: true, ClocksChanged: true, BudgetNeverOpens: true, PodsComeBack: true, NeedReturns: true,
	NodesRewritten: true, WriteStripped: true,
}
