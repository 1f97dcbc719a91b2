package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// process is one of the programs. After each kill it starts again.
type process struct {
	s     *scenario
	name  string
	build func(ctx context.Context, config *rest.Config) (manager.Manager, error)

	mu sync.Mutex
	// end ends the program, or is nil if it was never started.
	end func()
}

func (s *scenario) process(name string, build func(context.Context, *rest.Config) (manager.Manager, error)) *process {
	return &process{s: s, name: name, build: build}
}

// start starts the program.
func (p *process) start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	life, stop := context.WithCancel(ctx)
	requests := &wire.Wire{}
	p.end = func() {
		requests.Cut()
		stop()
	}
	requests.Meddle(p.due, func(r *http.Request, next http.RoundTripper) (*http.Response, error) { return p.strike(ctx, r, next) })
	config := rest.CopyConfig(p.s.config)
	config.Wrap(requests.Wrap)
	mgr, err := p.build(life, config)
	if err != nil {
		p.s.t.Errorf("building %s: %v", p.name, err)
		return
	}
	cut := p.end
	p.end = func() {
		mgr.GetCache().WaitForCacheSync(life) // Start never returns if its context ends before
		cut()
	}
	p.s.wg.Go(func() {
		// A killed process cannot shut down properly, so its error is ignored.
		_ = mgr.Start(life)
	})
}

// kill ends the program at once. None of its later requests reaches the API server.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end != nil {
		p.end()
	}
}

// due reports whether a request is the write at which the fault occurs. Events do not count,
// because nothing depends on them.
func (p *process) due(r *http.Request) bool {
	return wire.IsWrite(r) && !strings.Contains(r.URL.Path, "/events") && p.s.count(p.name+" "+r.Method+" "+r.URL.Path)
}

// strike makes the fault occur.
func (p *process) strike(ctx context.Context, r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if p.s.fault == failBefore {
		return wire.Refuse(r, next)
	}
	response, err := wire.Lose(r, next)
	if errors.Is(err, wire.ErrLost) && p.s.fault == killAfter {
		p.kill()
		p.s.wg.Go(func() { p.start(ctx) })
	}
	return response, err
}

// count records a write and reports whether it is the one at which the fault occurs.
func (s *scenario) count(write string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write)
	return len(s.writes) == s.at
}

func (s *scenario) newManager(ctx context.Context, config *rest.Config) (manager.Manager, error) {
	mgr, err := testenv.NewManager(config, (&controllers.Options{MetricsAddr: "0", ProbeAddr: "0"}).Manager)
	if err != nil {
		return nil, err
	}
	r := &controllers.RebootPolicyReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("manager"), Clock: clock.RealClock{},
		Metrics: controllers.NewMetrics(prometheus.NewRegistry()),
		Paces:   controllers.Paces{Counts: 200 * time.Millisecond}, // so that a failed write of the status is soon repeated
	}
	if s.fleetLock {
		if err := s.serveFleetLock(ctx, mgr); err != nil {
			return nil, err
		}
	}
	return mgr, r.SetupWithManager(mgr, controller.Options{})
}
