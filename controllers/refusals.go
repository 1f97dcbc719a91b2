package controllers

import (
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
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

// refusedWrites are the refused writes about the granted reboots of a policy, by node.
func (r *RebootPolicyReconciler) refusedWrites(policy *v1alpha1.RebootPolicy) map[string]plan.Refusal {
	if r.refused == nil {
		r.refused = map[types.UID]map[string]plan.Refusal{}
	}
	if r.refused[policy.UID] == nil {
		r.refused[policy.UID] = map[string]plan.Refusal{}
	}
	byNode := r.refused[policy.UID]
	maps.DeleteFunc(byNode, func(node string, _ plan.Refusal) bool { return !holds(policy, node) })
	return byNode
}

// noteAnswer keeps what the API server answered to a write about a granted reboot, and returns err. Where it was not the write
// that was refused, but a race was lost or the API server is down, the last answer stays. A webhook may word each answer
// differently, so a newer one is kept only after a while: the status has it, and would be written in every pass.
func (r *RebootPolicyReconciler) noteAnswer(s *state, node string, err error) error {
	switch last, now := s.Refused[node], r.Clock.Now(); {
	case err == nil:
		delete(s.Refused, node)
	case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
	case now.Sub(last.At) >= refusedPause:
		status, _ := errors.AsType[*apierrors.StatusError](err)
		s.Refused[node] = plan.Refusal{Answer: status.ErrStatus.Message, At: now}
	}
	return err
}
