// Package lifecycle holds how both programs start and end. Both survive being killed at any line, so what does not
// end by itself is left behind rather than waited for.
package lifecycle

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Run runs a manager until ctx ends, and returns its error. After that it returns within limit, whether the manager has ended or
// not, and then the process is to end, too. There are two cases in which it has not. Until the first lists of its caches are
// answered a manager does not notice that it has to end (controller-runtime 0.25): it has done nothing yet, and is left at once.
// And an API server that does not answer keeps it from giving back its Lease, which then runs out by itself.
func Run(ctx context.Context, mgr manager.Manager, limit time.Duration) error {
	began := make(Listed)
	if err := mgr.Add(began); err != nil {
		return fmt.Errorf("adding what detects that the caches are filled: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-began:
		return within(context.WithoutCancel(ctx), limit, ended)
	default:
		ctrl.Log.Info("Ended before the API server had listed what is watched")
		return nil
	}
}

func within(ctx context.Context, limit time.Duration, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not everything has ended within %s", limit)
	}
}

// Listed is closed when the caches are filled, and never opened again. It implements manager.Runnable.
type Listed chan struct{}

// Start is called once.
func (l Listed) Start(context.Context) error {
	close(l)
	return nil
}

// NeedLeaderElection reports that it does not wait for the Lease: it is started right after the caches.
func (l Listed) NeedLeaderElection() bool { return false }

// Checker fails with an error until the caches are filled.
func (l Listed) Checker(notListed error) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-l:
			return nil
		default:
			return notListed
		}
	}
}

// Sleep waits until the pause is over or ctx ends, and reports whether the pause is over.
func Sleep(ctx context.Context, clock clock.Clock, pause time.Duration) bool {
	timer := clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
