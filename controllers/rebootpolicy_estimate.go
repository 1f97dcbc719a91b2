package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// estimateGrain is what an estimate is rounded up to. One that is off by no more stays as it is told: people look at it, and it
// should not move with every reboot that takes a second more.
const estimateGrain = time.Minute

// estimate is when all is expected to be done. It is made when a status is written for another reason, and never is the
// reason itself: what moves it much is a grant, a release, a window or a count, each of which is written anyway.
func estimate(s plan.Snapshot) *metav1.Time {
	if s.Policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun {
		return nil
	}
	at := forecast.Of(s, forecast.Quick).CompletionAt
	if at.IsZero() {
		return nil
	}
	at = at.Add(estimateGrain - 1).Truncate(estimateGrain)
	stands := s.Policy.Status.EstimatedCompletionAt
	if stands != nil && stands.After(s.Now) && at.Sub(stands.Time).Abs() <= estimateGrain {
		return stands
	}
	return timeOrNil(at)
}

// estimatePace is how old an estimate may grow while slots change hands: it is made before the write that gives a slot away,
// and with thousands of nodes the slot would wait for it longer than for all else that is decided.
const estimatePace = 15 * time.Second

// estimated is the estimate to write with a plan. The one that stands is good for a while where a slot changes hands; whatever
// else there is to write moves it.
func (r *RebootPolicyReconciler) estimated(s *state, p plan.Plan) *metav1.Time {
	uid, stands := s.Policy.UID, s.Policy.Status.EstimatedCompletionAt
	lasts := stands != nil && stands.After(s.Now) && s.Policy.Status.ObservedGeneration == s.Policy.Generation
	if lasts && handsOver(p) && r.Clock.Since(r.estimates[uid]) < estimatePace {
		return stands
	}
	r.estimates[uid] = r.Clock.Now()
	return estimate(s.Snapshot)
}

// handsOver tells whether a plan gives a slot to a node that another one has given back.
func handsOver(p plan.Plan) bool { return len(p.Granted) > 0 && len(p.Released()) > 0 }

// busy tells whether there is anything to estimate.
func busy(status v1alpha1.RebootPolicyStatus) bool {
	return status.Nodes.RebootRequired > 0 || len(status.Grants) > 0
}
