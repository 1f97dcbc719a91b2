package scale

import (
	"slices"
	"time"
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
