package process

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is a workqueue without a heartbeat: the libraries' delaying queues wake up every ten seconds, which in weeks of virtual
// time is what a simulation would do most.
type Queue struct {
	workqueue.TypedInterface[reconcile.Request]
	workqueue.TypedRateLimiter[reconcile.Request]
	Pace

	mu     sync.Mutex
	timers map[reconcile.Request]timer
}

type timer struct {
	*time.Timer
	at time.Time
}

// Pace is how fast a controller is. The zero value is as fast as it asks to be.
type Pace struct {
	// Pass is how long a request takes at least until the next one has its turn: virtual time takes no notice of what a pass computes.
	Pass time.Duration
	// Patience is how often those look who ask to look once a minute. Agents do while they wait: who keeps their host up?
	// Nobody does here, and they wait for days.
	Patience time.Duration
}

// WithQueue lets a controller use a Queue.
func WithQueue(pace Pace) func(*controller.Options) {
	return func(o *controller.Options) {
		o.NewQueue = func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return &Queue{TypedInterface: workqueue.NewTyped[reconcile.Request](), TypedRateLimiter: limiter, Pace: pace, timers: map[reconcile.Request]timer{}}
		}
	}
}

// lookEvery is what agents ask for between two looks.
const lookEvery = time.Minute

// Get implements workqueue.TypedInterface.
func (q *Queue) Get() (r reconcile.Request, shutdown bool) {
	if q.Pass > 0 {
		<-time.After(q.Pass)
	}
	return q.TypedInterface.Get()
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
	if q.ShuttingDown() || there && !at.Before(waiting.at) {
		return
	}
	if there {
		waiting.Stop()
	}
	q.timers[r] = timer{at: at, Timer: time.AfterFunc(d, func() { q.expire(r, at) })}
}

func (q *Queue) expire(r reconcile.Request, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting, there := q.timers[r]; there && waiting.at.Equal(at) {
		delete(q.timers, r)
		q.Add(r)
	}
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *Queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.When(r)) }

// ShutDown implements workqueue.TypedInterface.
func (q *Queue) ShutDown() {
	q.TypedInterface.ShutDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.timers {
		waiting.Stop()
	}
}
