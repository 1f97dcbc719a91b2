package simulation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	labelPool = "example.com/pool"
	labelZone = "topology.kubernetes.io/zone"
)

// zones have clock changes on different days: one has them in the other half of the year and by
// half an hour, and two have none.
var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}

// Draw returns the script of a seed: a small cluster over several weeks.
func Draw(seed uint64) Script {
	d := process.NewRandom(seed, "script")
	s := Script{
		Seed: seed, Pools: []string{"blue", "green"}, Begins: d.Between(0, 52*week), Faulty: d.Between(week, 3*week),
		Foul:  foul(d),
		Drain: d.Between(10*time.Second, 10*time.Minute), Stuck: pick(d, 0, 0, 0.1, 0.3), Boot: d.Between(30*time.Second, 20*time.Minute), Patience: time.Hour,
	}
	s.drawNodes(d, 5+d.Below(4)*d.Below(4)*d.Below(5))
	s.Policies = drawPolicies(d)
	s.Faults = drawFaults(d, &s)
	return s
}

// drawNodes adds nodes, spread over all pools and three zones.
func (s *Script) drawNodes(d *process.Random, nodes int) {
	for i := range nodes {
		s.Nodes = append(s.Nodes, NodeScript{Name: fmt.Sprintf("n%d", i+1), Labels: map[string]string{
			labelPool: s.Pools[i%len(s.Pools)], labelZone: string(rune('a' + d.Below(3))),
		}})
	}
}

func pick[T any](d *process.Random, from ...T) T { return from[d.Below(len(from))] }

// outrun is the probability that a kubelet's heartbeat comes between a read and its write. It
// applies after the faults, too, and is higher than on real machines.
const outrun = 0.05

// fair holds the conditions when all is well.
var fair = process.Conditions{Latency: 20 * time.Millisecond, Lag: 500 * time.Millisecond, Gap: time.Second, Outrun: outrun}

// foul draws the conditions while things go wrong. In one of four seeds only heartbeats interfere
// with requests.
func foul(d *process.Random) process.Conditions {
	how := pick(d, 0, 0.3, 1, 3)
	return process.Conditions{
		Latency: d.Between(time.Millisecond, 2*time.Second), Lag: d.Between(time.Millisecond, 20*time.Second),
		Refused: 0.03 * how, Lost: 0.02 * how, Late: 0.01 * how, Crash: 0.004 * how, Drop: 0.02 * how, Gap: 3 * time.Minute, Outrun: outrun,
	}
}

// drawPolicies draws one policy for all nodes, and maybe a second one with a higher priority for a
// pool, which may share the limit of the first.
func drawPolicies(d *process.Random) []*v1alpha1.RebootPolicy {
	all := drawPolicy(d, "all")
	if d.Chance(0.5) {
		return []*v1alpha1.RebootPolicy{all}
	}
	blue := drawPolicy(d, "blue")
	blue.Spec.NodeSelector, blue.Spec.Priority = &v1alpha1.LabelSelector{MatchLabels: map[string]string{labelPool: "blue"}}, 10
	if d.Chance(0.5) {
		blue.Spec.Concurrency.Shared = all.Name
	}
	if d.Chance(0.5) && blue.Spec.Shared() != "" {
		blue.Spec.Concurrency.MaxUnavailable = nil
	}
	return []*v1alpha1.RebootPolicy{all, blue}
}

func drawPolicy(d *process.Random, name string) *v1alpha1.RebootPolicy {
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	limit := pick(d, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromInt32(3), intstr.FromString("10%"), intstr.FromString("30%"), intstr.FromString("50%"))
	policy.Spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &limit}
	if d.Chance(0.3) {
		policy.Spec.Concurrency.TopologyKey = labelZone
	}
	policy.Spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{Duration: d.Between(0, 5*time.Minute).Truncate(time.Second)}}
	policy.Spec.MaxFailures = new(int32(1 + d.Below(3)))
	policy.Spec.Drain = &v1alpha1.Drain{
		Timeout:   &v1alpha1.Duration{Duration: d.Between(time.Minute, 30*time.Minute).Truncate(time.Second)},
		OnTimeout: pick(d, v1alpha1.DrainTimeoutAbort, v1alpha1.DrainTimeoutAbort, v1alpha1.DrainTimeoutReboot),
	}
	for i := range pick(d, 0, 2, 4, 6) {
		policy.Spec.Windows = append(policy.Spec.Windows, drawWindow(d, i))
	}
	return policy
}

