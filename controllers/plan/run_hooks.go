package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// runHooks is the state of hooks.runBefore and hooks.runAfter, as far as known before nodes are
// chosen.
type runHooks struct {
	// is holds the stage of the run, from the status and the answers since, or nil if no run with
	// hooks is under way.
	is *v1alpha1.RunHooks
	// asks is the stage that begins regardless of the decisions about nodes, or empty.
	asks v1alpha1.RunStage
	// over is true if all hooks after the run have approved, or have had their time and the policy
	// is being deleted.
	over bool
	// waits says why no node is granted, or is nil if nodes may be.
	waits *block.Block
	// until is the time when the stage changes by itself, or zero.
	until time.Time
}

// runHooks computes the state of the run's hooks.
func (f *fleet) runHooks() runHooks {
	hooks := f.Policy.Spec.HooksOrDefault()
	before, after := hooks.RunBefore, hooks.RunAfter
	if f.Policy.Status.Run == nil || f.Policy.Status.Run.Hooks == nil {
		if len(before) == 0 || f.dryRun() {
			return runHooks{}
		}
		return runHooks{waits: f.runWaits("hooks.runBefore of policy %s start: %s", f.name, message.Some(before))}
	}
	is := f.Policy.Status.Run.Hooks.DeepCopy()
	if record.InFuture(is.At.Time, f.Now) {
		// The clock of the leader that wrote it was ahead, so the stage would last too long.
		// Restart it.
		is.Asked, is.At = nil, metav1.NewTime(f.Now)
	}
	switch r := (runHooks{is: is, until: is.At.Add(hooks.TimeoutOrDefault())}); is.Stage {
	case v1alpha1.RunBefore:
		return f.beforeRun(r, before)
	case v1alpha1.RunAfter:
		return f.afterRun(r, after)
	case v1alpha1.RunIdle:
		return r
	case v1alpha1.RunRunning:
	}
	return runHooks{is: is}
}

// beforeRun handles hooks.runBefore. If a hook refuses or does not answer in time, the run ends
// before it begins. The hooks after the run still run, because some hooks may have done their work.
func (f *fleet) beforeRun(r runHooks, keys []v1alpha1.AnnotationKey) runHooks {
	if !askedAll(r.is, keys) {
		r.asks, r.waits = v1alpha1.RunBefore, f.runWaits("hooks.runBefore of policy %s start: %s", f.name, message.Some(keys))
		return r
	}
	waiting, refused := f.runAnswers(r.is, keys)
	switch {
	case len(waiting)+len(refused) == 0:
		r.is.Stage, r.is.Asked, r.is.At = v1alpha1.RunRunning, nil, metav1.Time{}
	case len(refused) > 0 || !f.Now.Before(r.until):
		f.fail(&r, "hooks.runBefore", waiting, refused)
		r.asks, r.waits = v1alpha1.RunAfter, f.runWaits("the run has not begun: %s", r.is.Message)
	default:
		r.waits = f.unanswered(r.is, "hooks.runBefore of policy "+f.name+" have been running", waiting)
	}
	return r
}

// afterRun handles hooks.runAfter. The next run waits for all of them, so that they do not undo
// what its hooks do. A policy that is being deleted waits only until the timeout.
func (f *fleet) afterRun(r runHooks, keys []v1alpha1.AnnotationKey) runHooks {
	deleted, again := f.Policy.DeletionTimestamp != nil, r.is.At.Add(record.HookBackOff)
	waiting, refused := f.runAnswers(r.is, keys)
	switch {
	case !askedAll(r.is, keys):
		r.asks, r.waits = v1alpha1.RunAfter, f.runWaits("hooks.runAfter of policy %s start: %s", f.name, message.Some(keys))
		return r
	case len(waiting)+len(refused) > 0 && (!deleted || f.Now.Before(r.until)):
		if len(refused) > 0 || !f.Now.Before(r.until) {
			f.fail(&r, "hooks.runAfter", waiting, refused)
		}
		r.waits = f.unanswered(r.is, "the last run is not over: hooks.runAfter of policy "+f.name+" have been running", slices.Concat(refused, waiting))
	case r.is.Reason != "" && f.Now.Before(again) && !deleted:
		r.until = again
		r.waits = f.runWaits("hooks of the last run failed, and the next run may begin %s: %s", f.instant(again), r.is.Message).EndsAt(again)
	default:
		r.over, r.waits = true, f.runWaits("hooks.runAfter of policy %s have approved", f.name)
	}
	return r
}

