package controllers

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Counts alone do not write the status of a policy more often than every 15 s, and what was put off is looked at by then.
func TestReport_CountsAloneWait(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC))
	s := newServer(t, 2*needy, now)
	before := s.policy.Status.Nodes.Selected
	s.put(t, serverNode(2*needy, false, now.Now()))
	for _, tc := range []struct {
		after, again time.Duration
		want         int32
	}{{again: 15 * time.Second, want: before}, {after: 14 * time.Second, again: time.Second, want: before}, {after: time.Second, again: time.Minute, want: before + 1}} {
		now.SetTime(now.Now().Add(tc.after))
		result, err := s.reconciler.Reconcile(t.Context(), request(workers))
		again := min(result.RequeueAfter, time.Minute) // later, other reasons are due
		if err != nil || again != tc.again || s.policy.Status.Nodes.Selected != tc.want {
			t.Errorf("after %s: again in %s (%v), %d nodes are selected; want %+v", tc.after, again, err, s.policy.Status.Nodes.Selected, tc)
		}
	}
}
