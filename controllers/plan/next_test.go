package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// TestReboots_Next: the instant at which time alone changes the answer. The manager sleeps until then.
func TestReboots_Next(t *testing.T) {
	const active = protocol.GrantActive
	in := evening.Add
	until := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: in(d)} }
	held := func(options ...func(*host)) situation {
		return one(policy("workers", holding(1, entry("a", 1))), needy("a", append([]func(*host){grant(1, active)}, options...)...))
	}
	atOnce := func(p *v1alpha1.RebootPolicy) { p.Spec.Settle = &metav1.Duration{} }
	cases := map[string]struct {
		situation situation
		want      time.Time
	}{
		"nothing is going to happen by itself": {situation: one(policy("workers"), newHost("a"))},
		"waiting for somebody else's place":    {situation: one(policy("workers"), needy("a"), newHost("b", notReady))},
		"the windows change":                   {one(policy("workers")).in(window.State{Open: true, Next: in(time.Hour)}), in(time.Hour)},
		"the window opens": {
			one(policy("workers"), needy("a")).in(window.State{OpensAt: in(2 * time.Hour), Next: in(3 * time.Hour)}), in(2 * time.Hour),
		},
		"the window becomes too short": {
			one(policy("workers"), needy("a")).in(window.State{Open: true, ClosesAt: in(time.Hour), Next: in(time.Hour)}), in(55 * minute).Add(1),
		},
		"it does so right after now": {
			one(policy("workers"), needy("a")).in(window.State{Open: true, ClosesAt: in(5 * minute), Next: in(5 * minute)}), in(1),
		},
		"it is too short already": {
			one(policy("workers"), needy("a")).in(window.State{Open: true, ClosesAt: in(4 * minute), Next: in(4 * minute)}), in(4 * minute),
		},
		"the blackout ends": {
			one(policy("workers"), needy("a")).in(window.State{Blackout: true, OpensAt: in(2 * time.Hour), Next: in(3 * time.Hour)}), in(2 * time.Hour),
		},
		"hooks are asked": {
			one(policy("workers", hooked("example.com/a"), holding(1, entry("a", 1))), needy("a", phase(1, v1alpha1.HooksBefore, -minute))), in(59 * minute),
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
		"autoscalers may have a node back": {
			one(policy("workers"), newHost("a", grant(1, over, withAnnotations(v1alpha1.AnnotationDoNotDisrupt), grantedAt(-minute)))), in(14 * minute),
		},
		"autoscalers may have a node back that backs off": {
			one(policy("workers", grace(3*minute)), needy("a", grant(1, active, withAnnotations(v1alpha1.AnnotationDoNotDisrupt), grantedAt(-minute)),
				progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))), in(3 * minute),
		},
		"an attempt failed by a clock that is ahead": {
			one(policy("workers"), needy("a", progress(1, protocol.PhaseAborted, phaseAt(30*minute), failed(1, v1alpha1.ReasonDrainTimedOut, "")))), in(25 * minute),
		},
		"a node is back, its kubelet's clock is ahead": {
			one(policy("workers", atOnce, holding(1, entry("a", 1))), needy("a", grant(1, active), progress(1, protocol.PhaseRebooting), rebooted(20*minute, 0))), in(15 * minute),
		},
		"a node is back, its agent's clock is ahead": {
			one(policy("workers", atOnce, holding(1, entry("a", 1))), needy("a", grant(1, active), progress(1, protocol.PhaseRebooting), rebooted(0, 20*minute))), in(15 * minute),
		},
		"the last reboot, by a leader whose clock was ahead":       {one(policy("workers", lastReboot(24*time.Hour)), newHost("a")), in(24*time.Hour - 5*minute)},
		"a policy was resumed, by a leader whose clock was ahead":  {one(policy("workers", resumedAt(24*time.Hour)), newHost("a")), in(24*time.Hour - 5*minute)},
		"an end in the history, by a leader whose clock was ahead": {one(policy("workers", lost("a", "", 24*time.Hour))), in(24*time.Hour - 5*minute)},
		"the earliest of all": {
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
