package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// TestReboots_Counts checks the numbers for status and metrics.
func TestReboots_Counts(t *testing.T) {
	const active = protocol.GrantActive
	p := situation{
		policies: []*v1alpha1.RebootPolicy{
			policy("workers", atMost("5"), maxFailures(9), holding(4, entry("drains", 1), entry("late", 2), entry("back", 3), entry("gone", 4))),
			policy("zoo", selects("zoo", "yes")),
		},
		hosts: []*host{
			needy("drains", grant(1, active), progress(1, protocol.PhaseDraining)),
			newHost("late", grant(2, active, grantedAt(-time.Hour)), progress(2, protocol.PhaseRebooting, phaseAt(-time.Hour)), notReady),
			newHost("back", grant(3, protocol.GrantFinished), progress(3, protocol.PhaseRebooting)),
			needy("next"), needy("failed", progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, ""))),
			newHost("broken", notReady), newHost("mute", nodeCondition(v1alpha1.NodeRebootRequired, corev1.ConditionUnknown, 0)),
			newHost("bare", func(h *host) { h.node.Status.Conditions = h.node.Status.Conditions[:1] }),
			needy("disputed", label("zoo", "yes")),
		},
	}.plan()
	want := v1alpha1.NodeCounts{
		Selected: 8, Reporting: 6, RebootRequired: 3, Granted: 3, Rebooting: 1, Blocked: 2, Unavailable: 4, Failed: 2,
	}
	same(t, "counts", want, p.Counts)
	same(t, "conflicts", []governor.Conflict{{Policies: []string{"workers", "zoo"}, Nodes: []string{"disputed"}, Pending: []string{"disputed"}}}, p.Conflicts)
}

// TestReboots_CountsOfADryRun checks that a dry run counts the nodes as they are, not as they would
// be.
func TestReboots_CountsOfADryRun(t *testing.T) {
	p := one(policy("workers", dryRun, atMost("1")), needy("a", needsSince(5*time.Hour)), needy("b")).plan()
	want := v1alpha1.NodeCounts{Selected: 2, Reporting: 2, RebootRequired: 2, Blocked: 2}
	same(t, "counts", want, p.Counts)
	same(t, "since when the oldest waits", evening.Add(-5*time.Hour), p.OldestPending)
}

// TestReboots_BlockedByReasonsOfTheAgentsOwn checks that the number of reasons stays within the
// API's limit. Otherwise the status would be refused, and every grant with it.
func TestReboots_BlockedByReasonsOfTheAgentsOwn(t *testing.T) {
	var hosts []*host
	for i := range 40 {
		reason := string(rune('A'+i%26)) + strings.Repeat("x", i)
		hosts = append(hosts, needy(fmt.Sprintf("n%02d", i), agentBlocking(`{"reason":"`+reason+`","message":""}`)))
	}
	if p := one(policy("workers"), hosts...).plan(); len(p.Blocked) != 32 || p.Counts.Blocked != 40 {
		t.Errorf("%d reasons for %d nodes, want 32 for 40", len(p.Blocked), p.Counts.Blocked)
	}
}

// TestReboots_Blocked checks why nodes wait, with at most five names for a reason. Reasons that
// need somebody come first, because kubectl shows only one. Then come the most frequent, ties by
// name.
func TestReboots_Blocked(t *testing.T) {
	p := one(policy("workers", atMost("0")),
		append(hosts(needy, "n7 n6 n5 n4 n3 n2 n1"), needy("p2", annotated(v1alpha1.AnnotationPaused, "true")),
			needy("p1", annotated(v1alpha1.AnnotationPaused, "true")), needy("x", notReady), needy("y", agentBlocking(`{"reason":"Inhibited"}`)),
			needy("z", agentBlocking(`{"reason":"JustBooted"}`)))...,
	).plan()
	want := []v1alpha1.BlockedNodes{
		{Reason: v1alpha1.ReasonInhibited, Count: 1, Nodes: []string{"y"}},
		{Reason: v1alpha1.ReasonNodeUnavailable, Count: 1, Nodes: []string{"x"}},
		{Reason: v1alpha1.ReasonBudgetExhausted, Count: 7, Nodes: []string{"n1", "n2", "n3", "n4", "n5"}},
		{Reason: v1alpha1.ReasonNodePaused, Count: 2, Nodes: []string{"p1", "p2"}},
		{Reason: v1alpha1.ReasonJustBooted, Count: 1, Nodes: []string{"z"}},
	}
	same(t, "blocked", want, p.Blocked)
}

