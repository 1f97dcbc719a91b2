package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A node is held back after a failed attempt: 5 minutes, doubling to 6 hours. The instant itself is free again.
func TestReboots_BackOff(t *testing.T) {
	cases := map[string]struct {
		failures int32
		want     time.Duration
	}{
		"first failure":       {1, 5 * time.Minute},
		"second":              {2, 10 * time.Minute},
		"third":               {3, 20 * time.Minute},
		"seventh":             {7, 320 * time.Minute},
		"eighth":              {8, 6 * time.Hour},
		"ninth":               {9, 6 * time.Hour},
		"as many as there be": {math.MaxInt32, 6 * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers"), needy("worker-1",
				progress(1, protocol.PhaseAborted, failed(tc.failures, v1alpha1.ReasonDrainTimedOut, "db-0 stays"))))
			s.now = evening.Add(tc.want - time.Second)
			if p := s.plan(); len(p.Granted) != 0 || !p.Next.Equal(evening.Add(tc.want)) {
				t.Errorf("a second before: granted %v, next %v", p.Granted, p.Next)
			}
			s.now = evening.Add(tc.want)
			if p := s.plan(); len(p.Granted) != 1 {
				t.Errorf("then: %+v", p.Decisions)
			}
		})
	}
}

// A clock that is ahead holds its node back for little longer than any other, and one that is behind not for less: the back-off
// counts from when its drain must have ended, and neither from the future nor from before the grant.
func TestReboots_BackOffOfAClockThatIsOff(t *testing.T) {
	const longest = 5*time.Minute + 20*time.Minute + 5*time.Minute // to begin, to drain, and for volumes
	for name, off := range map[string]time.Duration{
		"ahead by an hour": time.Hour, "ahead by a year": 365 * 24 * time.Hour, "behind by an hour": -time.Hour, "behind by twenty years": -20 * 365 * 24 * time.Hour,
	} {
		s := one(policy("workers"), needy("worker-1", grant(1, protocol.GrantActive),
			progress(1, protocol.PhaseAborted, phaseAt(off), failed(1, v1alpha1.ReasonDrainTimedOut, ""))))
		for after, want := range map[time.Duration]int{
			minute: 0, longest + 5*time.Minute - time.Second: 0, longest + 5*time.Minute: 1, off.Abs() - minute: 1, off.Abs() + minute: 1,
		} {
			s.now = evening.Add(after)
			if p := s.plan(); len(p.Granted) != want {
				t.Errorf("%s, %s after the grant: granted %v, decisions %v", name, after, p.Granted, p.Decisions)
			}
		}
	}
}

// A node whose before-hooks refused gives its slot to others for a quarter of an hour.
func TestReboots_HookBackOff(t *testing.T) {
	s := one(policy("workers", failuresMax(3)),
		needy("worker-1", grant(1, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonHookFailed), because("example.com/a: failed: no disk"))),
		needy("worker-2", grant(1, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonHookTimedOut)))) // with no message
	s.now = evening.Add(14 * minute)
	var got []string
	p := s.plan()
	for _, d := range p.Decisions {
		got = append(got, d.Message)
	}
	want := []string{
		"the last attempt failed (HookFailed): example.com/a: failed: no disk; the next attempt is due Mon 2026-06-01 22:15:00 UTC",
		"the last attempt failed (HookTimedOut); the next attempt is due Mon 2026-06-01 22:15:00 UTC",
	}
	same(t, "messages", want, got)
	same(t, "failed", int32(2), p.Counts.Failed)
	if s.now = evening.Add(15 * minute); len(s.plan().Granted) != 1 {
		t.Error("held back for longer than a quarter of an hour")
	}
}

// TestReboots_NoBackOff: what does not hold a node back.
func TestReboots_NoBackOff(t *testing.T) {
	otherBoot := func(p *protocol.Progress) { p.BootID = "another" }
	cases := map[string]func(*host){
		"an attempt that was cancelled":               progress(1, protocol.PhaseAborted, failed(0, v1alpha1.ReasonCancelled, "")),
		"a failure in an earlier boot (behaviour 50)": progress(1, protocol.PhaseAborted, failed(3, v1alpha1.ReasonDrainTimedOut, ""), otherBoot),
		"a silent agent, a quarter of an hour ago":    grant(1, protocol.GrantCancelled, cancelledAt(-15*time.Minute, v1alpha1.ReasonAgentSilent)),
		"a before-hook that refused in an earlier boot": grant(1, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonHookFailed),
			func(g *protocol.Grant) { g.BootID = "another" }),
		"a reboot that is finished": func(h *host) {
			grant(1, protocol.GrantFinished)(h)
			progress(1, protocol.PhaseRebooting, failed(2, "", ""), otherBoot)(h)
		},
	}
	for name, option := range cases {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers"), needy("worker-1", option)).plan()
			if len(p.Granted) != 1 || p.Granted[0].Seq != 2 {
				t.Errorf("granted %v, decisions %v", p.Granted, p.Decisions)
			}
		})
	}
}
