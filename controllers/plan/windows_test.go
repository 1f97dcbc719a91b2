package plan_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// TestReboots_Window checks status.window: a pause or halt by a person comes before the windows.
func TestReboots_Window(t *testing.T) {
	soon, past := metav1.NewTime(evening.Add(time.Hour)), metav1.NewTime(evening)
	open, closed := window.State{Open: true}, window.State{}
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		window window.State
		want   v1alpha1.WindowState
	}{
		"no windows":                {policy("workers"), window.State{Open: true, Always: true}, v1alpha1.WindowAlways},
		"an open window":            {policy("workers"), open, v1alpha1.WindowOpen},
		"a closed window":           {policy("workers"), closed, v1alpha1.WindowClosed},
		"a blackout":                {policy("workers"), window.State{Always: true, Blackout: true}, v1alpha1.WindowClosed},
		"paused in an open window":  {policy("workers", paused(nil, "")), open, v1alpha1.WindowPaused},
		"paused for an hour":        {policy("workers", paused(&soon, "")), closed, v1alpha1.WindowPaused},
		"a pause that is over":      {policy("workers", paused(&past, "")), open, v1alpha1.WindowOpen},
		"urgent":                    {policy("workers"), window.State{Open: true, Urgent: true}, v1alpha1.WindowUrgent},
		"urgent, and paused":        {policy("workers", paused(nil, ""), urgent(soon.Time, "Windows")), window.State{Open: true, Urgent: true}, v1alpha1.WindowPaused},
		"urgent in spite of pauses": {policy("workers", paused(nil, ""), urgent(soon.Time, "Pause")), window.State{Open: true, Urgent: true}, v1alpha1.WindowUrgent},
		"no longer urgent":          {policy("workers", paused(nil, ""), urgent(past.Time, "Pause")), open, v1alpha1.WindowPaused},
		"urgent, and halted":        {policy("workers", halted, urgent(soon.Time, "Pause")), window.State{Open: true, Urgent: true}, v1alpha1.WindowHalted},
		"halted, paused and closed": {policy("workers", halted, paused(nil, "")), closed, v1alpha1.WindowHalted},
		"invalid, and halted":       {policy("workers", halted, atMost("many")), open, v1alpha1.WindowInvalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "window", tc.want, one(tc.policy).in(tc.window).plan().Window)
		})
	}
}

// urgent makes the policy ignore windows, blackouts or a pause until a given time.
func urgent(until time.Time, ignore ...v1alpha1.UrgentIgnore) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		urgentOf(p).All = &v1alpha1.UrgentPeriod{Until: metav1.NewTime(until), Reason: "CVE-2026-12345", Ignore: ignore}
	}
}

