package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
)

// A failing schedule is replayed by its seed, so equal seeds must give equal schedules.
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

// Drawn schedules must have values that a run can use.
func TestOf_CanBeRun(t *testing.T) {
	for seed := range uint64(2000) {
		s := schedule.Of(seed)
		if s.Limit < 1 || len(s.Needs) < 1 || s.MinAvailable >= s.Pods || len(s.Steps) < 3 {
			t.Errorf("%s", s)
		}
		if (s.Windows == nil) != s.Begins.IsZero() {
			t.Errorf("seed %d: a window wants a time at which it begins: %s", seed, s)
		}
		for i, step := range s.Steps {
			if i > 0 && step.After < s.Steps[i-1].After || step.For <= 0 || step.For > 5*time.Second {
				t.Errorf("seed %d, step %d: %s", seed, i, s)
			}
		}
	}
}