// TestReboots_OldestPending checks the start of the longest wait.
func TestReboots_OldestPending(t *testing.T) {
	cases := map[string]struct {
		situation situation
		want      time.Time
	}{
		"no node waits":                    {situation: one(policy("workers"), newHost("a"))},
		"the only pending node is granted": {situation: one(policy("workers"), needy("a"))},
		"the pending node that is not granted": {
			one(policy("workers"), needy("a", needsSince(5*time.Hour)), needy("b", needsSince(3*time.Hour)), needy("c")), evening.Add(-3 * time.Hour),
		},
		"not a node that reboots": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", needsSince(5*time.Hour), grant(1, protocol.GrantActive)), needy("b")),
			evening.Add(-time.Hour),
		},
		"a node that backs off": {
			one(policy("workers"), needy("a", progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))), evening.Add(-time.Hour),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "since when the oldest waits", tc.want, tc.situation.plan().OldestPending)
		})
	}
}

// TestReboots_Next checks the next time at which the answer changes by itself. The manager sleeps
// until then.
func TestReboots_Next(t *testing.T) {
	const active = protocol.GrantActive
	in := evening.Add
	until := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: in(d)} }
	held := func(options ...func(*host)) situation {
		return one(policy("workers", holding(1, entry("a", 1))), needy("a", append([]func(*host){grant(1, active)}, options...)...))
	}
	atOnce := func(p *v1alpha1.RebootPolicy) { p.Spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}} }
	cases := map[string]struct {
		situation situation
		want      time.Time
	}{
		"nothing is going to happen by itself": {situation: one(policy("workers"), newHost("a"))},
		"waiting for an unavailable node: reported after an hour": {
			one(policy("workers"), needy("a"), newHost("b", notReady)), in(time.Hour),
		},
		"the windows change": {one(policy("workers")).in(window.State{Open: true, Next: in(time.Hour)}), in(time.Hour)},
		"the window opens": {
			one(policy("workers"), needy("a")).in(window.State{OpensAt: in(2 * time.Hour), Next: in(3 * time.Hour)}), in(2 * time.Hour),
		},
		"the window becomes too short": {
			one(policy("workers"), needy("a")).in(window.State{Open: true, ClosesAt: in(time.Hour), Next: in(time.Hour)}), in(55 * minute).Add(1),
		},
		"the window becomes too short right after now": {
			one(policy("workers"), needy("a")).in(window.State{Open: true, ClosesAt: in(5 * minute), Next: in(5 * minute)}), in(1),
		},
		"the window is already too short": {
			one(policy("workers"), needy("a")).in(window.State{Open: true, ClosesAt: in(4 * minute), Next: in(4 * minute)}), in(4 * minute),
		},
		"the blackout ends": {
			one(policy("workers"), needy("a")).in(window.State{Blackout: true, OpensAt: in(2 * time.Hour), Next: in(3 * time.Hour)}), in(2 * time.Hour),
		},
		"hooks run, and will be reported": {
			one(policy("workers", hooked("example.com/a"), holding(1, entry("a", 1))), needy("a", phase(1, v1alpha1.HooksBefore, -minute))), in(4 * minute),
		},
		"hooks run, and have been reported": {
			one(policy("workers", hooked("example.com/a"), holding(1, entry("a", 1))), needy("a", phase(1, v1alpha1.HooksBefore, -6*minute))), in(time.Hour),
		},
		"the pause ends":                    {one(policy("workers", paused(until(time.Hour), ""))), in(time.Hour)},
		"the pause is over":                 {situation: one(policy("workers", paused(until(0), "")))},
		"the pause has no end":              {situation: one(policy("workers", paused(nil, "")), needy("a"))},
		"the pause ends with nodes waiting": {one(policy("workers", paused(until(time.Hour), "")), needy("a")), in(time.Hour)},
		"a deadline comes near":             {one(policy("workers", paused(nil, ""), deadline(4*time.Hour)), needy("a", needsSince(time.Hour))), in(2 * time.Hour)},
		"a deadline ends":                   {one(policy("workers", paused(nil, ""), deadline(4*time.Hour)), needy("a", needsSince(3*time.Hour))), in(time.Hour)},
		"a deadline is over":                {situation: one(policy("workers", paused(nil, ""), deadline(4*time.Hour)), needy("a", needsSince(4*time.Hour)))},
		"an agent has not begun":            {held(), in(5 * minute)},
		"a drain is under way":              {held(progress(1, protocol.PhaseDraining)), in(30 * minute)},
		"a drain is overdue":                {situation: held(grant(1, active, grantedAt(-time.Hour)), progress(1, protocol.PhaseDraining, phaseAt(-time.Hour)))},
		"a reboot is under way":             {held(progress(1, protocol.PhaseRebooting, phaseAt(-minute))), in(29 * minute)},
		"a reboot is overdue":               {situation: held(grant(1, active, grantedAt(-time.Hour)), progress(1, protocol.PhaseRebooting, phaseAt(-time.Hour)))},
		"a node settles":                    {held(progress(1, protocol.PhaseRebooting), rebooted(-30*time.Second, -40*time.Second)), in(30 * time.Second)},
		"a node backs off": {
			one(policy("workers"), needy("a", progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))), in(5 * minute),
		},
		"the autoscaler grace of a node ends": {
			one(policy("workers"), newHost("a", grant(1, over, withAnnotations(v1alpha1.AnnotationDoNotDisrupt), grantedAt(-minute)))), in(14 * minute),
		},
		"the autoscaler grace of a node that backs off ends": {
			one(policy("workers", grace(3*minute)), needy("a", grant(1, active, withAnnotations(v1alpha1.AnnotationDoNotDisrupt), grantedAt(-minute)),
				progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))), in(3 * minute),
		},
		"an attempt failed by a clock that is ahead": {
			one(policy("workers"), needy("a", progress(1, protocol.PhaseAborted, phaseAt(30*minute), failed(1, v1alpha1.ReasonDrainTimedOut, "")))), in(25 * minute),
		},
		"a node is back, and its kubelet's clock is ahead": {
			one(policy("workers", atOnce, holding(1, entry("a", 1))), needy("a", grant(1, active), progress(1, protocol.PhaseRebooting), rebooted(20*minute, 0))), in(15 * minute),
		},
		"a node is back, and its agent's clock is ahead": {
			one(policy("workers", atOnce, holding(1, entry("a", 1))), needy("a", grant(1, active), progress(1, protocol.PhaseRebooting), rebooted(0, 20*minute))), in(15 * minute),
		},
		"the last reboot, by a leader whose clock was ahead":       {one(policy("workers", lastReboot(24*time.Hour)), newHost("a")), in(24*time.Hour - 5*minute)},
		"a policy was resumed, by a leader whose clock was ahead":  {one(policy("workers", resumedAt(24*time.Hour)), newHost("a")), in(24*time.Hour - 5*minute)},
		"an end in the history, by a leader whose clock was ahead": {one(policy("workers", lost("a", "", 24*time.Hour))), in(24*time.Hour - 5*minute)},
		"the earliest of several times": {
			one(policy("workers", atMost("9"), holding(1, entry("a", 1))), needy("a", grant(1, active)),
				needy("b", progress(1, protocol.PhaseAborted, phaseAt(-4*minute), failed(1, v1alpha1.ReasonDrainTimedOut, "")))).
				in(window.State{Open: true, Next: in(time.Hour)}), in(minute),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "next", tc.want, tc.situation.plan().Next)
		})
	}
}

