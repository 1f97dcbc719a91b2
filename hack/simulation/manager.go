package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// replica is one of the managers' pods.
type replica struct{ program }

func newReplica(w *World, i int) *replica {
	name := fmt.Sprintf("manager %d", i+1)
	return &replica{program{world: w, name: name, random: w.random(name)}}
}

// freeze stops the manager for a while. If another one leads by then it goes on all the same, until it tries to renew. False:
// there is none.
func (r *replica) freeze(d time.Duration) bool {
	w, p := r.world, r.now()
	if p == nil {
		return false
	}
	p.Hold()
	held := w.lease.holds(p)
	w.lease.lapse(p, r.random)
	w.Go(func() {
		process.Wait(w.ctx, d)
		p.Release()
		r.renew(p, held)
	})
	return true
}

// renew is the next time that a leader tries to renew its lease after it could not: it ends where that fails.
func (r *replica) renew(p *process.Process, held bool) {
	if held && process.Wait(r.world.ctx, r.random.Between(0, retryPeriod)) && !r.world.lease.renew(p) {
		r.world.counts.Add("leaders that went on after their lease")
		p.Kill()
	}
}

// disconnect is what an API server that is down does to a leader.
func (r *replica) disconnect(d time.Duration) {
	w, p := r.world, r.now()
	if p == nil || !w.lease.holds(p) {
		return
	}
	w.lease.lapse(p, r.random)
	w.Go(func() {
		process.Wait(w.ctx, min(d, renewDeadline))
		if d >= renewDeadline {
			p.Kill()
			return
		}
		r.renew(p, true)
	})
}

// runManager is controllers/options.go on the simulated API.
func (r *replica) runManager(p *process.Process) {
	w := r.world
	cache := process.NewCache(p, map[apiserver.Key]toolscache.TransformFunc{
		{Kind: apiserver.Nodes}: snapshot.Transform(), {Kind: apiserver.Policies}: nil,
	})
	shell := process.NewShell(p, w.scheme, cache)
	reconciler := &controllers.RebootPolicyReconciler{
		Client: process.NewClient(p, cache, true), Live: process.NewLive(p, "live"),
		Recorder: &events.FakeRecorder{}, Clock: clock.RealClock{},
		Metrics: controllers.NewMetrics(prometheus.NewRegistry()), Paces: controllers.DefaultPaces, RebootInterval: plan.DefaultRebootInterval,
	}
	options := controller.Options{NewQueue: process.NewQueue(process.Pace{Pass: w.script.Pass})}
	if err := reconciler.SetupWithManager(shell, options); err != nil {
		w.must(err)
		return
	}
	lead := make(chan struct{})
	w.Go(func() {
		if w.lease.acquire(p.Context, p, r.random) {
			close(lead)
		}
	})
	shell.Run(p.Context, lead)
	w.lease.lapse(p, r.random)
}

const (
	managers = 2
	// leaseDuration, renewDeadline and retryPeriod are those of controllers/options.go.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// lease reports who leads. A real one is renewed every two seconds, which would take most of the time in weeks of virtual time. This
// one knows when its holder cannot renew it, and runs out as the real one would. Safety does not rest on it.
type lease struct {
	mu      sync.Mutex
	holder  *process.Process
	expires time.Time     // zero: the holder renews it
	lapsed  chan struct{} // closed when the holder does not renew it any more
}

func newLease() *lease { return &lease{lapsed: make(chan struct{})} }

// acquire waits until the process holds the lease, and reports whether it does. While the holder renews it nobody tries.
func (l *lease) acquire(ctx context.Context, p *process.Process, random *process.Random) bool {
	for {
		l.mu.Lock()
		if p.Alive() && (l.holder == nil || l.hasExpired()) {
			l.holder, l.expires = p, time.Time{}
		}
		acquired, renewed, lapsed := l.holder == p, l.expires.IsZero(), l.lapsed
		l.mu.Unlock()
		if acquired {
			return true
		}
		if renewed {
			select {
			case <-ctx.Done():
			case <-lapsed:
			}
		}
		if !process.Wait(ctx, random.Between(0, retryPeriod)) || !p.Pass() {
			return false
		}
	}
}

// hasExpired reports whether anybody may take the lease. The lock is held.
func (l *lease) hasExpired() bool { return !l.expires.IsZero() && time.Until(l.expires) <= 0 }

// lapse lets the lease run out, if the process holds it: it has died, or cannot renew it.
func (l *lease) lapse(p *process.Process, random *process.Random) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == p && l.expires.IsZero() {
		l.expires = time.Now().Add(leaseDuration - random.Between(0, retryPeriod))
		close(l.lapsed)
		l.lapsed = make(chan struct{})
	}
}

// renew goes on holding the lease, and reports whether that could be: nobody else has it, and it has not run out.
func (l *lease) renew(p *process.Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != p || l.hasExpired() {
		return false
	}
	l.expires = time.Time{}
	return true
}

func (l *lease) holds(p *process.Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder == p
}
