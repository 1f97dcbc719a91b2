// Package run follows the hooks of a run, before its first node and after its last one.
package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Hooks is the state of hooks.runBefore and hooks.runAfter, as far as known before nodes are chosen.
type Hooks struct {
	policy *v1alpha1.RebootPolicy
	now    time.Time
	zone   *time.Location
	// current holds the stage of the run, from the status and the answers since, or nil if no run with
	// hooks is under way.
	current *v1alpha1.RunHooks
	// asks is the stage that begins regardless of the decisions about nodes, or empty.
	asks v1alpha1.RunStage
	// over is true if all hooks after the run have approved, or have had their time and the policy
	// is being deleted.
	over bool
	// Waits says why no node is granted, or is nil if nodes may be.
	Waits *block.Block
	// Until is the time when the stage changes by itself, or zero.
	Until time.Time
}

// HooksOf returns the state of the hooks of a policy's run. Times are shown in the zone.
func HooksOf(policy *v1alpha1.RebootPolicy, now time.Time, zone *time.Location) Hooks {
	h, hooks := Hooks{policy: policy, now: now, zone: zone}, policy.Spec.HooksOrDefault()
	before, after := hooks.RunBefore, hooks.RunAfter
	if policy.Status.Run == nil || policy.Status.Run.Hooks == nil {
		if len(before) > 0 && policy.Spec.ModeOrDefault() != v1alpha1.ModeDryRun {
			h.wait("hooks.runBefore of policy %s start: %s", policy.Name, message.Some(before))
		}
		return h
	}
	h.current = policy.Status.Run.Hooks.DeepCopy()
	if record.InFuture(h.current.At.Time, now) {
		// The clock of the leader that wrote it was ahead, so the stage would last too long.
		// Restart it.
		h.current.Asked, h.current.At = nil, metav1.NewTime(now)
	}
	switch h.Until = h.current.At.Add(hooks.TimeoutOrDefault()); h.current.Stage {
	case v1alpha1.RunBefore:
		h.before(before)
	case v1alpha1.RunAfter:
		h.after(after)
	case v1alpha1.RunIdle:
	default:
		h.Until = time.Time{}
	}
	return h
}

// before handles hooks.runBefore. If a hook refuses or does not answer in time, the run ends
// before it begins. The hooks after the run still run, because some hooks may have done their work.
func (h *Hooks) before(keys []v1alpha1.AnnotationKey) {
	if !askedAll(h.current, keys) {
		h.asks = v1alpha1.RunBefore
		h.wait("hooks.runBefore of policy %s start: %s", h.policy.Name, message.Some(keys))
		return
	}
	waiting, refused := h.answers(keys)
	switch {
	case len(waiting)+len(refused) == 0:
		h.current.Stage, h.current.Asked, h.current.At = v1alpha1.RunRunning, nil, metav1.Time{}
	case len(refused) > 0 || !h.now.Before(h.Until):
		h.fail("hooks.runBefore", waiting, refused)
		h.asks = v1alpha1.RunAfter
		h.wait("the run has not begun: %s", h.current.Message)
	default:
		h.await("hooks.runBefore of policy "+h.policy.Name+" have been running", waiting)
	}
}

// after handles hooks.runAfter. The next run waits for all of them, so that they do not undo
// what its hooks do. A policy that is being deleted waits only until the timeout.
func (h *Hooks) after(keys []v1alpha1.AnnotationKey) {
	deleted, again := h.policy.DeletionTimestamp != nil, h.current.At.Add(record.HookBackOff)
	waiting, refused := h.answers(keys)
	switch {
	case !askedAll(h.current, keys):
		h.asks = v1alpha1.RunAfter
		h.wait("hooks.runAfter of policy %s start: %s", h.policy.Name, message.Some(keys))
	case len(waiting)+len(refused) > 0 && (!deleted || h.now.Before(h.Until)):
		if len(refused) > 0 || !h.now.Before(h.Until) {
			h.fail("hooks.runAfter", waiting, refused)
		}
		h.await("the last run is not over: hooks.runAfter of policy "+h.policy.Name+" have been running", slices.Concat(refused, waiting))
	case h.current.Reason != "" && h.now.Before(again) && !deleted:
		h.Until = again
		h.wait("hooks of the last run failed, and the next run may begin %s: %s", h.instant(again), h.current.Message).EndsAt(again)
	default:
		h.over = true
		h.wait("hooks.runAfter of policy %s have approved", h.policy.Name)
	}
}

