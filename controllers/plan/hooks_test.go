package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// TestReboots_AskHooks checks that hooks decide before the grant is published and after the node
// has settled.
func TestReboots_AskHooks(t *testing.T) {
	asks, both := options(hooked("example.com/a")), options(hooked("example.com/a", "example.com/b"))
	yes, alsoYes := annotated("example.com/a", "true"), annotated("example.com/b", "true")
	back := func(mods ...func(*host)) []func(*host) {
		return append(options(grant(rebootSeq, protocol.GrantActive), progress(rebootSeq, protocol.PhaseRebooting), rebooted(9*minute, 9*minute)), mods...)
	}
	begins := func(stage v1alpha1.HookStage) rebootStep {
		return rebootStep{Action: underway.BeginHooks, Reason: v1alpha1.ReasonWaitingForHook, Message: "hooks start", Stage: stage}
	}
	waitsFor := func(hook string, until time.Duration) rebootStep {
		message := fmt.Sprintf(`waiting for annotations to be "true" by %s: %s`, timing.Instant(instantAfter(until)), hook)
		return rebootStep{Action: underway.Wait, Reason: v1alpha1.ReasonWaitingForHook, Message: message, Until: instantAfter(until)}
	}
	// before returns a node in the phase of hooks before the drain, and after one in the phase
	// after the boot, since 22:10.
	before := func(now time.Duration, want rebootStep, mods ...func(*host)) rebootCase {
		return rebootCase{needs: true, policy: asks, node: append(options(phase(5, v1alpha1.HooksBefore, 0)), mods...), now: now, want: want}
	}
	after := func(now time.Duration, want rebootStep, mods ...func(*host)) rebootCase {
		return rebootCase{policy: asks, node: back(append(options(phase(5, v1alpha1.HooksAfter, 10*minute)), mods...)...), now: now, want: want}
	}
	// asked starts hooks after the boot at 22:10; edit changes the phase.
	asked := func(edit func(*protocol.HookPhase)) func(*host) {
		return phase(5, v1alpha1.HooksAfter, 10*minute, edit)
	}
	answers := func(answer string) func(*host) { return annotated("example.com/a", answer) }
	closed := before(0, cancelsGrant(v1alpha1.ReasonWindowClosed, "no window is open; none opens within a year"))
	closed.window = &window.State{}
	const noAnswer = `; valid answers are "true", "false" and "failed: why")`
	testReboots(t, map[string]rebootCase{
		"before the grant is published, with stale answers (behaviour 51)": {needs: true, policy: asks, node: options(yes), want: begins(v1alpha1.HooksBefore)},
		"before the grant is published, waiting":                           before(0, waitsFor("example.com/a", time.Hour)),
		"before the grant is published, all approved":                      before(0, publish, yes),
		"before the grant is published, a hook refused": before(
			0, cancelsGrant(v1alpha1.ReasonHookFailed, "a hook refused: example.com/a: false"), answers("false")),
		"before the grant is published, a hook refused with a long text": before(
			0, cancelsGrant(v1alpha1.ReasonHookFailed, "a hook refused: example.com/a: failed: "+strings.Repeat("ä", 58)+"…"), answers("failed: "+strings.Repeat("ä", 100))),
		"before the grant is published, no answer in time": before(
			time.Hour, cancelsGrant(v1alpha1.ReasonHookTimedOut, "hooks have not approved by Mon 2026-06-01 23:00:00 UTC: example.com/a")),
		"before the grant is published, started by a leader whose clock is behind: the time counts from the grant": {
			needs: true, policy: asks, node: options(phase(5, v1alpha1.HooksBefore, -10*minute)), now: 50 * minute, want: waitsFor("example.com/a", time.Hour),
		},
		"before the grant is published, and the window closes (behaviour 35)": closed,
		"after settling, with stale answers (behaviour 51)": {
			policy: asks, node: back(yes, phase(5, v1alpha1.HooksBefore, 0)), now: 10 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"not while the node is settling": {
			policy: asks, node: back(), now: 9 * minute,
			want: waits("back since Mon 2026-06-01 22:09:00 UTC, settling until Mon 2026-06-01 22:10:00 UTC", 10*minute),
		},
		"after the settling, waiting":                     after(11*minute, waitsFor("example.com/a", 70*minute)),
		"after the settling, all approved (behaviour 49)": after(11*minute, finish, yes),
		"after the settling, a late yes counts":           after(3*time.Hour, finish, yes),
		"after the settling, one refuses": after(
			11*minute, fails(v1alpha1.ReasonHookFailed, 10*minute, "a hook refused: example.com/a: failed: disk full"), answers("failed: disk full")),
		"after the settling, an invalid answer": after(11*minute, waitsFor(`example.com/a (is "TRUE"`+noAnswer, 70*minute), answers("TRUE")),
		"after the settling, an empty value until the timeout": after(70*minute, fails(v1alpha1.ReasonHookTimedOut, 70*minute,
			`hooks have not approved by Mon 2026-06-01 23:10:00 UTC: example.com/a (is ""`+noAnswer), answers("")),
		"a phase of an earlier grant begins again": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Seq = 4 })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a phase of another policy with the same number does not count": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Policy = "others" })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a phase of before-hooks does not count for after-hooks": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Stage = v1alpha1.HooksBefore })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a phase that began in an earlier boot begins again": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.BootID = "worker-1-boot-1" })), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a hook that was added during the phase: its answer may be stale (behaviour 51)": {
			policy: both, node: back(yes, alsoYes, phase(5, v1alpha1.HooksAfter, 10*minute)), now: 11 * minute, want: begins(v1alpha1.HooksAfter),
		},
		"a hook that was removed from the policy does not delay the reboot": {
			policy: asks, node: back(yes, asked(func(h *protocol.HookPhase) { h.Hooks = append(h.Hooks, "example.com/b") })), now: 11 * minute, want: finish,
		},
		"one of two has answered": {
			policy: both, node: back(alsoYes, asked(func(h *protocol.HookPhase) { h.Hooks = append(h.Hooks, "example.com/b") })), now: 11 * minute,
			want: waitsFor("example.com/a", 70*minute),
		},
		"after settling, no answer in time: cordoned and counted (behaviour 52)": after(
			70*minute, fails(v1alpha1.ReasonHookTimedOut, 70*minute, "hooks have not approved by Mon 2026-06-01 23:10:00 UTC: example.com/a")),
	})
}