// fleetOf returns nodes that run what the strings name, such as "flatcar stable 4593.1.0" or
// "ubuntu - 24.04". Those with an exclamation mark need a reboot.
func fleetOf(runs ...string) situation {
	hosts := make([]*host, len(runs))
	for i, run := range runs {
		fields := strings.Fields(strings.TrimSuffix(run, "!"))
		hosts[i] = newHost(fmt.Sprintf("n%02d", i))
		if strings.HasSuffix(run, "!") {
			hosts[i] = needy(hosts[i].name)
		}
		for j, key := range []string{v1alpha1.LabelOSID, v1alpha1.LabelOSGroup, v1alpha1.LabelOSVersion} {
			if j < len(fields) && fields[j] != "-" {
				label(key, fields[j])(hosts[i])
			}
		}
	}
	return one(policy("workers"), hosts...)
}

func TestVersions(t *testing.T) {
	version := func(version string, nodes, withoutNeed int32) v1alpha1.VersionNodes {
		return v1alpha1.VersionNodes{Version: version, Nodes: nodes, WithoutNeed: withoutNeed}
	}
	for name, tc := range map[string]struct {
		runs []string
		want []v1alpha1.SystemVersions
	}{
		"no agent has reported":            {[]string{"", ""}, nil},
		"a rolling release has no version": {[]string{"arch - -"}, nil},
		"all nodes run the same version": {
			[]string{"flatcar stable 4593.1.0", "flatcar stable 4593.1.0!"},
			[]v1alpha1.SystemVersions{{OS: "flatcar", Group: "stable", Nodes: 2, Newest: "4593.1.0", OnNewest: 2}},
		},
		"some nodes are behind and have not asked for a reboot": {
			[]string{"flatcar stable 4593.1.0", "flatcar stable 4459.2.1!", "flatcar stable 4459.2.0", "flatcar stable 4459.2.0!"},
			[]v1alpha1.SystemVersions{{
				OS: "flatcar", Group: "stable", Nodes: 4, Newest: "4593.1.0", OnNewest: 1,
				Others: []v1alpha1.VersionNodes{version("4459.2.1", 1, 0), version("4459.2.0", 2, 1)},
			}},
		},
		"version numbers are compared as numbers": {
			[]string{"a - 9.9", "a - 10.1", "a - 10", "a - 10.01", "a - 99999999999999999999999.1"},
			[]v1alpha1.SystemVersions{{
				OS: "a", Nodes: 5, Newest: "99999999999999999999999.1", OnNewest: 1,
				Others: []v1alpha1.VersionNodes{version("10.1", 1, 1), version("10.01", 1, 1), version("10", 1, 1), version("9.9", 1, 1)},
			}},
		},
		"versions that cannot be compared are listed as they are": {
			[]string{"a - 9.0", "a - v10.0", "a - 11.0_odd", "a - 8.."},
			[]v1alpha1.SystemVersions{{
				OS: "a", Nodes: 4, Newest: "9.0", OnNewest: 1,
				Others: []v1alpha1.VersionNodes{version("v10.0", 1, 1), version("8..", 1, 1), version("11.0_odd", 1, 1)},
			}},
		},
		"nothing compares": {
			[]string{"a - trixie", "a - bookworm"},
			[]v1alpha1.SystemVersions{{OS: "a", Nodes: 2, Others: []v1alpha1.VersionNodes{version("trixie", 1, 1), version("bookworm", 1, 1)}}},
		},
		"systems and channels are counted separately": {
			[]string{"flatcar beta 4628.0.0", "flatcar stable 4593.1.0", "flatcar stable 4593.1.0", "ubuntu - 24.04"},
			[]v1alpha1.SystemVersions{
				{OS: "flatcar", Group: "stable", Nodes: 2, Newest: "4593.1.0", OnNewest: 2},
				{OS: "flatcar", Group: "beta", Nodes: 1, Newest: "4628.0.0", OnNewest: 1},
				{OS: "ubuntu", Nodes: 1, Newest: "24.04", OnNewest: 1},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "versions", tc.want, fleetOf(tc.runs...).plan().Versions)
		})
	}
}

// TestVersions_WithoutNeed checks which versions stay if there are too many: those of nodes that
// have not asked for a reboot, the oldest first.
func TestVersions_WithoutNeed(t *testing.T) {
	runs := []string{"a - 1", "a - 2!", "a - 3"}
	for version := range 9 {
		runs = append(runs, fmt.Sprintf("a - 1%d!", version))
	}
	var got []string
	for _, v := range fleetOf(runs...).plan().Versions[0].Others {
		got = append(got, v.Version)
	}
	same(t, "versions", []string{"17", "16", "15", "3", "1"}, got)
}

// TestVersions_AreBounded checks that the status stays small, whatever agents report.
func TestVersions_AreBounded(t *testing.T) {
	var runs []string
	for system := range 20 {
		for version := range 20 {
			runs = append(runs, fmt.Sprintf("os-%d - %d", system, version))
		}
	}
	got := fleetOf(runs...).plan().Versions
	if len(got) != 8 {
		t.Errorf("%d systems", len(got))
	}
	for _, s := range got {
		if s.Newest != "19" || s.Nodes != 20 || len(s.Others) != 5 || s.Others[0].Version != "4" {
			t.Errorf("got %+v", s)
		}
	}
}