// drawWindow draws a window that is open on most or all days. Many windows begin when clocks
// change. A policy gets several, because waiting nodes check once a minute what keeps their host
// up, and most of the simulation would be spent on that.
func drawWindow(d *process.Random, i int) v1alpha1.Window {
	w := v1alpha1.Window{
		Name: fmt.Sprintf("w%d", i), TimeZone: pick(d, zones...), Duration: v1alpha1.Duration{Duration: d.Between(20*time.Minute, 5*time.Hour).Truncate(time.Minute)},
		Start: pick(d, "00:00", "01:59", "02:00", "02:15", "02:30", "03:00", "06:00", "09:30", "12:00", "16:00", "19:00", "22:00", "23:59"),
	}
	if d.Chance(0.2) {
		w.Days = []v1alpha1.Day{"Mon", "Wed", "Fri", "Sun"}
	}
	return w
}

// drawing collects faults, in any order.
type drawing struct {
	random *process.Random
	// within is the period in which things go wrong.
	within time.Duration
	all    []Fault
}

// drawFaults draws all faults of a script: a need every few days, and everything else that may
// happen.
func drawFaults(d *process.Random, s *Script) []Fault {
	drawn, nodes, policies := drawing{random: d, within: s.Faulty}, len(s.Nodes), len(s.Policies)
	for i := range s.Nodes {
		for t := d.Between(0, 3*day); t < s.Faulty; t += d.Between(2*day, 10*day) {
			drawn.add(Fault{At: t, What: StageUpdate, Target: i})
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
	drawn.ofNeighbours(1, nodes) // last: without it, seeds are the same scripts
	return drawn.sorted()
}

// ofNodes draws faults of nodes and their agents, at a multiple of the rate of a small cluster.
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

// ofManagers draws faults of managers and the API server.
func (all *drawing) ofManagers() {
	all.some(KillManager, 0.5, managers, 0, 0)
	all.some(FreezeManager, 1, managers, 5*time.Second, 70*time.Second)
	all.some(FreezeManager, 0.3, managers, time.Minute, 2*time.Hour)
	all.some(Outage, 0.2, 1, 5*time.Second, 20*time.Minute)
	all.some(Compact, 1, 1, 0, 0)
}

// ofNeighbours draws odd machines, and what other programs do to Nodes.
func (all *drawing) ofNeighbours(times float64, nodes int) {
	all.some(CloseBudget, 0.3*times, nodes, time.Hour, day)
	all.some(Restore, 0.3*times, nodes, 0, 0)
	all.some(KeepBootID, 0.05*times, nodes, 0, 0)
	all.some(LetNeedReturn, 0.15*times, nodes, 0, 0)
	all.some(FillAnnotations, 0.15*times, nodes, 0, 0)
	all.some(StripGrants, 0.15*times, nodes, time.Hour, day)
}

func (all *drawing) add(d ...Fault) { all.all = append(all.all, d...) }

// some draws faults of one kind, at a rate per day.
func (all *drawing) some(kind What, perDay float64, targets int, least, most time.Duration) {
	d := all.random
	for range all.times(perDay) {
		all.add(Fault{At: d.Between(0, all.within), What: kind, Target: d.Below(targets), For: d.Between(least, most), Number: 1 + d.Below(5)})
	}
}

// pairs draws faults that are undone within a day.
func (all *drawing) pairs(kind, undo What, perDay float64, targets int) {
	d := all.random
	for range all.times(perDay) {
		t, target := d.Between(0, all.within), d.Below(targets)
		all.add(Fault{At: t, What: kind, Target: target}, Fault{At: t + d.Between(time.Minute, day), What: undo, Target: target})
	}
}

func (all *drawing) times(perDay float64) int {
	return int(math.Floor(perDay*all.within.Hours()/day.Hours())) + all.random.Below(2)
}

// sorted returns the faults in order of time, without those that come too late.
func (all *drawing) sorted() []Fault {
	late := func(d Fault) bool { return d.At >= all.within }
	return slices.SortedStableFunc(slices.Values(slices.DeleteFunc(all.all, late)), func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}

// largePools is the number of pools in a large cluster. Each has its own policy.
const largePools = 5

// DrawLarge returns the script of a large cluster over several weeks: pools of hundreds of nodes
// that are updated in waves, as real fleets are. Faults strike a node about a fifth as often as in
// a small cluster. An administrator's changes are undone within a day, because hundreds of nodes
// would be cordoned in the end.
func DrawLarge(seed uint64, nodes int) Script {
	d := process.NewRandom(seed, "large script")
	s := Script{
		Seed: seed, Begins: d.Between(0, 52*week), Faulty: d.Between(2*week, 3*week),
		Foul:  foul(d),
		Drain: d.Between(10*time.Second, 2*time.Minute), Stuck: pick(d, 0, 0.01, 0.03), Boot: d.Between(30*time.Second, 5*time.Minute),
		Pass: time.Duration(nodes) * time.Millisecond, Patience: 6 * time.Hour,
	}
	// A manager sends hundreds of times as many requests as in a small cluster, one after another.
	// They are made faster, and less likely to crash the manager, to make up for that.
	s.Foul.Latency, s.Foul.Crash = s.Foul.Latency/10, s.Foul.Crash/10
	for i := range largePools {
		s.Pools = append(s.Pools, fmt.Sprintf("pool-%d", i+1))
	}
	s.drawNodes(d, nodes)
	for _, name := range s.Pools {
		s.Policies = append(s.Policies, drawLargePolicy(d, name))
	}
	s.Faults = drawLargeFaults(d, &s)
	return s
}

func drawLargePolicy(d *process.Random, pool string) *v1alpha1.RebootPolicy {
	policy := drawPolicy(d, pool)
	policy.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{labelPool: pool}}
	limit := pick(d, intstr.FromString("5%"), intstr.FromString("10%"), intstr.FromString("20%"), intstr.FromInt32(30))
	policy.Spec.Concurrency.MaxUnavailable = &limit
	policy.Spec.Reboot.Settle.Duration = d.Between(0, time.Minute).Truncate(time.Second)
	policy.Spec.MaxFailures = new(int32(5 + d.Below(20)))
	return policy
}

// drawLargeFaults gives the fleet two updates, which all nodes install within an hour or
// two.
func drawLargeFaults(d *process.Random, s *Script) []Fault {
	drawn, nodes, policies := drawing{random: d, within: s.Faulty}, len(s.Nodes), len(s.Policies)
	for _, wave := range []time.Duration{0, s.Faulty / 2} {
		begins, within := wave+d.Between(0, s.Faulty/2-day), d.Between(time.Minute, 2*time.Hour)
		for i := range nodes {
			drawn.add(Fault{At: begins + d.Between(0, within), What: StageUpdate, Target: i})
		}
	}
	times := float64(nodes) / 60
	drawn.pairs(CordonNode, UncordonNode, 0.3*times, nodes)
	drawn.pairs(PauseNode, ResumeNode, 0.1*times, nodes)
	drawn.pairs(DryRun, Enforce, 0.3, policies)
	drawn.some(PausePolicy, 0.3, policies, time.Hour, day)
	drawn.some(ResumePolicy, 0.3, policies, 0, 0)
	for range drawn.times(0.3) {
		drawn.add(Fault{At: d.Between(0, s.Faulty), What: SetLimit, Target: d.Below(policies), Number: 10 + d.Below(nodes/20)})
	}
	drawn.some(EndHalt, 5, policies, 0, 0)
	drawn.some(DeletePolicy, 0.2, policies, 0, 4*time.Hour)
	drawn.some(DeleteBusyPolicy, 0.2, policies, 0, 4*time.Hour)
	drawn.some(WipeBusyStatus, 0.4, policies, 0, 20*time.Minute)
	drawn.ofNodes(times, nodes)
	drawn.ofManagers()
	drawn.ofNeighbours(times, nodes)
	return drawn.sorted()
}
