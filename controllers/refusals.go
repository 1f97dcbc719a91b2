package controllers

import (
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusedPause is how long to wait before a Node is asked again to take what it has refused.
const refusedPause = time.Minute

// refusals are the Nodes that took no write lately, and since when. A pass writes only so many, the first by name first: Nodes
// that refuse would else keep those behind them waiting for ever. It only ever orders requests, and is forgotten with the process.
type refusals map[string]time.Time

// waits is how long a Node is left alone. 0: it may be asked.
func (r refusals) waits(node string, now time.Time) time.Duration {
	since, refused := r[node]
	if !refused {
		return 0
	}
	return max(since.Add(refusedPause).Sub(now), 0)
}

// note remembers a Node, and forgets those that may be asked again.
func (r *refusals) note(node string, now time.Time) {
	maps.DeleteFunc(*r, func(name string, _ time.Time) bool { return r.waits(name, now) == 0 })
	if *r == nil {
		*r = refusals{}
	}
	(*r)[node] = now
}

// isRefusal tells whether the API server, or a webhook, will not have this very write. Others may fare better; not so where
// it is down, or has too much to do. A race that was lost is none: the next try may win.
func isRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code/100 == 4 && !apierrors.IsTooManyRequests(err) && !apierrors.IsConflict(err)
}