// fail records which hooks refused or did not answer in time.
func (h *Hooks) fail(field string, waiting, refused []string) {
	h.current.Reason = v1alpha1.ReasonHookTimedOut
	text := fmt.Sprintf("%s have not approved by %s: %s", field, h.instant(h.Until), message.Some(waiting))
	if len(refused) > 0 {
		h.current.Reason, text = v1alpha1.ReasonHookFailed, field+": a hook refused: "+message.Some(refused)
	}
	h.current.Message = message.Shorten(record.MaxMessage, text)
}

// await makes nodes wait for hooks that have not approved. The message has their names, the start of
// the stage, and the command that answers one.
func (h *Hooks) await(what string, hooks []string) {
	key, _, _ := strings.Cut(strings.ReplaceAll(hooks[0], ":", " "), " ")
	h.wait(`%s since %s: waiting for %s%skubectl annotate rebootpolicy %s %s="%s" --overwrite`,
		what, h.instant(h.current.At.Time), message.Some(hooks), answersForOne, h.policy.Name, key, answer(h.current, record.Yes))
}

// wait makes nodes wait.
func (h *Hooks) wait(format string, args ...any) *block.Block {
	h.Waits = block.New(v1alpha1.ReasonRunHookWaits, format, args...)
	return h.Waits
}

// instant formats a time for messages.
func (h *Hooks) instant(t time.Time) string { return timing.InstantIn(t, h.zone) }

// answer returns the annotation value that answers for a stage of a run.
func answer(stage *v1alpha1.RunHooks, answer string) string {
	return fmt.Sprintf("%d: %s", stage.Number, answer)
}

// answers returns the hooks of the run that have not approved. Values without the number of the
// stage are answers for an earlier one, or not answers at all.
func (h *Hooks) answers(keys []v1alpha1.AnnotationKey) (waiting, refused []string) {
	given := map[string]string{}
	for _, key := range keys {
		if text, ok := strings.CutPrefix(h.policy.Annotations[string(key)], answer(h.current, "")); ok {
			given[string(key)] = text
		}
	}
	return record.Answers(given, keys)
}

// askedAll reports whether every hook has been told to run. A hook added to the policy later may
// not have started.
func askedAll(stage *v1alpha1.RunHooks, keys []v1alpha1.AnnotationKey) bool {
	return !slices.ContainsFunc(keys, func(key v1alpha1.AnnotationKey) bool { return !slices.Contains(stage.Asked, key) })
}

// Same reports whether the run's status already has this stage, or both are absent.
func Same(run *v1alpha1.RunStatus, next *v1alpha1.RunHooks) bool {
	if run == nil || run.Hooks == nil || next == nil {
		return (run == nil || run.Hooks == nil) && next == nil
	}
	was := run.Hooks
	return was.Stage == next.Stage && was.Number == next.Number && was.At.Equal(&next.At) && was.Reason == next.Reason && was.Message == next.Message
}

// answersForOne introduces the command in the message about hooks of a run.
const answersForOne = "; to answer for one: "

// SplitMessage splits the message about hooks of a run into what is waited for and the command
// that answers one hook, which is empty if no hook has been told to run.
func SplitMessage(waits string) (text, command string) {
	text, command, _ = strings.Cut(waits, answersForOne)
	return text, command
}
