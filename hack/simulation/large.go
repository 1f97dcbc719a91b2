package simulation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// largePools is how many pools a large cluster has, each with a policy of its own.
const largePools = 5

// DrawLarge makes the script of a large cluster, over weeks: pools of hundreds of nodes that are updated in waves, as fleets
// are. Faults strike a node about a fifth as often as in a small cluster, and what an administrator does to a node he undoes
// within a day, or hundreds of cordons would be in the end.
func DrawLarge(seed uint64, nodes int) Script {
	d := process.NewRandom(seed, "large script")
	s := Script{
		Seed: seed, Begins: d.Between(0, 52*week), Faulty: d.Between(2*week, 3*week),
		Foul:  foul(d),
		Drain: d.Between(10*time.Second, 2*time.Minute), Stuck: pick(d, 0, 0.01, 0.03), Boot: d.Between(30*time.Second, 5*time.Minute),
		Pass: time.Duration(nodes) * time.Millisecond, Patience: 6 * time.Hour,
	}
	// A manager sends hundreds of times as many requests as in a small cluster, one after another. They are faster, and it dies as often.
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
	policy.Spec.Settle = &metav1.Duration{Duration: d.Between(0, time.Minute).Truncate(time.Second)}
	policy.Spec.Failures = &v1alpha1.Failures{Max: new(int32(5 + d.Below(20)))}
	return policy
}

// drawLargeFaults: the fleet gets two updates, and each node has installed one within an hour or two.
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
	return drawn.sorted()
}