// inRun sets the stage of the run's hooks, since a time counted from the evening, with number 7.
// mods change that.
func inRun(stage v1alpha1.RunStage, since time.Duration, asked []v1alpha1.AnnotationKey, mods ...func(*v1alpha1.RunHooks)) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		running(p)
		p.Status.Seq = max(p.Status.Seq, 7)
		p.Status.Run.Hooks = &v1alpha1.RunHooks{Stage: stage, Number: 7, Asked: asked, At: metav1.NewTime(evening.Add(since))}
		for _, m := range mods {
			m(p.Status.Run.Hooks)
		}
	}
}

func notBegun(h *v1alpha1.RunHooks) { h.Reason, h.Message = v1alpha1.ReasonHookFailed, "no quorum" }

func answered(key v1alpha1.AnnotationKey, value string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[string(key)] = value
	}
}

func deleted(p *v1alpha1.RebootPolicy) { p.DeletionTimestamp = &metav1.Time{Time: evening} }

// TestPlan_RunHooks checks the stage of a run's hooks after a plan, and whether the plan grants.
func TestPlan_RunHooks(t *testing.T) {
	set, unset := []v1alpha1.AnnotationKey{setNoout}, []v1alpha1.AnnotationKey{unsetNoout}
	before, after := inRun(v1alpha1.RunBefore, -minute, set), inRun(v1alpha1.RunAfter, -minute, unset)
	// A stage that begins has no time yet. Its number is the next one.
	begins := func(stage v1alpha1.RunStage, number int64, asked ...v1alpha1.AnnotationKey) *v1alpha1.RunHooks {
		return &v1alpha1.RunHooks{Stage: stage, Number: number, Asked: asked}
	}
	is := func(stage v1alpha1.RunStage, asked []v1alpha1.AnnotationKey) *v1alpha1.RunHooks {
		return &v1alpha1.RunHooks{Stage: stage, Number: 7, Asked: asked, At: metav1.NewTime(evening.Add(-minute))}
	}
	onlyAfter := func(p *v1alpha1.RebootPolicy) { p.Spec.Hooks = &v1alpha1.Hooks{RunAfter: unset} }
	both := func(p *v1alpha1.RebootPolicy) { p.Spec.Hooks.RunBefore = append(p.Spec.Hooks.RunBefore, unsetNoout) }
	inProgress := holding(7, entry("worker-1", 7))
	for name, tc := range map[string]struct {
		situation situation
		want      *v1alpha1.RunHooks
		granted   int
	}{
		"no node needs a reboot":  {one(policy("workers", runHooked), newHost("worker-1")), nil, 0},
		"a node would be granted": {one(policy("workers", runHooked), needy("worker-1")), begins(v1alpha1.RunBefore, 1, set...), 0},
		"a policy that was applied again with the answer of its last run": {
			one(policy("workers", runHooked, answered(setNoout, "1: true")), needy("worker-1")), begins(v1alpha1.RunBefore, 2, set...), 0,
		},
		"an answer with an impossible number": {
			one(policy("workers", runHooked, answered(setNoout, "99999999999999999: true")), needy("worker-1")), begins(v1alpha1.RunBefore, 1, set...), 0,
		},
		"a node waits for something else":              {one(policy("workers", runHooked, paused(nil, "")), needy("worker-1")), nil, 0},
		"the limit is 0, so no slot ever becomes free": {one(policy("workers", atMost("0"), runHooked), needy("worker-1")), nil, 0},
		"the policy has mode DryRun":                   {one(policy("workers", runHooked, dryRun), needy("worker-1")), nil, 0},
		"there are only hooks after the run":           {one(policy("workers", onlyAfter), needy("worker-1")), begins(v1alpha1.RunRunning, 2), 1},
		"a hook after the run is added during the run": {
			one(policy("workers", inProgress, running, onlyAfter), needy("worker-1")), begins(v1alpha1.RunRunning, 8), 0,
		},
		"a hook before the run is added during the run": {
			one(policy("workers", atMost("2"), inProgress, running, runHooked), needy("worker-1"), needy("worker-2")), begins(v1alpha1.RunBefore, 8, set...), 0,
		},
		"a hook before the run starts": {one(policy("workers", runHooked, before), needy("worker-1")), is(v1alpha1.RunBefore, set), 0},
		"a status without the run, and no node waits": {
			one(policy("workers", inProgress, runHooked), needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseDraining))), begins(v1alpha1.RunRunning, 8), 0,
		},
		"the hook has approved":                  {one(policy("workers", runHooked, before, answered(setNoout, "7: true")), needy("worker-1")), &v1alpha1.RunHooks{Stage: v1alpha1.RunRunning, Number: 7}, 1},
		"the hook has approved another run":      {one(policy("workers", runHooked, before, answered(setNoout, "6: true")), needy("worker-1")), is(v1alpha1.RunBefore, set), 0},
		"the answer names a longer number":       {one(policy("workers", runHooked, before, answered(setNoout, "77: true")), needy("worker-1")), is(v1alpha1.RunBefore, set), 0},
		"the answer names no run":                {one(policy("workers", runHooked, before, answered(setNoout, "true")), needy("worker-1")), is(v1alpha1.RunBefore, set), 0},
		"the hook has refused an earlier run":    {one(policy("workers", runHooked, before, answered(setNoout, "6: false")), needy("worker-1")), is(v1alpha1.RunBefore, set), 0},
		"a hook is added during the stage":       {one(policy("workers", runHooked, both, before, answered(setNoout, "7: true")), needy("worker-1")), begins(v1alpha1.RunBefore, 8, setNoout, unsetNoout), 0},
		"the hook is removed":                    {one(policy("workers", before), needy("worker-1")), &v1alpha1.RunHooks{Stage: v1alpha1.RunRunning, Number: 7}, 1},
		"the policy is paused during the stage":  {one(policy("workers", runHooked, before, paused(nil, "")), needy("worker-1")), begins(v1alpha1.RunAfter, 8, unset...), 0},
		"the need ends during the stage":         {one(policy("workers", runHooked, before), newHost("worker-1")), begins(v1alpha1.RunAfter, 8, unset...), 0},
		"the policy has mode DryRun now":         {one(policy("workers", runHooked, before, dryRun), needy("worker-1")), begins(v1alpha1.RunAfter, 8, unset...), 0},
		"the policy is deleted during the stage": {one(policy("workers", runHooked, before, deleted), needy("worker-1")), begins(v1alpha1.RunAfter, 8, unset...), 0},
		"a run without hooks after it":           {one(policy("workers", inRun(v1alpha1.RunIdle, -minute, nil)), newHost("worker-1")), nil, 0},
		"a run whose policy has halted":          {one(policy("workers", runHooked, inRun(v1alpha1.RunIdle, -minute, nil), halted), needy("worker-1")), begins(v1alpha1.RunAfter, 8, unset...), 0},
		"a run with a node that drains":          {one(policy("workers", inProgress, runHooked, inRun(v1alpha1.RunRunning, -minute, nil), paused(nil, "")), needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseDraining))), is(v1alpha1.RunRunning, nil), 0},
		"a run that waits for a slot":            {one(policy("workers", runHooked, inRun(v1alpha1.RunIdle, -minute, nil)), needy("worker-1"), newHost("worker-2", notReady)), is(v1alpha1.RunIdle, nil), 0},
		"a run that waited for an hour":          {one(policy("workers", runHooked, inRun(v1alpha1.RunIdle, -time.Hour, nil)), needy("worker-1"), newHost("worker-2", notReady)), begins(v1alpha1.RunAfter, 8, unset...), 0},
		"a run that waits for spacing":           {one(policy("workers", spacing(10*minute), lastReboot(-minute), runHooked, inRun(v1alpha1.RunRunning, -minute, nil)), needy("worker-1")), is(v1alpha1.RunRunning, nil), 0},
		"a run whose node has just booted":       {one(policy("workers", runHooked, inRun(v1alpha1.RunRunning, -minute, nil)), needy("worker-1", agentBlocking(`{"reason":"JustBooted"}`))), &v1alpha1.RunHooks{Stage: v1alpha1.RunIdle, Number: 7}, 0},
		"a hook after the run starts":            {one(policy("workers", runHooked, after), needy("worker-1")), is(v1alpha1.RunAfter, unset), 0},
		"the hook has approved its run":          {one(policy("workers", runHooked, after, answered(unsetNoout, "7: true")), needy("worker-1")), nil, 0},
		"a hook of a deleted policy":             {one(policy("workers", runHooked, after, deleted)), is(v1alpha1.RunAfter, unset), 0},
		"a deleted policy waits no longer":       {one(policy("workers", runHooked, inRun(v1alpha1.RunAfter, -time.Hour, unset), deleted)), nil, 0},
		"a hook before the run starts, by a leader whose clock was ahead": {
			one(policy("workers", runHooked, inRun(v1alpha1.RunBefore, 24*time.Hour, set)), needy("worker-1")), begins(v1alpha1.RunBefore, 8, set...), 0,
		},
		"a hook after the run starts, by a leader whose clock was ahead": {
			one(policy("workers", runHooked, inRun(v1alpha1.RunAfter, 24*time.Hour, unset), deleted)), begins(v1alpha1.RunAfter, 8, unset...), 0,
		},
		"a run that waits for a slot, by the clock of a leader that was ahead": {
			one(policy("workers", runHooked, inRun(v1alpha1.RunIdle, 24*time.Hour, nil)), needy("worker-1"), newHost("worker-2", notReady)),
			&v1alpha1.RunHooks{Stage: v1alpha1.RunIdle, Number: 7, At: metav1.NewTime(evening)}, 0,
		},
		"the next run may not begin yet": {
			one(policy("workers", runHooked, inRun(v1alpha1.RunAfter, -minute, unset, notBegun), answered(unsetNoout, "7: true")), needy("worker-1")),
			&v1alpha1.RunHooks{Stage: v1alpha1.RunAfter, Number: 7, Asked: unset, At: metav1.NewTime(evening.Add(-minute)), Reason: v1alpha1.ReasonHookFailed, Message: "no quorum"}, 0,
		},
		"the next run may begin": {
			one(policy("workers", runHooked, inRun(v1alpha1.RunAfter, -15*minute, unset, notBegun), answered(unsetNoout, "7: true")), needy("worker-1")), nil, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "hooks", tc.want, p.RunHooks, cmpopts.EquateEmpty())
			same(t, "granted", tc.granted, len(p.Ledger.Granted))
		})
	}
}

