package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

func TestReboots_ReportsDeadlines(t *testing.T) {
	const day = 24 * time.Hour
	near, passed := v1alpha1.ReasonDeadlineNear, v1alpha1.ReasonDeadlinePassed
	for name, tc := range map[string]struct {
		hosts []*host
		want  plan.DeadlineReport
	}{
		"no node needs a reboot": {
			[]*host{newHost("a", needsSince(9*day))}, plan.DeadlineReport{Reason: v1alpha1.ReasonInTime},
		},
		"before three quarters of it": {
			[]*host{needy("a", needsSince(3*day-minute))}, plan.DeadlineReport{Reason: v1alpha1.ReasonInTime, Next: evening.Add(minute)},
		},
		"from three quarters of it on": {[]*host{needy("a", needsSince(3*day)), needy("b", needsSince(day))}, plan.DeadlineReport{
			Near: 1, Reason: near, Message: "1 node close to the deadline: a by Tue 2026-06-02 22:00:00 UTC", Next: evening.Add(day),
		}},
		"past it": {[]*host{needy("a", needsSince(4*day))}, plan.DeadlineReport{
			Passed: 1, Reason: passed, Message: "1 node past the deadline, 0 close to it: a since Mon 2026-06-01 22:00:00 UTC",
		}},
		"five nodes, those first that are due first": {
			append(hosts(needy, "a b c", needsSince(3*day)), needy("d", needsSince(5*day)), needy("e", needsSince(4*day))), plan.DeadlineReport{
				Near: 3, Passed: 2, Reason: passed, Next: evening.Add(day),
				Message: "2 nodes past the deadline, 3 close to it: d since Sun 2026-05-31 22:00:00 UTC, " +
					"e since Mon 2026-06-01 22:00:00 UTC, a by Tue 2026-06-02 22:00:00 UTC, and 2 more",
			},
		},
		"a paused node, and one that is being rebooted": {
			[]*host{needy("a", needsSince(4*day), annotated(v1alpha1.AnnotationPaused, "disk")), needy("b", needsSince(4*day), grant(1, v1alpha1.GrantActive))},
			plan.DeadlineReport{
				Passed: 2, Reason: passed,
				Message: "2 nodes past the deadline, 0 close to it: a since Mon 2026-06-01 22:00:00 UTC, b since Mon 2026-06-01 22:00:00 UTC",
			},
		},
		"nobody knows when the need began": {
			[]*host{needy("a", needsAt(time.Time{})), needy("b", needsAt(time.Unix(0, 0)))}, plan.DeadlineReport{Reason: v1alpha1.ReasonInTime},
		},
		"a need that has survived a reboot counts from that": {
			[]*host{needy("a", needsSince(9*day), grant(5, v1alpha1.GrantFinished, grantedAt(-minute)))},
			plan.DeadlineReport{Reason: v1alpha1.ReasonInTime, Next: evening.Add(3*day - minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want.Reason == v1alpha1.ReasonInTime {
				tc.want.Message = "no node has needed a reboot for three quarters of spec.deadline"
			}
			p := one(policy("workers", deadline(4*day)), tc.hosts...).plan()
			if diff := cmp.Diff(&tc.want, p.Deadlines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
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
