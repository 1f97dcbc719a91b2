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
	asks, both := options(hooked("example.com/a")), options(hooked("example.com/a", "example.com/b"))
	yes, alsoYes := annotated("example.com/a", "true"), annotated("example.com/b", "true")
	back := func(mods ...func(*host)) []func(*host) {
		return append(options(grant(rebootSeq, protocol.GrantActive), progress(rebootSeq, protocol.PhaseRebooting), rebooted(9*minute, 9*minute)), mods...)
	}
	begins := func(stage v1alpha1.HookStage) rebootStep {
		return rebootStep{Action: plan.BeginHooks, Reason: v1alpha1.ReasonWaitingForHook, Message: "hooks begin", Stage: stage}
	}
	waitsFor := func(hook string, until time.Duration) rebootStep {
		return rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonWaitingForHook, Message: `waiting until each is "true": ` + hook, Until: instantAfter(until)}
	}
	// before is a node on which the hooks before the drain are asked, and after one on which those after the boot are asked since 22:10.
	before := func(now time.Duration, want rebootStep, mods ...func(*host)) rebootCase {
		return rebootCase{needs: true, policy: asks, node: append(options(phase(5, v1alpha1.HooksBefore, 0)), mods...), now: now, want: want}
	}
	after := func(now time.Duration, want rebootStep, mods ...func(*host)) rebootCase {
		return rebootCase{policy: asks, node: back(append(options(phase(5, v1alpha1.HooksAfter, 10*minute)), mods...)...), now: now, want: want}
	}
	// asked are hooks after the boot since 22:10, and in another way; edits change which.
	asked := func(edit func(*protocol.HookPhase)) func(*host) {
		return phase(5, v1alpha1.HooksAfter, 10*minute, edit)
	}
	says := func(answer string) func(*host) { return annotated("example.com/a", answer) }
	closed := before(0, takenBack(v1alpha1.ReasonWindowClosed, "no window is open; none opens within a year"))
	closed.window = &window.State{}
	const noAnswer = `, which is no answer: only "true", "false" and "failed: why" are)`
	testReboots(t, map[string]rebootCase{
		"before the grant is published, whatever stale answers say (behaviour 51)": {needs: true, policy: asks, node: options(yes), want: begins(v1alpha1.HooksBefore)},
		"before the grant is published, waiting":                                   before(0, waitsFor("example.com/a", time.Hour)),
		"before the grant is published, all said yes":                              before(0, publish, yes),
		"before the grant is published, somebody refused": before(
			0, takenBack(v1alpha1.ReasonHookFailed, "a hook refused: example.com/a: false"), says("false")),
		"before the grant is published, somebody refused in many words": before(
			0, takenBack(v1alpha1.ReasonHookFailed, "a hook refused: example.com/a: failed: "+strings.Repeat("ä", 58)+"…"), says("failed: "+strings.Repeat("ä", 100))),
		"before the grant is published, nothing in time": before(
			time.Hour, takenBack(v1alpha1.ReasonHookTimedOut, "hooks have not approved by Mon 2026-06-01 23:00:00 UTC: example.com/a")),
		"before the grant is published, and the window closes meanwhile (behaviour 35)": closed,
		"after the settling, whatever stale answers say (behaviour 51)": {
			policy: asks, node: back(yes, phase(5, v1alpha1.HooksBefore, 0)), now: 10 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"not while the node settles": {
			policy: asks, node: back(), now: 9 * minute,
			want: waits("back since Mon 2026-06-01 22:09:00 UTC, settling until Mon 2026-06-01 22:10:00 UTC", 10*minute),
		},
		"after the settling, waiting":                     after(11*minute, waitsFor("example.com/a", 70*minute)),
		"after the settling, all said yes (behaviour 49)": after(11*minute, finish, yes),
		"after the settling, a late yes counts":           after(3*time.Hour, finish, yes),
		"after the settling, one says no": after(
			11*minute, fails(v1alpha1.ReasonHookFailed, 10*minute, "a hook refused: example.com/a: failed: disk full"), says("failed: disk full")),
		"after the settling, a word that is no answer": after(11*minute, waitsFor(`example.com/a (is "TRUE"`+noAnswer, 70*minute), says("TRUE")),
		"after the settling, an empty word is no answer either, and nothing in time": after(70*minute, fails(v1alpha1.ReasonHookTimedOut, 70*minute,
			`hooks have not approved by Mon 2026-06-01 23:10:00 UTC: example.com/a (is ""`+noAnswer), says("")),
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
			policy: both, node: back(alsoYes, asked(func(h *protocol.HookPhase) { h.Hooks = append(h.Hooks, "example.com/b") })), now: 11 * minute,
			want: waitsFor("example.com/a", 70*minute),
		},
		"after the settling, nothing in time: cordoned and counted (behaviour 52)": after(
			70*minute, fails(v1alpha1.ReasonHookTimedOut, 70*minute, "hooks have not approved by Mon 2026-06-01 23:10:00 UTC: example.com/a")),
	})
}
