package process

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Shell is as much of a controller-runtime manager as controllers are set up with. It starts the cache at once, then what runs in any
// replica, and the rest when it leads.
type Shell struct {
	manager.Manager

	process *Process
	scheme  *runtime.Scheme
	cache   *Cache
	all     []manager.Runnable
}

// NewShell makes a manager that runs in a process.
func NewShell(p *Process, scheme *runtime.Scheme, cache *Cache) *Shell {
	return &Shell{process: p, scheme: scheme, cache: cache}
}

// Add implements manager.Manager.
func (s *Shell) Add(r manager.Runnable) error {
	s.all = append(s.all, r)
	return nil
}

// GetCache implements cluster.Cluster.
func (s *Shell) GetCache() cache.Cache { return s.cache }

// GetScheme implements cluster.Cluster.
func (s *Shell) GetScheme() *runtime.Scheme { return s.scheme }

// GetLogger implements manager.Manager.
func (s *Shell) GetLogger() logr.Logger { return logr.Discard() }

// GetControllerOptions implements manager.Manager.
func (s *Shell) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)} // the world has several managers in one process
}

// Run runs everything until the process ends, which it does when one thing fails. What needs to lead begins once lead is
// closed; nil: everything leads.
func (s *Shell) Run(ctx context.Context, lead <-chan struct{}) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = s.cache.Start(ctx) }) // it has no errors
	for _, r := range s.all {
		running.Go(func() {
			if err := runOne(ctx, r, lead); err != nil && s.process.Alive() {
				s.process.counts.Add("processes that gave up")
				s.process.Kill()
			}
		})
	}
}

func runOne(ctx context.Context, r manager.Runnable, lead <-chan struct{}) error {
	if lead == nil {
		return r.Start(ctx)
	}
	if warm, ok := r.(interface{ Warmup(context.Context) error }); ok {
		if err := warm.Warmup(ctx); err != nil {
			return err
		}
	}
	select {
	case <-lead:
		return r.Start(ctx)
	case <-ctx.Done():
		return nil
	}
}

// Queue is a workqueue without a heartbeat. The libraries' delaying queues wake up every ten seconds, which would take most of the time
// in weeks of virtual time.
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
	// Pass is how long a request takes at least until the next one has its turn. Computing takes no virtual time.
	Pass time.Duration
	// Patience is how often those look who ask to look once a minute. Agents do while they wait: who keeps their host up?
	// Nobody does here, and they wait for days.
	Patience time.Duration
}

// NewQueue lets a controller use a Queue.
func NewQueue(pace Pace) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return &Queue{TypedInterface: workqueue.NewTyped[reconcile.Request](), TypedRateLimiter: limiter, Pace: pace, timers: map[reconcile.Request]timer{}}
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
