package process

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Shell is as much of a controller-runtime manager as controllers are set up with: it starts the cache at once, then what
// runs in any replica, and the rest when it leads.
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
