package simulation

import (
	"fmt"
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

// zones have clock changes on different days, one in the other half of the year, one of half an hour; and none.
var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"}

// Draw makes the script of a seed: a small cluster over weeks.
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

// drawNodes makes so many nodes, in all pools and in three zones.
func (s *Script) drawNodes(d *process.Random, nodes int) {
	for i := range nodes {
		s.Nodes = append(s.Nodes, NodeScript{Name: fmt.Sprintf("n%d", i+1), Labels: map[string]string{
			labelPool: s.Pools[i%len(s.Pools)], labelZone: string(rune('a' + d.Below(3))),
		}})
	}
}

func pick[T any](d *process.Random, from ...T) T { return from[d.Below(len(from))] }

// outrun is how often a kubelet's heartbeat comes between a read and its write, when all is well otherwise, too: more often than
// ever on real machines.
const outrun = 0.05

// fair is how requests fare when all is well.
var fair = process.Conditions{Latency: 20 * time.Millisecond, Lag: 500 * time.Millisecond, Gap: time.Second, Outrun: outrun}

// foul is how bad things are; in one seed of four requests are left alone, but for heartbeats.
func foul(d *process.Random) process.Conditions {
	how := pick(d, 0, 0.3, 1, 3)
	return process.Conditions{
		Latency: d.Between(time.Millisecond, 2*time.Second), Lag: d.Between(time.Millisecond, 20*time.Second),
		Refused: 0.03 * how, Lost: 0.02 * how, Late: 0.01 * how, Crash: 0.004 * how, Drop: 0.02 * how, Gap: 3 * time.Minute, Outrun: outrun,
	}
}

// drawPolicies makes one policy for all nodes, or one for a pool above it, which may share its limit.
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
	policy.Spec.Settle = &metav1.Duration{Duration: d.Between(0, 5*time.Minute).Truncate(time.Second)}
	policy.Spec.Failures = &v1alpha1.Failures{Max: new(int32(1 + d.Below(3)))}
	policy.Spec.Drain = &v1alpha1.Drain{
		Timeout:   &metav1.Duration{Duration: d.Between(time.Minute, 30*time.Minute).Truncate(time.Second)},
		OnTimeout: pick(d, v1alpha1.DrainTimeoutAbort, v1alpha1.DrainTimeoutAbort, v1alpha1.DrainTimeoutReboot),
	}
	for i := range pick(d, 0, 2, 4, 6) {
		policy.Spec.Windows = append(policy.Spec.Windows, drawWindow(d, i))
	}
	return policy
}

// drawWindow makes one that is open once a day or on most days; many begin where clocks change. There are several: a node
// that waits looks who keeps its host up once a minute, which is what a simulation would do most.
func drawWindow(d *process.Random, i int) v1alpha1.Window {
	w := v1alpha1.Window{
		Name: fmt.Sprintf("w%d", i), TimeZone: pick(d, zones...), Duration: metav1.Duration{Duration: d.Between(20*time.Minute, 5*time.Hour).Truncate(time.Minute)},
		Start: pick(d, "00:00", "01:59", "02:00", "02:15", "02:30", "03:00", "06:00", "09:30", "12:00", "16:00", "19:00", "22:00", "23:59"),
	}
	if d.Chance(0.2) {
		w.Days = []v1alpha1.Day{"Mon", "Wed", "Fri", "Sun"}
	}
	return w
}
