package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
)

// A slot that goes from one node to the next does not wait for a forecast of the whole fleet each time.
func TestEstimate_IsKeptForAWhileWhileSlotsChangeHands(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC))
	far := metav1.NewTime(now.Now().Add(1000 * time.Hour)) // no forecast reports it
	for name, tc := range map[string]struct {
		passes time.Duration
		edit   func(*server)
		kept   bool
	}{
		"a moment later":             {passes: time.Second, kept: true},
		"the limit is shared":        {passes: time.Second, edit: (*server).share, kept: true},
		"just before it is too old":  {passes: estimatePace - time.Second, kept: true},
		"once it is too old":         {passes: estimatePace},
		"the policy was edited":      {passes: time.Second, edit: func(s *server) { s.policy.Generation++ }},
		"there is none":              {passes: time.Second, edit: func(s *server) { s.policy.Status.EstimatedCompletionAt = nil }},
		"it has passed":              {passes: time.Second, edit: func(s *server) { s.policy.Status.EstimatedCompletionAt = new(metav1.NewTime(now.Now())) }},
		"the process has just begun": {passes: time.Second, edit: func(s *server) { s.reconciler.ledger.of(s.policy.UID).estimated = time.Time{} }},
		"the slot stays free": {passes: time.Second, edit: func(s *server) {
			s.policy.Spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(slots - 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, now)
			s.policy.Status.EstimatedCompletionAt = far.DeepCopy()
			now.SetTime(now.Now().Add(tc.passes))
			if tc.edit != nil {
				tc.edit(s)
			}
			s.comeBack(t)
			s.pass(t)
			if s.published.IsZero() != (name == "the slot stays free") {
				t.Error("the slot is not where it should be")
			}
			if got := s.policy.Status.EstimatedCompletionAt; got == nil || got.Equal(&far) != tc.kept {
				t.Errorf("the estimate is %v", got)
			}
		})
	}
}
