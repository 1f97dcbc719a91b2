package simulation

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// drawing draws faults, in any order.
type drawing struct {
	random *process.Random
	// within is how long things go wrong.
	within time.Duration
	all    []Fault
}

// drawFaults fills the time in which things go wrong: needs every few days, and what else may happen.
func drawFaults(d *process.Random, s *Script) []Fault {
	drawn, nodes, policies := drawing{random: d, within: s.Faulty}, len(s.Nodes), len(s.Policies)
	for i := range s.Nodes {
		for at := d.Between(0, 3*day); at < s.Faulty; at += d.Between(2*day, 10*day) {
			drawn.add(Fault{At: at, What: StageUpdate, Target: i})
		}
	}
	drawn.some(CordonNode, 0.3, nodes, 0, 0)
	drawn.some(UncordonNode, 0.4, nodes, 0, 0)
	drawn.some(PauseNode, 0.1, nodes, 0, 0)
	drawn.some(ResumeNode, 0.1, nodes, 0, 0)
	drawn.some(SetLimit, 0.1, policies, 0, 0)
	drawn.some(PausePolicy, 0.1, policies, time.Hour, day)
	drawn.some(ResumePolicy, 0.1, policies, 0, 0)
	drawn.some(DryRun, 0.1, policies, 0, 0)
	drawn.some(Enforce, 0.2, policies, 0, 0)
	drawn.some(EndHalt, 1, policies, 0, 0)
	drawn.some(DeletePolicy, 0.1, policies, 0, 4*time.Hour)
	drawn.some(DeleteBusyPolicy, 0.1, policies, 0, 4*time.Hour)
	drawn.some(WipeStatus, 0.1, policies, 0, 0)
	drawn.some(WipeBusyStatus, 0.3, policies, 0, 20*time.Minute)
	drawn.ofNodes(1, nodes)
	drawn.ofManagers()
	return drawn.sorted()
}

// ofNodes draws what strikes nodes and their agents, times as often as it does in a small cluster.
func (all *drawing) ofNodes(times float64, nodes int) {
	all.some(RequestReboot, 0.1*times, nodes, 0, 0)
	all.some(Recordon, 0.5*times, nodes, 0, 2*time.Second)
	all.some(Relabel, 0.2*times, nodes, 0, 0)
	all.some(LosePower, 0.2*times, nodes, time.Minute, 20*time.Minute)
	all.some(LosePower, 0.1*times, nodes, day, 4*day)
	all.some(KillAgent, 0.5*times, nodes, 0, 0)
	all.some(DeleteNode, 0.15*times, nodes, 0, 6*time.Hour)
	all.some(DeleteBusy, 0.15*times, nodes, 0, 20*time.Minute)
	all.some(JumpClock, 0.3*times, nodes, -time.Hour, time.Hour)
	all.some(FreezeAgent, 0.3*times, nodes, 10*time.Second, 10*time.Minute)
}

// ofManagers draws what strikes managers and the API server.
func (all *drawing) ofManagers() {
	all.some(KillManager, 0.5, managers, 0, 0)
	all.some(FreezeManager, 1, managers, 5*time.Second, 70*time.Second)
	all.some(FreezeManager, 0.3, managers, time.Minute, 2*time.Hour)
	all.some(Outage, 0.2, 1, 5*time.Second, 20*time.Minute)
	all.some(Compact, 1, 1, 0, 0)
}

func (all *drawing) add(d ...Fault) { all.all = append(all.all, d...) }

// some draws faults of a kind, so many a day.
func (all *drawing) some(what What, perDay float64, targets int, least, most time.Duration) {
	d := all.random
	for range all.times(perDay) {
		all.add(Fault{At: d.Between(0, all.within), What: what, Target: d.Below(targets), For: d.Between(least, most), Number: 1 + d.Below(5)})
	}
}

// pairs draws faults that are undone, within a day.
func (all *drawing) pairs(what, undo What, perDay float64, targets int) {
	d := all.random
	for range all.times(perDay) {
		at, target := d.Between(0, all.within), d.Below(targets)
		all.add(Fault{At: at, What: what, Target: target}, Fault{At: at + d.Between(time.Minute, day), What: undo, Target: target})
	}
}

func (all *drawing) times(perDay float64) int {
	return int(math.Floor(perDay*all.within.Hours()/day.Hours())) + all.random.Below(2)
}

// sorted are the faults in the order of their times, as far as there is time for them.
func (all *drawing) sorted() []Fault {
	late := func(d Fault) bool { return d.At >= all.within }
	return slices.SortedStableFunc(slices.Values(slices.DeleteFunc(all.all, late)), func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}