func TestReboots_ReportsDeadlines(t *testing.T) {
	const day = 24 * time.Hour
	near, passed := v1alpha1.ReasonDeadlineNear, v1alpha1.ReasonDeadlinePassed
	for name, tc := range map[string]struct {
		hosts []*host
		want  report.DeadlinesHealth
	}{
		"no node needs a reboot": {[]*host{newHost("a", needsSince(9*day))}, report.DeadlinesHealth{Reason: v1alpha1.ReasonInTime}},
		"before three quarters of the deadline": {
			[]*host{needy("a", needsSince(3*day-minute))}, report.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(minute)},
		},
		"from three quarters of the deadline on": {[]*host{needy("a", needsSince(3*day)), needy("b", needsSince(day))}, report.DeadlinesHealth{
			Near: 1, Reason: near, Message: "1 node close to the deadline: a by Tue 2026-06-02 22:00:00 UTC", Next: evening.Add(day),
		}},
		"past it": {[]*host{needy("a", needsSince(4*day))}, report.DeadlinesHealth{
			Passed: 1, PassedAt: evening, Reason: passed, Message: "1 node past the deadline, 0 close to it: a since Mon 2026-06-01 22:00:00 UTC",
		}},
		"five nodes, sorted by deadline": {
			append(hosts(needy, "a b c", needsSince(3*day)), needy("d", needsSince(5*day)), needy("e", needsSince(4*day))), report.DeadlinesHealth{
				Near: 3, Passed: 2, PassedAt: evening, Reason: passed, Next: evening.Add(day),
				Message: "2 nodes past the deadline, 3 close to it: d since Sun 2026-05-31 22:00:00 UTC, " +
					"e since Mon 2026-06-01 22:00:00 UTC, a by Tue 2026-06-02 22:00:00 UTC and 2 more",
			},
		},
		"a paused node, and one that is being rebooted": {
			[]*host{needy("a", needsSince(4*day), annotated(v1alpha1.AnnotationPaused, "disk")), needy("b", needsSince(4*day), grant(1, protocol.GrantActive))},
			report.DeadlinesHealth{
				Passed: 2, PassedAt: evening, Reason: passed,
				Message: "2 nodes past the deadline, 0 close to it: a since Mon 2026-06-01 22:00:00 UTC, b since Mon 2026-06-01 22:00:00 UTC",
			},
		},
		"the start of the need is unknown": {
			[]*host{needy("a", needsAt(time.Time{})), needy("b", needsAt(time.Unix(0, 0)))}, report.DeadlinesHealth{Reason: v1alpha1.ReasonInTime},
		},
		"a need that survived a reboot counts from that reboot": {
			[]*host{needy("a", needsSince(9*day), grant(5, protocol.GrantFinished, grantedAt(-minute)))},
			report.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(3*day - minute)},
		},
		"a need that survived a reboot counts from it while the next one is granted": {
			[]*host{needy("a", needsSince(9*day), reportedBack(-minute), grant(6, protocol.GrantActive))},
			report.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(3*day - minute)},
		},
		"a need that survived a reboot counts from it when the next grant is cancelled": {
			[]*host{needy("a", needsSince(9*day), reportedBack(-minute), grant(6, protocol.GrantCancelled))},
			report.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(3*day - minute)},
		},
		"a need since the last reboot": {
			[]*host{needy("a", needsSince(3*day-minute), reportedBack(-9*day), grant(6, protocol.GrantCancelled))},
			report.DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Next: evening.Add(minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want.Reason == v1alpha1.ReasonInTime {
				tc.want.Message = "no node has needed a reboot for three quarters of spec.deadline"
			}
			same(t, "deadlines", &tc.want, one(policy("workers", deadline(4*day)), tc.hosts...).plan().Deadlines)
		})
	}
	t.Run("no condition without a deadline", func(t *testing.T) {
		if p := one(policy("workers"), needy("a", needsSince(99*day))).plan(); p.Deadlines != nil {
			t.Errorf("got %+v", p.Deadlines)
		}
	})
}

// TestReboots_OverdueNodesGoFirst checks that nodes past their deadline go before all others of
// their ring, within the limits of rings, maxUnavailable and urgent requests.
func TestReboots_OverdueNodesGoFirst(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		hosts []*host
		want  string
	}{
		"before a node that is down already":      {[]*host{needy("a", cordoned), needy("b", needsSince(day))}, "b"},
		"not before a node of an earlier ring":    {[]*host{needy("a", needsSince(day)), needy("b", label("ring", "canary"))}, "b"},
		"not before an urgent request":            {[]*host{needy("a", needsSince(day)), needy("b", urgently)}, "b"},
		"of two, the one that has waited longest": {[]*host{needy("a", needsSince(day)), needy("b", needsSince(day+minute))}, "b"},
		"not before the deadline has passed":      {[]*host{needy("a", needsSince(day-minute)), needy("b", cordoned)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers", atMost("2"), allowsUrgent, deadline(day), inRings("ring", ring("canary"))), tc.hosts...).plan()
			if len(p.Ledger.Granted) == 0 || p.Ledger.Granted[0].Node != tc.want {
				t.Errorf("granted %+v, want %s first", p.Ledger.Granted, tc.want)
			}
		})
	}
}

