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
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// replica plays the pod of one manager.
type replica struct{ program }

func newReplica(w *World, i int) *replica {
	name := fmt.Sprintf("manager %d", i+1)
	return &replica{program{world: w, name: name, random: w.random(name)}}
}

// freeze pauses the manager for a while. It continues even if another manager leads by then, until
// it tries to renew its lease. freeze returns false if no manager runs.
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

// renew plays the first renewal after a pause or outage, and ends a leader whose renewal fails.
func (r *replica) renew(p *process.Process, held bool) {
	if held && process.Wait(r.world.ctx, r.random.Between(0, retryPeriod)) && !r.world.lease.renew(p) {
		r.world.counts.Add("leaders that went on after their lease")
		p.Kill()
	}
}

// disconnect cuts a leader off from the API server.
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

// runManager does the same as controllers/options.go, with the simulated API.
func (r *replica) runManager(p *process.Process) {
	w := r.world
	cache := process.NewCache(p, map[apiserver.Key]toolscache.TransformFunc{
		{Kind: apiserver.Nodes}: snapshot.Transform(), {Kind: apiserver.Policies}: nil,
	})
	shell := process.NewShell(p, w.scheme, cache)
	reconciler := &controllers.RebootPolicyReconciler{
		Client: process.NewClient(p, cache, true), Live: process.NewLive(p, "live"),
		Recorder: &events.FakeRecorder{}, Clock: clock.RealClock{},
		Metrics: controllers.NewMetrics(prometheus.NewRegistry()), Paces: controllers.DefaultPaces, RebootInterval: record.DefaultRebootInterval,
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
	// leaseDuration, renewDeadline and retryPeriod have the values of controllers/options.go.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// lease decides who leads. Renewing a real lease every two seconds would take most of the time in
// weeks of virtual time. This one knows when its holder cannot renew it, and expires as the real
// one would. Safety does not depend on it.
type lease struct {
	mu      sync.Mutex
	holder  *process.Process
	expires time.Time     // zero while the holder renews it
	lapsed  chan struct{} // closed when the holder stops renewing it
}

func newLease() *lease { return &lease{lapsed: make(chan struct{})} }

// acquire waits until the process holds the lease, and reports whether it does. Nobody tries while
// the holder renews it.
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

// hasExpired reports whether anybody may take the lease. The caller holds the lock.
func (l *lease) hasExpired() bool { return !l.expires.IsZero() && time.Until(l.expires) <= 0 }

// lapse lets the lease expire if the process holds it, because the process has died or cannot renew
// it.
func (l *lease) lapse(p *process.Process, random *process.Random) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == p && l.expires.IsZero() {
		l.expires = time.Now().Add(leaseDuration - random.Between(0, retryPeriod))
		close(l.lapsed)
		l.lapsed = make(chan struct{})
	}
}

// renew renews the lease, and reports whether that was possible: nobody else has it, and it has not
// expired.
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
