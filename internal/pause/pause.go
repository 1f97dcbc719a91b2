// Package pause waits for a time by a clock that tests can set.
package pause

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// For waits until the pause is over or ctx ends, and reports whether the pause is over.
func For(ctx context.Context, clock clock.Clock, pause time.Duration) bool {
	timer := clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