// TestReboots_IgnoresWindowsPastADeadline checks that a node past its deadline ignores windows if
// the policy allows it, and nothing else.
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
		"no window is open": {window: closed, node: late},
		"the rest of a window, although it is too short": {window: ends, node: late},
		"not if the policy has mode DryRun":              {reports, closed, late, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(5 * time.Hour)},
		"not a blackout":                                 {nil, frozen, late, v1alpha1.ReasonBlackout, "blackout freeze is in force, until Tue 2026-06-02 00:00:00 UTC or longer", in(2 * time.Hour)},
		"not a blackout in which the deadline ends":      {nil, frozen, []func(*host){needsSince(day - time.Hour)}, v1alpha1.ReasonBlackout, "blackout freeze is in force, until Tue 2026-06-02 00:00:00 UTC or longer", in(time.Hour)},
		"after a blackout, not before it":                {nil, frozen, []func(*host){needsSince(day - 3*time.Hour)}, v1alpha1.ReasonBlackout, "blackout freeze is in force; this node may start Tue 2026-06-02 01:00:00 UTC, at its deadline, or later", in(2 * time.Hour)},
		"after a blackout and the opening of a window":   {nil, frozen, []func(*host){needsSince(day - 6*time.Hour)}, v1alpha1.ReasonBlackout, "blackout freeze is in force; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(2 * time.Hour)},
		"not before the deadline ends":                   {nil, closed, []func(*host){needsSince(day - time.Hour)}, v1alpha1.ReasonWindowClosed, "no window is open; this node may start Mon 2026-06-01 23:00:00 UTC, at its deadline", in(time.Hour)},
		"the window opens before it ends":                {nil, closed, []func(*host){needsSince(day - 6*time.Hour)}, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(5 * time.Hour)},
		"not a pause":                                    {policy("workers", deadline(day), ignoresWindows, paused(nil, "")), closed, late, v1alpha1.ReasonPaused, "policy workers is paused", in(5 * time.Hour)},
		"not the pause of the node":                      {nil, closed, append(late, annotated(v1alpha1.AnnotationPaused, "true")), v1alpha1.ReasonNodePaused, "the node is paused; to resume: kubectl annotate node a reboot-operator.io/paused-", in(5 * time.Hour)},
		"not the limit":                                  {policy("workers", deadline(day), ignoresWindows, atMost("0")), closed, late, v1alpha1.ReasonBudgetExhausted, "maxUnavailable is 0: no node may be rebooted", in(5 * time.Hour)},
		"not if the start of the need is unknown":        {nil, closed, []func(*host){needsAt(time.Time{})}, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 03:00:00 UTC", in(5 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.policy == nil {
				tc.policy = policy("workers", deadline(day), ignoresWindows)
			}
			s := one(tc.policy, needy("a", tc.node...))
			s.window = &tc.window
			p := s.plan()
			if tc.reason == "" {
				if len(p.Ledger.Granted) != 1 {
					t.Fatalf("granted %+v, decided %+v", p.Ledger.Granted, p.Decisions)
				}
				return
			}
			if len(p.Ledger.Granted) > 0 || len(p.Decisions) != 1 || p.Decisions[0].Reason != tc.reason || p.Decisions[0].Message != tc.message {
				t.Errorf("granted %+v, decided %+v, want %s: %s", p.Ledger.Granted, p.Decisions, tc.reason, tc.message)
			}
			same(t, "next", tc.next, p.Next)
		})
	}
}

