package drain

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// budgetFeed sends a run the PodDisruptionBudgets of one namespace.
type budgetFeed struct {
	*run
	namespace string
}

// follow watches them until ctx ends. Without a resource version a watch begins with all that there is, so no LIST is needed
// and no version is ever too old. Errors end nothing: the back-off of the evictions is the net below.
func (f budgetFeed) follow(ctx context.Context) {
	for attempts := 1; ctx.Err() == nil; attempts++ {
		seen, err := f.watch(ctx)
		if seen {
			attempts = 1
		}
		if err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Watching PodDisruptionBudgets again later", "namespace", f.namespace)
		}
		lifecycle.Sleep(ctx, f.Clock, backoff(attempts, rand.Float64()))
	}
}

// watch follows one watch to its end; seen reports whether it brought anything.
func (f budgetFeed) watch(ctx context.Context) (seen bool, err error) {
	w, err := f.Policy.watchBudgets(ctx, f.namespace)
	if err != nil {
		return false, err
	}
	f.send(ctx, func(p *progress, _ time.Time) error { p.budgets.forget(f.namespace); return nil })
	err = consume(ctx, w, func(event watch.Event) error {
		pdb, ok := event.Object.(*policyv1.PodDisruptionBudget)
		if !ok {
			return nil
		}
		seen = true
		name, b := types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name}, readBudget(pdb)
		if event.Type == watch.Deleted {
			b = budget{}
		}
		f.send(ctx, func(p *progress, now time.Time) error { p.budgetChanged(name, b, now); return nil })
		return nil
	})
	return seen, err
}
