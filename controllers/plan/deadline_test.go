package plan_test

import (
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

func TestReboots_ReportsDeadlines(t *testing.T) {
	const day = 24 * time.Hour
	near, passed := v1alpha1.ReasonDeadlineNear, v1alpha1.ReasonDeadlinePassed
	for name, tc := range map[string]struct {
		hosts []*host
		want  plan.DeadlinesHealth
	}{
		"no node needs a reboot": {[]*host{newHost("a", needsSince(9*day))}, plan.DeadlinesHealth{Reason: v1alpha1.ReasonInTime}},
		"before three quarters of it": {
			[]*host{needy("a", needsSince(3*day-minute))}, plan.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(minute)},
		},
		"from three quarters of it on": {[]*host{needy("a", needsSince(3*day)), needy("b", needsSince(day))}, plan.DeadlinesHealth{
			Near: 1, Reason: near, Message: "1 node close to the deadline: a by Tue 2026-06-02 22:00:00 UTC", Next: evening.Add(day),
		}},
		"past it": {[]*host{needy("a", needsSince(4*day))}, plan.DeadlinesHealth{
			Passed: 1, PassedAt: evening, Reason: passed, Message: "1 node past the deadline, 0 close to it: a since Mon 2026-06-01 22:00:00 UTC",
		}},
		"five nodes, those first that are due first": {
			append(hosts(needy, "a b c", needsSince(3*day)), needy("d", needsSince(5*day)), needy("e", needsSince(4*day))), plan.DeadlinesHealth{
				Near: 3, Passed: 2, PassedAt: evening, Reason: passed, Next: evening.Add(day),
				Message: "2 nodes past the deadline, 3 close to it: d since Sun 2026-05-31 22:00:00 UTC, " +
					"e since Mon 2026-06-01 22:00:00 UTC, a by Tue 2026-06-02 22:00:00 UTC and 2 more",
			},
		},
		"a paused node, and one that is being rebooted": {
			[]*host{needy("a", needsSince(4*day), annotated(v1alpha1.AnnotationPaused, "disk")), needy("b", needsSince(4*day), grant(1, protocol.GrantActive))},
			plan.DeadlinesHealth{
				Passed: 2, PassedAt: evening, Reason: passed,
				Message: "2 nodes past the deadline, 0 close to it: a since Mon 2026-06-01 22:00:00 UTC, b since Mon 2026-06-01 22:00:00 UTC",
			},
		},
		"nobody knows when the need began": {
			[]*host{needy("a", needsAt(time.Time{})), needy("b", needsAt(time.Unix(0, 0)))}, plan.DeadlinesHealth{Reason: v1alpha1.ReasonInTime},
		},
		"a need that has survived a reboot counts from that": {
			[]*host{needy("a", needsSince(9*day), grant(5, protocol.GrantFinished, grantedAt(-minute)))},
			plan.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(3*day - minute)},
		},
		"and does so while the next reboot is granted": {
			[]*host{needy("a", needsSince(9*day), reportedBack(-minute), grant(6, protocol.GrantActive))},
			plan.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(3*day - minute)},
		},
		"and when that grant is taken back": {
			[]*host{needy("a", needsSince(9*day), reportedBack(-minute), grant(6, protocol.GrantCancelled))},
			plan.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(3*day - minute)},
		},
		"a need since the last reboot": {
			[]*host{needy("a", needsSince(3*day-minute), reportedBack(-9*day), grant(6, protocol.GrantCancelled))},
			plan.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want.Reason == v1alpha1.ReasonInTime {
				tc.want.Message = "no node has needed a reboot for three quarters of spec.deadline"
			}
			same(t, "deadlines", &tc.want, one(policy("workers", deadline(4*day)), tc.hosts...).plan().Deadlines)
		})
	}
	t.Run("without a deadline there is no such condition", func(t *testing.T) {
		if p := one(policy("workers"), needy("a", needsSince(99*day))).plan(); p.Deadlines != nil {
			t.Errorf("got %+v", p.Deadlines)
		}
	})
}

// TestReboots_OverdueNodesGoFirst: past their deadline, before all others of their ring, but no further than rings, limits and urgent
// requests let them.
func TestReboots_OverdueNodesGoFirst(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		hosts []*host
		want  string
	}{
		"before one that costs nobody anything":   {[]*host{needy("a", cordoned), needy("b", needsSince(day))}, "b"},
		"not before one of an earlier ring":       {[]*host{needy("a", needsSince(day)), needy("b", label("ring", "canary"))}, "b"},
		"not before an urgent request":            {[]*host{needy("a", needsSince(day)), needy("b", urgently)}, "b"},
		"of two, the one that has waited longest": {[]*host{needy("a", needsSince(day)), needy("b", needsSince(day+minute))}, "b"},
		"not before it is over":                   {[]*host{needy("a", needsSince(day-minute)), needy("b", cordoned)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers", atMost("2"), allowsUrgent, deadline(day), inRings("ring", ring("canary"))), tc.hosts...).plan()
			if len(p.Granted) == 0 || p.Granted[0].Node != tc.want {
				t.Errorf("granted %+v, want %s first", p.Granted, tc.want)
			}
		})
	}
}

