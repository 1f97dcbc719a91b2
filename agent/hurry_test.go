package main

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// hurry is by how much a hurriedClock is faster than the real one.
const hurry = 10

// hurriedClock is a clock that is faster than the real one, and so are its timers. It is for specs in which an agent only waits. What
// has to be seen within a time-out needs the real clock.
type hurriedClock struct {
	clock.RealClock

	from time.Time
}

func newHurriedClock() *hurriedClock { return &hurriedClock{from: time.Now()} }

func (c *hurriedClock) Now() time.Time                       { return c.from.Add(time.Since(c.from) * hurry) }
func (c *hurriedClock) Since(t time.Time) time.Duration      { return c.Now().Sub(t) }
func (c *hurriedClock) NewTimer(d time.Duration) clock.Timer { return c.RealClock.NewTimer(d / hurry) }

// newHurriedQueue makes a queue whose delays are as fast.
func newHurriedQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return hurriedQueue{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name})}
}

type hurriedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (q hurriedQueue) AddAfter(item reconcile.Request, d time.Duration) {
	q.TypedRateLimitingInterface.AddAfter(item, d/hurry)
}

// heldClock moves only when a spec passes time: for specs that have to see what a time-out ends.
type heldClock struct {
	clock.RealClock

	held atomic.Pointer[time.Time]
}

func newHeldClock() *heldClock {
	c, now := &heldClock{}, time.Now()
	c.held.Store(&now)
	return c
}

func (c *heldClock) pass(d time.Duration) {
	moved := c.Now().Add(d)
	c.held.Store(&moved)
}

func (c *heldClock) Now() time.Time                  { return *c.held.Load() }
func (c *heldClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
