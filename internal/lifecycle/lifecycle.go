// Package lifecycle holds how both programs start and end. Both survive being killed at any line, so what does not
// end by itself is left behind rather than waited for.
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
	// UsageError is the exit code of a command line that cannot work.
	UsageError = 2
	// ShutdownPeriod is what a reconcile, a drain and the last events get after SIGTERM. Then the manager gives back its Lease.
	ShutdownPeriod = 3 * time.Second
	// stopLimit is how long after SIGTERM there is to end in order.
	stopLimit = 4500 * time.Millisecond
)

// BuildInfo is a metric that names a program's version.
func BuildInfo(version string) prometheus.Collector {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "reboot_operator_build_info", Help: "1, with the program's version.",
	}, []string{"version", "goversion"})
	gauge.WithLabelValues(version, runtime.Version()).Set(1)
	return gauge
}

// Run runs a manager until ctx ends, and returns its error. After that it returns within stopLimit, whether the manager has ended or
// not, and then the process is to end, too. There are two cases in which it has not. Until the first lists of its caches are answered a
// manager does not notice that it has to end (controller-runtime 0.25). It has done nothing yet, and is left at once. And an API server
// that does not answer keeps it from giving back its Lease, which then runs out by itself.
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