// TestReboots_IgnoresWindowsPastADeadline: a node that is past it passes windows, where the policy says so, and nothing else.
func TestReboots_IgnoresWindowsPastADeadline(t *testing.T) {
	const day = 24 * time.Hour
	in := evening.Add
	closed := window.State{OpensAt: in(5 * time.Hour), Next: in(5 * time.Hour)}
	ends := window.State{Open: true, ClosesAt: in(minute), Next: in(minute)}
	frozen := window.State{Blackout: true, Name: "freeze", OpensAt: in(5 * time.Hour), Next: in(2 * time.Hour)}
	reports := policy("workers", deadline(day))
	late := []func(*host){needsSince(day)}
	for name, tc := range map[string]struct {
		policy  *v1alpha1.RebootPolicy
		window  window.State
		node    []func(*host)
		reason  v1alpha1.Reason
		message string
		next    time.Time
	}{
		"no window is open":                  {window: closed, node: late},
		"what is left of a window":           {window: ends, node: late},
		"not where the policy only reports":  {reports, closed, late, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(5 * time.Hour)},
		"not a blackout":                     {nil, frozen, late, v1alpha1.ReasonBlackout, "blackout freeze is in force, until Tue 2026-06-02 00:00:00 UTC or longer", in(2 * time.Hour)},
		"not a blackout that it ends in":     {nil, frozen, []func(*host){needsSince(day - time.Hour)}, v1alpha1.ReasonBlackout, "blackout freeze is in force, until Tue 2026-06-02 00:00:00 UTC or longer", in(time.Hour)},
		"after a blackout, not before it":    {nil, frozen, []func(*host){needsSince(day - 3*time.Hour)}, v1alpha1.ReasonBlackout, "blackout freeze is in force; this node may start Tue 2026-06-02 01:00:00 UTC, at its deadline, or later", in(2 * time.Hour)},
		"after a blackout and an opening":    {nil, frozen, []func(*host){needsSince(day - 6*time.Hour)}, v1alpha1.ReasonBlackout, "blackout freeze is in force; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(2 * time.Hour)},
		"not before it ends":                 {nil, closed, []func(*host){needsSince(day - time.Hour)}, v1alpha1.ReasonWindowClosed, "no window is open; this node may start Mon 2026-06-01 23:00:00 UTC, at its deadline", in(time.Hour)},
		"the window opens before it ends":    {nil, closed, []func(*host){needsSince(day - 6*time.Hour)}, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(5 * time.Hour)},
		"not a pause":                        {policy("workers", deadline(day), ignoresWindows, paused(nil, "")), closed, late, v1alpha1.ReasonPaused, "policy workers is paused", in(5 * time.Hour)},
		"not the pause of the node":          {nil, closed, append(late, annotated(v1alpha1.AnnotationPaused, "true")), v1alpha1.ReasonNodePaused, "the node is paused; kubectl annotate node a reboot-operator.io/paused- goes on", in(5 * time.Hour)},
		"not the limit":                      {policy("workers", deadline(day), ignoresWindows, atMost("0")), closed, late, v1alpha1.ReasonBudgetExhausted, "maxUnavailable is 0: no node may be rebooted", in(5 * time.Hour)},
		"not where the beginning is unknown": {nil, closed, []func(*host){needsAt(time.Time{})}, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(5 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.policy == nil {
				tc.policy = policy("workers", deadline(day), ignoresWindows)
			}
			s := one(tc.policy, needy("a", tc.node...))
			s.window = &tc.window
			p := s.plan()
			if tc.reason == "" {
				if len(p.Granted) != 1 {
					t.Fatalf("granted %+v, decided %+v", p.Granted, p.Decisions)
				}
				return
			}
			if len(p.Granted) > 0 || len(p.Decisions) != 1 || p.Decisions[0].Reason != tc.reason || p.Decisions[0].Message != tc.message {
				t.Errorf("granted %+v, decided %+v, want %s: %s", p.Granted, p.Decisions, tc.reason, tc.message)
			}
			same(t, "next", tc.next, p.Next)
		})
	}
}