// fail records which hooks refused or did not answer in time.
func (f *fleet) fail(r *runHooks, field string, waiting, refused []string) {
	r.is.Reason = v1alpha1.ReasonHookTimedOut
	text := fmt.Sprintf("%s have not approved by %s: %s", field, f.instant(r.until), message.Some(waiting))
	if len(refused) > 0 {
		r.is.Reason, text = v1alpha1.ReasonHookFailed, field+": a hook refused: "+message.Some(refused)
	}
	r.is.Message = message.Shorten(record.MaxMessage, text)
}

// unanswered returns the message about hooks that have not approved: their names, the start of the
// stage, and the command that answers one.
func (f *fleet) unanswered(is *v1alpha1.RunHooks, what string, hooks []string) *block.Block {
	key, _, _ := strings.Cut(strings.ReplaceAll(hooks[0], ":", " "), " ")
	return f.runWaits(`%s since %s: waiting for %s%skubectl annotate rebootpolicy %s %s="%s" --overwrite`,
		what, f.instant(is.At.Time), message.Some(hooks), answersForOne, f.name, key, runAnswer(is, record.Yes))
}

func (f *fleet) runWaits(format string, args ...any) *block.Block {
	return block.New(v1alpha1.ReasonRunHookWaits, format, args...)
}

// runAnswer returns the annotation value that answers for a stage of a run.
func runAnswer(is *v1alpha1.RunHooks, answer string) string {
	return fmt.Sprintf("%d: %s", is.Number, answer)
}

// runAnswers returns the hooks of the run that have not approved. Values without the number of the
// stage are answers for an earlier one, or not answers at all.
func (f *fleet) runAnswers(is *v1alpha1.RunHooks, keys []v1alpha1.AnnotationKey) (waiting, refused []string) {
	given := map[string]string{}
	for _, key := range keys {
		if answer, ok := strings.CutPrefix(f.Policy.Annotations[string(key)], runAnswer(is, "")); ok {
			given[string(key)] = answer
		}
	}
	return record.Answers(given, keys)
}

// askedAll reports whether every hook has been told to run. A hook added to the policy later may
// not have started.
func askedAll(is *v1alpha1.RunHooks, keys []v1alpha1.AnnotationKey) bool {
	return !slices.ContainsFunc(keys, func(key v1alpha1.AnnotationKey) bool { return !slices.Contains(is.Asked, key) })
}

// runHookWaits makes the first nodes of a run wait for hooks.runBefore, and those of the next run
// for hooks.runAfter.
func runHookWaits(c *choice, _ *record.Node) *block.Block { return c.run.waits }

// nextRun returns the stage of the run after the plan, once nodes are chosen. A stage that begins
// has no time yet; the write sets it.
func (c *choice) nextRun() *v1alpha1.RunHooks {
	r, hooks := c.run, c.Policy.Spec.HooksOrDefault()
	switch {
	case r.over:
		return nil
	case r.asks == v1alpha1.RunBefore, r.is == nil && c.waitsForRun():
		return c.ask(v1alpha1.RunBefore, hooks.RunBefore)
	case r.asks == v1alpha1.RunAfter:
		return c.askAfter()
	case r.is == nil && len(c.plan.Ledger()) > 0 && len(hooks.RunAfter) > 0: // without hooks before the run, or after the status was lost
		return c.ask(v1alpha1.RunRunning, nil)
	case r.is == nil || r.is.Stage == v1alpha1.RunAfter:
		return r.is
	}
	switch stage := c.stageOf(r.is); {
	case stage == v1alpha1.RunAfter:
		return c.askAfter()
	case stage != r.is.Stage && r.is.Stage != v1alpha1.RunBefore:
		r.is.Stage, r.is.At = stage, metav1.Time{}
	}
	return r.is
}