// TestReboots_WindowTooShort checks the time that must be left in a window to begin a reboot.
func TestReboots_WindowTooShort(t *testing.T) {
	remembers := func(history ...v1alpha1.PastReboot) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) { p.Status.History = history }
	}
	took := func(drain, reboot time.Duration) v1alpha1.PastReboot {
		return v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, Drain: lasts(drain), Reboot: lasts(reboot)}
	}
	open := func(length time.Duration) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Spec.Windows = []v1alpha1.Window{
				{Name: "short", Start: "00:00", Duration: v1alpha1.Duration{Duration: minute}},
				{Name: "w", Start: "22:00", Duration: v1alpha1.Duration{Duration: length}},
			}
		}
	}
	nine := slices.Repeat([]v1alpha1.PastReboot{took(minute, minute)}, 9)
	blackouts := func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: 20 * minute}, VolumeDetachTimeout: &v1alpha1.Duration{Duration: 5 * minute}}
		p.Spec.Reboot = &v1alpha1.Reboot{Timeout: &v1alpha1.Duration{Duration: 15 * minute}}
	}
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		left   time.Duration
		short  bool
	}{
		"without windows, before a blackout, all the time-outs":    {policy("workers", blackouts, remembers(took(9*time.Hour, 0))), 40 * minute, false},
		"without windows, before a blackout, a second less":        {policy("workers", blackouts, remembers(took(9*time.Hour, 0))), 40*minute - time.Second, true},
		"before the first reboot, five minutes":                    {policy("workers", open(4*time.Hour)), 5 * minute, false},
		"before the first reboot, a second less":                   {policy("workers", open(4*time.Hour)), 5*minute - time.Second, true},
		"before the first reboot, the lead time and five minutes":  {policy("workers", open(4*time.Hour), leads(10*minute)), 15 * minute, false},
		"before the first reboot, the lead time and a second less": {policy("workers", open(4*time.Hour), leads(10*minute)), 15*minute - time.Second, true},
		"a lead time that no reboot has had yet":                   {policy("workers", open(4*time.Hour), leads(10*minute), remembers(took(minute, 10*minute))), 20*minute - time.Second, true},
		"as long as the last reboot took":                          {policy("workers", open(4*time.Hour), remembers(took(20*minute, 10*minute))), 30 * minute, false},
		"a second less than the last reboot took":                  {policy("workers", open(4*time.Hour), remembers(took(20*minute, 10*minute))), 30*minute - time.Second, true},
		"one slow reboot in ten is left out":                       {policy("workers", open(4*time.Hour), remembers(append(nine, took(time.Hour, 0))...)), 2 * minute, false},
		"two in eleven count":                                      {policy("workers", open(4*time.Hour), remembers(append(nine, took(20*minute, 0), took(20*minute, 0))...)), 19 * minute, true},
		"a drain that was given up does not count":                 {policy("workers", open(4*time.Hour), remembers(v1alpha1.PastReboot{Result: v1alpha1.RebootAborted, Drain: lasts(time.Hour)})), 5 * minute, false},
		"half of the longest window always suffices":               {policy("workers", open(time.Hour), remembers(took(9*time.Hour, 0))), 30 * minute, false},
		"less than half of the longest window does not suffice":    {policy("workers", open(time.Hour), remembers(took(9*time.Hour, 0))), 30*minute - time.Second, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := one(tc.policy, needy("a"))
			s.window = &window.State{Open: true, Name: "w", ClosesAt: evening.Add(tc.left), Next: evening.Add(tc.left)}
			p := s.plan()
			got := refusals(p)
			closes := evening.Add(tc.left).UTC().Format("Mon 2006-01-02 15:04:05 UTC")
			want := map[string]string{"a": "WindowTooShort: the window closes " + closes +
				", too soon for another reboot; status.history shows how long a drain and a reboot take"}
			if !tc.short {
				want = nil
			}
			same(t, "waits", want, got)
			if turns := evening.Add(tc.left); !tc.short && (p.Next.IsZero() || p.Next.After(turns)) {
				t.Errorf("the plan is looked at again %v, after the window is too short", p.Next)
			}
		})
	}
}
