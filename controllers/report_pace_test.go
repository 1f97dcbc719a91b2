package controllers

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Changes of counts alone write the status of a policy at most every 15 s, and postponed changes
// are written by then.
func TestReport_CountsAloneWait(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC))
	s := newServer(t, 2*needy, now)
	before := s.policy().Status.Nodes.Selected
	s.create(t, serverNode(2*needy, false, now.Now()))
	for _, tc := range []struct {
		after, again time.Duration
		want         int32
	}{{again: 15 * time.Second, want: before}, {after: 14 * time.Second, again: time.Second, want: before}, {after: time.Second, again: time.Minute, want: before + 1}} {
		now.SetTime(now.Now().Add(tc.after))
		result, err := s.reconciler.Reconcile(t.Context(), request(workers))
		again := min(result.RequeueAfter, time.Minute) // later, other changes are due
		if err != nil || again != tc.again || s.policy().Status.Nodes.Selected != tc.want {
			t.Errorf("after %s: again in %s (%v), %d nodes are selected; want %+v", tc.after, again, err, s.policy().Status.Nodes.Selected, tc)
		}
	}
}

// The wall clock may be set, or the machine suspended, while a timer runs. So a window that should
// open in nine hours may open in a minute.
func TestDelay_LooksAtTheClockAgain(t *testing.T) {
	now := time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		next    time.Time
		delayed time.Duration
		least   time.Duration
		most    time.Duration
	}{
		"nothing is due":                    {},
		"a postponed write":                 {delayed: time.Minute, least: time.Minute, most: time.Minute},
		"in nine hours":                     {next: now.Add(9 * time.Hour), least: time.Minute, most: 15 * time.Minute},
		"in a century":                      {next: now.AddDate(100, 0, 0), least: time.Minute, most: 15 * time.Minute},
		"in a minute, never early":          {next: now.Add(time.Minute), least: time.Minute, most: time.Minute + time.Second},
		"in the past":                       {next: now.Add(-time.Hour), least: time.Millisecond, most: time.Second},
		"in nine hours, and delayed":        {next: now.Add(9 * time.Hour), delayed: time.Second, least: time.Second, most: time.Second},
		"in a second, and delayed for long": {next: now.Add(time.Second), delayed: time.Hour, least: time.Second, most: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{later: tc.delayed}
			s.putOffUntil(tc.next, now)
			if got := s.later; got < tc.least || got > tc.most {
				t.Errorf("the next pass comes after %s, want %s to %s", got, tc.least, tc.most)
			}
		})
	}
}
