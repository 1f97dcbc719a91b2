package process

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is a workqueue without a heartbeat: those of the libraries wake up every few seconds, or twice in one, which in
// weeks of virtual time is what a simulation would do most.
type Queue struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	Pace

	mu      sync.Mutex
	changed *sync.Cond
	ready   []reconcile.Request
	// dirty are in ready, or come again when they are done; working are being processed.
	dirty, working map[reconcile.Request]bool
	timers         map[reconcile.Request]timer
	closed         bool
}

type timer struct {
	*time.Timer
	at time.Time
}

// Pace is how fast a controller is. The zero value is as fast as it asks to be.
type Pace struct {
	// Pass is how long each request waits for its turn: virtual time takes no notice of what a pass computes.
	Pass time.Duration
	// Patience is how often those look who ask to look once a minute. Agents do while they wait: who keeps their host up?
	// Nobody does here, and they wait for days.
	Patience time.Duration
}

// WithQueue lets a controller use a Queue.
func WithQueue(pace Pace) func(*controller.Options) {
	return func(o *controller.Options) {
		o.NewQueue = func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return newQueue(limiter, pace)
		}
	}
}

// lookEvery is what agents ask for between two looks.
const lookEvery = time.Minute

func newQueue(limiter workqueue.TypedRateLimiter[reconcile.Request], pace Pace) *Queue {
	q := &Queue{
		limiter: limiter, Pace: pace, dirty: map[reconcile.Request]bool{}, working: map[reconcile.Request]bool{},
		timers: map[reconcile.Request]timer{},
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// Add implements workqueue.TypedInterface.
func (q *Queue) Add(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.dirty[r] {
		return
	}
	q.dirty[r] = true
	if !q.working[r] {
		q.ready = append(q.ready, r)
		q.changed.Signal()
	}
}

// Get implements workqueue.TypedInterface.
func (q *Queue) Get() (r reconcile.Request, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ready) == 0 && !q.closed {
		q.changed.Wait()
	}
	if q.Pass > 0 && !q.closed {
		q.mu.Unlock()
		<-time.After(q.Pass)
		q.mu.Lock()
	}
	if q.closed {
		return r, true
	}
	r = q.ready[0]
	q.ready = q.ready[1:]
	delete(q.dirty, r)
	q.working[r] = true
	return r, false
}

// Done implements workqueue.TypedInterface.
func (q *Queue) Done(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, r)
	if q.dirty[r] {
		q.ready = append(q.ready, r)
		q.changed.Signal()
	}
}

// AddAfter implements workqueue.TypedDelayingInterface: of two instants the earlier one counts.
func (q *Queue) AddAfter(r reconcile.Request, d time.Duration) {
	if d <= 0 {
		q.Add(r)
		return
	}
	if d == lookEvery {
		d = max(d, q.Patience)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := time.Now().Add(d)
	waiting, there := q.timers[r]
	if q.closed || there && !at.Before(waiting.at) {
		return
	}
	if there {
		waiting.Stop()
	}
	q.timers[r] = timer{at: at, Timer: time.AfterFunc(d, func() { q.expire(r, at) })}
}

func (q *Queue) expire(r reconcile.Request, at time.Time) {
	q.mu.Lock()
	waiting, there := q.timers[r]
	due := there && waiting.at.Equal(at)
	if due {
		delete(q.timers, r)
	}
	q.mu.Unlock()
	if due {
		q.Add(r)
	}
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *Queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.limiter.When(r)) }

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *Queue) Forget(r reconcile.Request) { q.limiter.Forget(r) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *Queue) NumRequeues(r reconcile.Request) int { return q.limiter.NumRequeues(r) }

// Len implements workqueue.TypedInterface.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready)
}

// ShutDown implements workqueue.TypedInterface.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for r, waiting := range q.timers {
		waiting.Stop()
		delete(q.timers, r)
	}
	q.changed.Broadcast()
}

// ShutDownWithDrain implements workqueue.TypedInterface.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown implements workqueue.TypedInterface.
func (q *Queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
