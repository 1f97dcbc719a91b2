package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Handing over a slot must not wait for a forecast of the whole fleet each time.
func TestEstimate_IsKeptForAWhileWhileSlotsChangeHands(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC))
	far := metav1.NewTime(now.Now().Add(1000 * time.Hour)) // different from any forecast
	for name, tc := range map[string]struct {
		first     func(testing.TB, *server) // before the estimate is made
		passes    time.Duration
		edit      func(*v1alpha1.RebootPolicy)
		restarted bool
		kept      bool
	}{
		"a moment later":               {passes: time.Second, kept: true},
		"the limit is shared":          {first: share, passes: time.Second, kept: true},
		"just before it is too old":    {passes: estimatePace - time.Second, kept: true},
		"once it is too old":           {passes: estimatePace},
		"the policy was edited":        {passes: time.Second, edit: func(p *v1alpha1.RebootPolicy) { p.Spec.Priority++ }},
		"no estimate":                  {passes: time.Second, edit: func(p *v1alpha1.RebootPolicy) { p.Status.EstimatedCompletionAt = nil }},
		"the estimate has passed":      {passes: time.Second, edit: func(p *v1alpha1.RebootPolicy) { p.Status.EstimatedCompletionAt = new(metav1.NewTime(now.Now())) }},
		"the process has just started": {passes: time.Second, restarted: true},
		"the slot stays free":          {first: fewerSlots, passes: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, now)
			if tc.first != nil {
				tc.first(t, s)
				s.pass(t)
			}
			change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Status.EstimatedCompletionAt = far.DeepCopy() })
			now.SetTime(now.Now().Add(tc.passes))
			if tc.edit != nil {
				change(t, s, workers, tc.edit)
			}
			if tc.restarted {
				s.reconciler.ledger.of(s.policy().UID).estimated = time.Time{}
			}
			before := s.policy().Status.EstimatedCompletionAt
			s.comeBack(t)
			s.pass(t)
			if s.published.IsZero() != (name == "the slot stays free") {
				t.Error("the slot is missing")
			}
			if got := s.policy().Status.EstimatedCompletionAt; got == nil || got.Equal(before) != tc.kept {
				t.Errorf("the estimate is %v", got)
			}
		})
	}
}

func fewerSlots(t testing.TB, s *server) {
	t.Helper()
	change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(slots - 1)) })
}
