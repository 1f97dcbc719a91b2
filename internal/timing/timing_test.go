package timing

import (
	"math"
	"testing"
	"time"
)

func TestEarliest_LeavesOutNever(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		instants []time.Time
		want     time.Time
	}{
		"none":               {nil, time.Time{}},
		"all are never":      {[]time.Time{{}, {}}, time.Time{}},
		"never comes first":  {[]time.Time{{}, noon}, noon},
		"never comes last":   {[]time.Time{noon, {}}, noon},
		"the earlier counts": {[]time.Time{noon.Add(time.Hour), noon, noon.Add(time.Minute)}, noon},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Earliest(tc.instants...); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestBackoff_DoublesUpToTheLimit(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, math.MaxInt32: 10 * time.Second,
	} {
		if got := Backoff(failures, time.Second, 10*time.Second); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}
