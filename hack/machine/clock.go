package machine

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the real one, but for what it is set wrong by. What runs for a while runs as long by any clock.
type Clock struct {
	clock.RealClock

	wrong atomic.Int64
}

// Set sets the clock wrong by so much.
func (c *Clock) Set(by time.Duration) { c.wrong.Store(int64(by)) }

// Jump puts the clock on, or back.
func (c *Clock) Jump(by time.Duration) { c.wrong.Add(int64(by)) }

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.wrong.Load())) }

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
