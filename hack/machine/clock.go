package machine

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the real clock with an error. Durations are not affected.
type Clock struct {
	clock.RealClock

	wrong   atomic.Int64
	stopped atomic.Pointer[time.Time]
}

// Stop stops the clock. From then on only Set and Jump change it.
func (c *Clock) Stop() { c.stopped.Store(new(c.RealClock.Now())) }

// Set sets the error of the clock.
func (c *Clock) Set(by time.Duration) { c.wrong.Store(int64(by)) }

// Jump moves the clock forwards or backwards.
func (c *Clock) Jump(by time.Duration) { c.wrong.Add(int64(by)) }

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	now := c.stopped.Load()
	if now == nil {
		now = new(c.RealClock.Now())
	}
	return now.Add(time.Duration(c.wrong.Load()))
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
