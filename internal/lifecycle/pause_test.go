package lifecycle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestPause_EndsWithThePauseOrTheContext(t *testing.T) {
	for name, tc := range map[string]struct {
		ends, lasts time.Duration
		over        bool
	}{
		"the pause is over":        {2 * time.Second, time.Second, true},
		"the context ends before":  {time.Second, time.Hour, false},
		"the context ends at once": {0, time.Hour, false},
		"nothing to wait for":      {time.Second, 0, true},
		"the pause ended long ago": {time.Second, -time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.ends)
				defer cancel()
				began := time.Now()
				if over := Pause(ctx, clock.RealClock{}, tc.lasts); over != tc.over {
					t.Errorf("over: %v", over)
				}
				if took := time.Since(began); took != max(0, min(tc.ends, tc.lasts)) {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
