// Package lifecycle starts and stops the manager and the agent, and has how both record events and
// pause. Both survive being killed at any line, so they do not wait for anything that does not stop
// in time.
package lifecycle

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// UsageError is the exit code for an invalid command line.
	UsageError = 2
	// ShutdownPeriod is the time that reconciles, drains and the last events have after SIGTERM,
	// before the manager releases its Lease.
	ShutdownPeriod = 3 * time.Second
	// stopLimit is the time that a program has after SIGTERM to stop in order.
	stopLimit = 4500 * time.Millisecond
)

// BuildInfo returns a metric with the version of a program.
func BuildInfo(version string) prometheus.Collector {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "reboot_operator_build_info", Help: "1, with the program's version.",
	}, []string{"version", "goversion"})
	gauge.WithLabelValues(version, runtime.Version()).Set(1)
	return gauge
}

// Run runs a manager until ctx ends, and returns its error within stopLimit, even if the manager
// has not stopped. The process must exit then. This happens in two cases. Before the first lists of
// its caches return, a manager does not notice that ctx has ended (controller-runtime 0.25).
// Without an API server it cannot release its Lease, which then expires by itself.
func Run(ctx context.Context, mgr manager.Manager) error {
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
		return within(context.WithoutCancel(ctx), ended)
	default:
		ctrl.Log.Info("Ended before the API server had listed what is watched")
		return nil
	}
}

func within(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not everything has ended within %s", stopLimit)
	}
}

// Listed is a channel that is closed once the caches are filled. It implements manager.Runnable.
type Listed chan struct{}

// Start closes the channel. The manager calls it once.
func (l Listed) Start(context.Context) error {
	close(l)
	return nil
}

// NeedLeaderElection returns false, so that Start runs right after the caches, without the Lease.
func (l Listed) NeedLeaderElection() bool { return false }

// Checker returns an error until the caches are filled.
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
