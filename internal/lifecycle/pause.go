package lifecycle

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Pause waits until the pause is over or ctx ends, and reports whether the pause is over.
func Pause(ctx context.Context, clock clock.Clock, pause time.Duration) bool {
	timer := clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