// ask begins a stage with a new number, above that of every answer present. A policy that was
// deleted and applied again counts from 0, and old answers may have been applied with it.
func (c *choice) ask(stage v1alpha1.RunStage, keys []v1alpha1.AnnotationKey) *v1alpha1.RunHooks {
	for _, key := range keys {
		number, _, _ := strings.Cut(c.Policy.Annotations[string(key)], ":")
		if answered, err := strconv.ParseInt(number, 10, 64); err == nil && record.MayFollow(answered, c.plan.Seq) {
			c.plan.Seq = max(c.plan.Seq, answered)
		}
	}
	c.plan.Seq++
	return &v1alpha1.RunHooks{Stage: stage, Number: c.plan.Seq, Asked: keys}
}

// askAfter ends the run. Without hooks.runAfter it is over at once, unless it failed before it
// began and the next one must wait.
func (c *choice) askAfter() *v1alpha1.RunHooks {
	keys, is := c.Policy.Spec.HooksOrDefault().RunAfter, c.run.is
	if len(keys) == 0 && is.Reason == "" {
		return nil
	}
	after := c.ask(v1alpha1.RunAfter, keys)
	after.Reason, after.Message = is.Reason, is.Message
	return after
}

// waitsForRun reports whether only the hooks before the run keep a node from its grant.
func (c *choice) waitsForRun() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(c.waiting)), func(o *Blocked) bool { return o.check == v1alpha1.ReasonRunHookWaits })
}

// stageOf returns the stage of a run that has begun, from the state of the nodes. Granted reboots,
// soaks and spacing belong to the run. Other blocks that end by themselves, such as gates, keep it
// idle for at most the hooks' timeout.
func (c *choice) stageOf(is *v1alpha1.RunHooks) v1alpha1.RunStage {
	if len(c.plan.Ledger())+len(c.orphans)+len(c.plan.Unlisted) > 0 {
		return v1alpha1.RunRunning
	}
	stage := v1alpha1.RunAfter
	if c.dryRun() {
		return stage
	}
	for _, n := range c.governed {
		switch o := c.waiting[n.Name]; {
		case o == nil:
		case o.check == v1alpha1.ReasonSpacing, o.check == v1alpha1.ReasonRingWaits && !o.Until.IsZero(), o.ShortLived:
			return v1alpha1.RunRunning
		case o.mayPass() && !c.slots.never(c.rings.Of(n)) && (is.Stage != v1alpha1.RunIdle || c.Now.Before(c.run.until)):
			stage = v1alpha1.RunIdle
		}
	}
	return stage
}

// mayPass reports whether the block ends by itself at a time that the manager does not know.
func (o *Blocked) mayPass() bool {
	switch o.check {
	case v1alpha1.ReasonJustBooted, v1alpha1.ReasonBackingOff, v1alpha1.ReasonBlockingPod:
		return true
	}
	return o.reaches(gateChecks)
}

// sameStage reports whether the run's status already has this stage, or both are absent.
func sameStage(run *v1alpha1.RunStatus, is *v1alpha1.RunHooks) bool {
	if run == nil || run.Hooks == nil || is == nil {
		return (run == nil || run.Hooks == nil) && is == nil
	}
	was := run.Hooks
	return was.Stage == is.Stage && was.Number == is.Number && was.At.Equal(&is.At) && was.Reason == is.Reason && was.Message == is.Message
}

// answersForOne introduces the command in the message about hooks of a run.
const answersForOne = "; to answer for one: "

// AnswerRunHook splits the message about hooks of a run into what is waited for and the command
// that answers one hook, which is empty if no hook has been told to run.
func AnswerRunHook(message string) (text, command string) {
	text, command, _ = strings.Cut(message, answersForOne)
	return text, command
}
