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

// Shell is a manager with the features of controller-runtime that the controllers need. It starts
// the cache at once, then what runs in every replica, and the rest when it leads.
type Shell struct {
	manager.Manager

	process *Process
	scheme  *runtime.Scheme
	cache   *Cache
	all     []manager.Runnable
}

// NewShell returns a manager that runs in a process.
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
	return config.Controller{SkipNameValidation: new(true)} // several managers run in one process here
}

// Run runs everything until the process ends, which happens when one part fails. What needs
// leadership starts once lead is closed, or at once if lead is nil.
func (s *Shell) Run(ctx context.Context, lead <-chan struct{}) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = s.cache.Start(ctx) }) // it returns no errors
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

// Queue is a workqueue without a heartbeat. The delaying queues of client-go wake up every ten
// seconds, which would take most of the time in weeks of virtual time.
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

// Pace sets the speed of a controller. The zero value does not slow it down.
type Pace struct {
	// Pass is the minimum time that each request takes. Computing takes no virtual time.
	Pass time.Duration
	// Patience replaces the one minute after which waiting agents look again at what keeps their
	// host up. Nothing keeps a host up in a simulation, and agents wait for days.
	Patience time.Duration
}

// NewQueue makes a controller use a Queue.
func NewQueue(pace Pace) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return &Queue{TypedInterface: workqueue.NewTyped[reconcile.Request](), TypedRateLimiter: limiter, Pace: pace, timers: map[reconcile.Request]timer{}}
	}
}

// lookEvery is the interval that waiting agents ask for.
const lookEvery = time.Minute

// Get implements workqueue.TypedInterface.
func (q *Queue) Get() (r reconcile.Request, shutdown bool) {
	if q.Pass > 0 {
		<-time.After(q.Pass)
	}
	return q.TypedInterface.Get()
}

// AddAfter implements workqueue.TypedDelayingInterface. The earlier of two times counts.
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
	t := time.Now().Add(d)
	waiting, ok := q.timers[r]
	if q.ShuttingDown() || ok && !t.Before(waiting.at) {
		return
	}
	if ok {
		waiting.Stop()
	}
	q.timers[r] = timer{at: t, Timer: time.AfterFunc(d, func() { q.expire(r, t) })}
}

func (q *Queue) expire(r reconcile.Request, t time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting, ok := q.timers[r]; ok && waiting.at.Equal(t) {
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
