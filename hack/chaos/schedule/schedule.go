// Package schedule draws schedules of faults: each is a function of its seed. It is pure.
package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Nodes is how many machines a schedule has.
const Nodes = 20

// Schedule is what happens in one run, apart from what the operator does.
type Schedule struct {
	// Seed is what it was drawn from.
	Seed uint64
	// Limit is spec.concurrency.maxUnavailable at the start.
	Limit int
	// Pods is how many pods there are, of which a PodDisruptionBudget keeps MinAvailable.
	Pods, MinAvailable int
	// Needs are the machines, by number, that need a reboot at the start.
	Needs []int
	// Windows are those of each policy: a daily one, or none.
	Windows []v1alpha1.Window
	// Sharing: a second policy governs every other machine, and shares the limit of the first one.
	Sharing bool
	// Begins is the time on all clocks at the start. Zero: the real time.
	Begins time.Time
	// Steps are the faults, in the order in which they strike.
	Steps []Step
}

// Step is one fault.
type Step struct {
	// Kind is what strikes.
	Kind Kind
	// After is how many drains must have begun or reboots ended; it strikes all the same when nothing goes on for a while.
	After int
	// Delay is how long after that.
	Delay time.Duration
	// Target chooses whom: the rest of its division by how many there are.
	Target int
	// For is how long it lasts.
	For time.Duration
	// Rate is which part of all requests is hit, for faults of requests.
	Rate float64
}

// Of draws the schedule of a seed. Each kind of fault has its turn: seeds in a row as many as there are kinds have them all.
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
	at := r.IntN(steps)
	for i := range steps {
		kind := kinds[r.IntN(len(kinds))]
		for rare[kind] {
			kind = kinds[r.IntN(len(kinds))]
		}
		if i == at {
			kind = turn
		}
		s.Steps = append(s.Steps, drawStep(r, kind, len(s.Needs)))
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return a.After - b.After })
	s.Sharing = r.IntN(4) == 0 // drawn last: without it, seeds are the same schedules
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

// transitions are nights on which clocks change, each with a daily window that is open around the change. Some begin late, some begin
// twice by the clock, and one goes on over the change.
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

// drawWindow gives a schedule a window where clocks change or jump in it, and else to one in four.
func (s *Schedule) drawWindow(r *rand.Rand, turn Kind) {
	t := transitions[r.IntN(len(transitions))]
	if turn != ClocksChanged && turn != ClockJumped && r.IntN(4) > 0 {
		return
	}
	s.Windows, s.Begins = []v1alpha1.Window{{Name: "night", Start: t.start, Duration: metav1.Duration{Duration: t.duration}, TimeZone: t.zone}}, t.begins
}

// String is the schedule as a failure reports it.
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
	ManagerKilled      Kind = "manager killed"                   // SIGKILL; another process replaces it
	ManagerStopped     Kind = "manager stopped beyond its lease" // SIGSTOP for longer than its Lease, then SIGCONT
	ManagerCutOff      Kind = "manager cut off"                  // each of its requests is dropped
	AgentKilled        Kind = "agent killed"                     // in the middle of whatever it does; another replaces it
	AgentStopped       Kind = "agent stopped"                    // held at its next request, answer or call of its host
	ServerRestarted    Kind = "API server restarted"             // killed and started again
	EtcdStopped        Kind = "etcd stopped"                     // SIGSTOP, then SIGCONT
	EtcdRestarted      Kind = "etcd restarted"                   // killed and started again
	WatchesDropped     Kind = "watches dropped"                  // those of managers and agents, in the middle
	Conflict           Kind = "409"                              // to writes, which are not carried out
	TooMany            Kind = "429"                              // with Retry-After
	ServerError        Kind = "500"
	AnswerLost         Kind = "time-out after success"     // a write is carried out, and the answer lost
	ClockJumped        Kind = "clock jumped an hour"       // that of a manager or an agent, on or back
	ClocksChanged      Kind = "summer time began or ended" // all clocks pass the change, in the window's zone
	NodeDeleted        Kind = "node deleted"               // and its machine is gone for good
	NodeRegisteredAnew Kind = "node registered anew"       // deleted, and its kubelet registers it again
	NodeRenamed        Kind = "node renamed away"          // deleted, and its machine comes back under another name
	PolicyEdited       Kind = "policy edited"              // another limit
	PolicyPaused       Kind = "policy paused"              // and the end of the pause
	PolicyRecreated    Kind = "policy re-created"          // deleted, finalizer and ledger with it, and created again
	StatusWiped        Kind = "status wiped"               // all of it that the API server lets go
	AdminCordons       Kind = "node cordoned by an administrator"
)

// Kinds are all kinds of faults, in the order of reports.
func Kinds() []Kind {
	return []Kind{
		ManagerKilled, ManagerStopped, ManagerCutOff, AgentKilled, AgentStopped, ServerRestarted, EtcdStopped, EtcdRestarted,
		WatchesDropped, Conflict, TooMany, ServerError, AnswerLost, ClockJumped, ClocksChanged, NodeDeleted, NodeRegisteredAnew,
		NodeRenamed, PolicyEdited, PolicyPaused, PolicyRecreated, StatusWiped, AdminCordons,
	}
}

// rare are kinds that cost a control plane seconds of a core: a schedule has them only where it is their turn.
var rare = map[Kind]bool{ServerRestarted: true, EtcdRestarted: true, ClocksChanged: true}
