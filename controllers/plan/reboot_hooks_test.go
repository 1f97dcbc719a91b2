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
	// asked are hooks after the boot since 22:10, and in another way; edits change which.
	asked := func(edit func(*protocol.HookPhase)) func(*host) {
		return phase(5, v1alpha1.HooksAfter, 10*minute, edit)
	}
	after := func(answer string, now time.Duration, want rebootStep) rebootCase {
		return rebootCase{policy: asks, node: back(phase(5, v1alpha1.HooksAfter, 10*minute), annotated("example.com/a", answer)), now: now, want: want}
	}
	both := []func(*v1alpha1.RebootPolicy){hooked("example.com/a", "example.com/b")}
	alsoYes, finish := annotated("example.com/b", "true"), rebootStep{Action: plan.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"}
	const noAnswer = `, which is no answer: only "true", "false" and "failed: why" are)`
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
		"after the settling, waiting":                     {policy: asks, node: back(phase(5, v1alpha1.HooksAfter, 10*minute)), now: 11 * minute, want: waits(70 * minute)},
		"after the settling, all said yes (behaviour 49)": after("true", 11*minute, finish),
		"after the settling, a late yes counts":           after("true", 3*time.Hour, finish),
		"after the settling, one says no": after("failed: disk full", 11*minute, rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonHookFailed, FailedAt: instantAfter(10 * minute), Message: "a hook refused: example.com/a: failed: disk full",
		}),
		"after the settling, a word that is no answer": after("TRUE", 11*minute, rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonWaitingForHook, Until: instantAfter(70 * minute),
			Message: `waiting until each is "true": example.com/a (is "TRUE"` + noAnswer,
		}),
		"after the settling, an empty word is no answer either, and nothing in time": after("", 70*minute, rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonHookTimedOut, FailedAt: instantAfter(70 * minute),
			Message: `hooks have not approved by Mon 2026-06-01 23:10:00 UTC: example.com/a (is ""` + noAnswer,
		}),
		"a phase of an earlier grant begins again": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Seq = 4 })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a phase of another policy with the same number is none": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Policy = "others" })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a phase of the hooks before the reboot is not that of those after it": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Stage = v1alpha1.HooksBefore })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a phase that began in an earlier boot begins again": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.BootID = "worker-1-boot-1" })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a hook that the policy names since the phase began: its answer may be stale (behaviour 51)": {
			policy: both, node: back(yes, alsoYes, phase(5, v1alpha1.HooksAfter, 10*minute)), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a hook that the policy does not name any more is not waited for": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Hooks = append(h.Hooks, "example.com/b") })), now: 11 * minute, want: finish,
		},
		"one of two has answered": {
			policy: both, node: back(alsoYes, asked(func(h *protocol.HookPhase) { h.Hooks = append(h.Hooks, "example.com/b") })), now: 11 * minute, want: waits(70 * minute),
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
