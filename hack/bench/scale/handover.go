package scale

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
)

// handovers are how long each slot was free before the next node had it. The first nodes take slots that nobody had before
// them; from then on the first slot that is freed goes to the next node that is granted, and so on.
func handovers(freed, granted []time.Time, slots int) []time.Duration {
	freed, granted = slices.SortedFunc(slices.Values(freed), time.Time.Compare), slices.SortedFunc(slices.Values(granted), time.Time.Compare)
	var took []time.Duration
	for i := range max(0, min(len(freed), len(granted)-slots)) {
		took = append(took, granted[slots+i].Sub(freed[i]))
	}
	return took
}

// latency is how long something took, many times.
type latency struct {
	median, high, longest time.Duration
	count                 int
}

// highQuantile is what latency.high is: 95 of 100 took no longer.
const highQuantile = 0.95

func latencyOf(took []time.Duration) latency {
	return latency{
		median: figures.Quantile(took, 0.5), high: figures.Quantile(took, highQuantile), longest: figures.Quantile(took, 1), count: len(took),
	}
}
