package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// TestReboots_AskHooks: before the grant is published and after the settling, hooks have the last word.
func TestReboots_AskHooks(t *testing.T) {
	asks := []func(*v1alpha1.RebootPolicy){hooked("example.com/a")}
	yes := annotated("example.com/a", "true")
	back := func(mods ...func(*host)) []func(*host) {
		return append([]func(*host){
			grant(rebootSeq, protocol.GrantActive), progress(rebootSeq, protocol.PhaseRebooting), rebooted(9*minute, 9*minute),
		}, mods...)
	}
	begins := func(stage v1alpha1.HookStage) rebootStep {
		return rebootStep{Action: plan.BeginHooks, Reason: v1alpha1.ReasonWaitingForHook, Message: "hooks begin", Stage: stage}
	}
	waits := func(until time.Duration) rebootStep {
		return rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonWaitingForHook, Message: `waiting until each is "true": example.com/a`, Until: instantAfter(until),
		}
	}
	testReboots(t, map[string]rebootCase{
		"before the grant is published, whatever stale answers say (behaviour 51)": {needs: true, policy: asks, node: options(yes), want: begins(v1alpha1.HooksBefore)},
		"before the grant is published, waiting":                                   {needs: true, policy: asks, node: options(phase(5, v1alpha1.HooksBefore, 0)), want: waits(time.Hour)},
		"before the grant is published, all said yes": {
			needs: true, policy: asks, node: options(phase(5, v1alpha1.HooksBefore, 0), yes),
			want: rebootStep{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted},
		},
		"before the grant is published, somebody refused": {
			needs: true, policy: asks, node: options(phase(5, v1alpha1.HooksBefore, 0), annotated("example.com/a", "false")),
			want: rebootStep{Action: plan.CancelGrant, Reason: v1alpha1.ReasonHookFailed, Message: "a hook refused: example.com/a: false"},
		},
		"before the grant is published, somebody refused in many words": {
			needs: true, policy: asks, node: options(phase(5, v1alpha1.HooksBefore, 0), annotated("example.com/a", "failed: "+strings.Repeat("ä", 100))),
			want: rebootStep{
				Action: plan.CancelGrant, Reason: v1alpha1.ReasonHookFailed,
				Message: "a hook refused: example.com/a: failed: " + strings.Repeat("ä", 58) + "…",
			},
		},
		"before the grant is published, nothing in time": {
			needs: true, policy: asks, node: options(phase(5, v1alpha1.HooksBefore, 0)), now: time.Hour,
			want: rebootStep{
				Action: plan.CancelGrant, Reason: v1alpha1.ReasonHookTimedOut,
				Message: "hooks have not approved by Mon 2026-06-01 23:00:00 UTC: example.com/a",
			},
		},
		"before the grant is published, and the window closes meanwhile (behaviour 35)": {
			needs: true, policy: asks, node: options(phase(5, v1alpha1.HooksBefore, 0)), window: &window.State{},
			want: rebootStep{Action: plan.CancelGrant, Reason: v1alpha1.ReasonWindowClosed, Message: "no window is open; none opens within a year"},
		},
		"after the settling, whatever stale answers say (behaviour 51)": {
			policy: asks, node: back(yes, phase(5, v1alpha1.HooksBefore, 0)), now: 10 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"not while the node settles": {
			policy: asks, node: back(), now: 9 * minute, want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Until: instantAfter(10 * minute),
				Message: "back since Mon 2026-06-01 22:09:00 UTC, settling until Mon 2026-06-01 22:10:00 UTC",
			},
		},
		"after the settling, waiting": {policy: asks, node: back(phase(5, v1alpha1.HooksAfter, 10*minute)), now: 11 * minute, want: waits(70 * minute)},
		"after the settling, all said yes (behaviour 49)": {
			policy: asks, node: back(phase(5, v1alpha1.HooksAfter, 10*minute), yes), now: 11 * minute,
			want: rebootStep{Action: plan.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"},
		},
		"after the settling, nothing in time: cordoned and counted (behaviour 52)": {
			policy: asks, node: back(phase(5, v1alpha1.HooksAfter, 10*minute)), now: 70 * minute,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonHookTimedOut, FailedAt: instantAfter(70 * minute),
				Message: "hooks have not approved by Mon 2026-06-01 23:10:00 UTC: example.com/a",
			},
		},
	})
}