// TestPlan_RunHooksOfEachPolicy checks that each policy has its own run even if policies share a
// limit.
func TestPlan_RunHooksOfEachPolicy(t *testing.T) {
	workers := policy("workers", selects("pool", "cpu"), runHooked, inRun(v1alpha1.RunRunning, -minute, nil), holding(9, entry("worker-1", 9)))
	gpu := policy("gpu", selects("pool", "gpu"), sharing("workers"), runHooked)
	atMost("2")(workers)
	s := one(gpu, needy("worker-1", label("pool", "cpu")), needy("gpu-1", label("pool", "gpu"))).with(workers)
	p := s.plan()
	if want := (&v1alpha1.RunHooks{Stage: v1alpha1.RunBefore, Number: 10, Asked: []v1alpha1.AnnotationKey{setNoout}}); cmp.Diff(want, p.RunHooks) != "" || len(p.Ledger.Granted) > 0 || p.Ledger.Changed() {
		t.Errorf("run %+v, granted %v", p.RunHooks, p.Ledger.Granted)
	}
}

// TestReboots_NeverGrantsBeforeTheHooksOfTheRun checks that no node is granted, in any cluster,
// before every hook before the run has approved, or while the hooks after the last run are under
// way. Once a run has begun, its end starts the hooks after it.
func TestReboots_NeverGrantsBeforeTheHooksOfTheRun(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		hooks, run := snapshot.Policy.Spec.HooksOrDefault(), snapshot.Policy.Status.Run
		approved := func(stage v1alpha1.RunStage, keys []v1alpha1.AnnotationKey) bool {
			return run != nil && run.Hooks != nil && run.Hooks.Stage == stage && !slices.ContainsFunc(keys, func(key v1alpha1.AnnotationKey) bool {
				return snapshot.Policy.Annotations[string(key)] != fmt.Sprint(run.Hooks.Number, ": true")
			})
		}
		on := run != nil && run.Hooks != nil
		goesOn := on && (run.Hooks.Stage == v1alpha1.RunRunning || run.Hooks.Stage == v1alpha1.RunIdle) || approved(v1alpha1.RunBefore, hooks.RunBefore)
		if len(p.Ledger.Granted) > 0 && !goesOn && (on || len(hooks.RunBefore) > 0) {
			t.Fatalf("granted %v, and the hooks are %+v\n%v", p.Ledger.Granted, run, s)
		}
		out := time.Duration(0)
		if on {
			out = snapshot.Now.Sub(run.Hooks.At.Time)
		}
		gaveUp := snapshot.Policy.DeletionTimestamp != nil && out >= hooks.TimeoutOrDefault()
		if on && p.RunHooks == nil && len(hooks.RunAfter) > 0 && !approved(v1alpha1.RunAfter, hooks.RunAfter) && !gaveUp {
			t.Fatalf("the run is over, and its hooks were %+v\n%v", run.Hooks, s)
		}
		if !on && p.RunHooks == nil && len(hooks.RunAfter) > 0 && len(p.Ledger.Own()) > 0 {
			t.Fatalf("%d reboots are under way, and nothing asks the hooks after their run\n%v", len(p.Ledger.Own()), s)
		}
		if p.RunHooks != nil && p.RunHooks.Number > p.Ledger.Seq || p.RunHooks == nil != (p.RunWaits == "") && p.RunWaits != "" {
			t.Fatalf("run %+v, waits %q\n%v", p.RunHooks, p.RunWaits, s)
		}
	})
}

