package controllers

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// errNotListed is why a manager is not ready. What the API server answers instead is in its log.
var errNotListed = errors.New("the API server has not listed Nodes, RebootPolicies or, with --manage-agents, the DaemonSet yet; see the manager's log")

// readiness approves once the manager has read what it decides about, and from then on: managers that may not read it, and so end after
// a while, do not replace others that can. A standby reads it, too. It implements manager.Runnable.
type readiness struct {
	lifecycle.Listed

	cache cache.Cache
	// kinds are what the manager reads.
	kinds []client.Object
}

// Start is called once, and ends with the first lists.
func (r readiness) Start(ctx context.Context) error {
	for _, kind := range r.kinds {
		// A kind that is not served is no error here: who watches it reports it, and gives up in time.
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := r.cache.GetInformer(ctx, kind)
			return err == nil, nil
		})
		if err != nil {
			return nil //nolint:nilerr // the manager ends
		}
	}
	return r.Listed.Start(ctx)
}
