package schedule_test

import (
	"testing"
	"time"

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

// TestOf_EveryKindHasItsTurn: in as many seeds in a row as there are kinds.
func TestOf_EveryKindHasItsTurn(t *testing.T) {
	for _, first := range []uint64{0, 7, 1000} {
		had := map[schedule.Kind]bool{}
		for i := range uint64(len(schedule.Kinds())) {
			for _, step := range schedule.Of(first + i).Steps {
				had[step.Kind] = true
			}
		}
		for _, kind := range schedule.Kinds() {
			if !had[kind] {
				t.Errorf("no schedule of %d from %d on has %q", len(schedule.Kinds()), first, kind)
			}
		}
	}
}

// TestOf_SomeShareALimit: about one schedule in four has two policies with one limit.
func TestOf_SomeShareALimit(t *testing.T) {
	const schedules = 200
	sharing := 0
	for seed := range uint64(schedules) {
		if s := schedule.Of(seed); s.Sharing {
			sharing++
		}
	}
	if sharing < schedules/5 || sharing > schedules/3 {
		t.Errorf("%d of %d schedules have two policies with one limit", sharing, schedules)
	}
}

// TestOf_CanBeRun: what is drawn makes sense to who runs it.
func TestOf_CanBeRun(t *testing.T) {
	for seed := range uint64(2000) {
		s := schedule.Of(seed)
		if s.Limit < 1 || len(s.Needs) < 1 || s.MinAvailable >= s.Pods || len(s.Steps) < 3 {
			t.Errorf("%s", s)
		}
		if (s.Window == nil) != s.Begins.IsZero() {
			t.Errorf("seed %d: a window wants a time at which it begins: %s", seed, s)
		}
		for i, step := range s.Steps {
			if i > 0 && step.After < s.Steps[i-1].After || step.For <= 0 || step.For > 5*time.Second {
				t.Errorf("seed %d, step %d: %s", seed, i, s)
			}
		}
	}
}
