package schedule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
)

// TestOf_TheSameSeedIsTheSameSchedule, which is how a failing one is replayed; and another seed is another.
func TestOf_TheSameSeedIsTheSameSchedule(t *testing.T) {
	for seed := range uint64(50) {
		if diff := cmp.Diff(schedule.Of(seed), schedule.Of(seed)); diff != "" {
			t.Errorf("seed %d (-once +again):\n%s", seed, diff)
		}
		if schedule.Of(seed).String()[len("seed 1000"):] == schedule.Of(seed + 1).String()[len("seed 1000"):] {
			t.Errorf("seeds %d and %d are the same", seed, seed+1)
		}
	}
}