// TestPlan_RunHooksAreNamed checks that messages name the hooks that have not approved, their
// start, and what ends the wait. Long answers of hooks are shortened.
func TestPlan_RunHooksAreNamed(t *testing.T) {
	asked := inRun(v1alpha1.RunAfter, -minute, []v1alpha1.AnnotationKey{unsetNoout})
	p := one(policy("workers", runHooked, asked, answered(unsetNoout, "7: failed: "+strings.Repeat("x", 1000))), newHost("worker-1")).plan()
	want := "the last run is not over: hooks.runAfter of policy workers have been running since Mon 2026-06-01 21:59:00 UTC: waiting for example.com/noout-unset: failed: xx"
	if !strings.HasPrefix(p.RunWaits, want) || len(p.RunWaits) > 512 {
		t.Errorf("waits for %q", p.RunWaits)
	}
	odd := one(policy("workers", runHooked, asked, answered(unsetNoout, "7: maybe")), newHost("worker-1")).plan()
	if want := `kubectl annotate rebootpolicy workers example.com/noout-unset="7: true" --overwrite`; !strings.HasSuffix(odd.RunWaits, want) || odd.RunHooks.Reason != "" {
		t.Errorf("waits for %q, hooks %+v", odd.RunWaits, odd.RunHooks)
	}
	if p.RunHooks.Reason != v1alpha1.ReasonHookFailed || len(p.RunHooks.Message) > 512 {
		t.Errorf("hooks %+v", p.RunHooks)
	}
}
