package lifecycle

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

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
