package underway

import (
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// HookPatience is the time that a hook has to answer before a person is told.
const HookPatience = 5 * time.Minute

// nodeHooks is the state of a node's hooks in one stage.
type nodeHooks struct {
	stage v1alpha1.HookStage
	// begun is true if the stage has begun or has no hooks.
	begun            bool
	waiting, refused []string
	// deadline is the time until which the hooks may answer.
	deadline time.Time
}

// approved reports whether every hook has approved.
func (h nodeHooks) approved() bool { return h.begun && len(h.waiting)+len(h.refused) == 0 }

// hooksOf returns the state of a stage's hooks on the node.
func (t *tracker) hooksOf(stage v1alpha1.HookStage) nodeHooks {
	hooks := t.pass.Policy.Spec.HooksOrDefault()
	keys := hooks.Of(stage)
	if len(keys) == 0 || !t.times().InHookPhase(stage, keys) {
		return nodeHooks{stage: stage, begun: len(keys) == 0}
	}
	waiting, refused := record.Answers(t.Node.Annotations, keys)
	return nodeHooks{stage, true, waiting, refused, t.times().HooksBegan().Add(hooks.TimeoutOrDefault())}
}

// awaitHooks handles hooks that have not all approved: they begin, the reboot waits for them, or it
// fails.
func (t *tracker) awaitHooks(h nodeHooks) {
	switch {
	case !h.begun:
		t.Action, t.Reason, t.Message = BeginHooks, v1alpha1.ReasonWaitingForHook, "hooks start"
		t.Stage, t.Until = h.stage, time.Time{}
	case len(h.refused) > 0:
		t.Reason, t.Message, t.Until = v1alpha1.ReasonHookFailed, "a hook refused: "+strings.Join(h.refused, ", "), time.Time{}
		t.FailedAt = t.times().HookRefusedAt()
	case !t.pass.Now.Before(h.deadline):
		t.Reason, t.FailedAt, t.Until = v1alpha1.ReasonHookTimedOut, h.deadline, time.Time{}
		t.Message = fmt.Sprintf("hooks have not approved by %s: %s", t.pass.instant(h.deadline), strings.Join(h.waiting, ", "))
	default:
		t.Reason, t.Until = v1alpha1.ReasonWaitingForHook, h.deadline
		t.Message = fmt.Sprintf("waiting for annotations to be \"true\" by %s: %s", t.pass.instant(h.deadline), strings.Join(h.waiting, ", "))
	}
}

// HookUnanswered reports whether a hook has not answered for HookPatience, so that a person should
// know. The hook's timeout may be much longer.
func (t Reboot) HookUnanswered(now time.Time) bool {
	if t.Node == nil || t.Action != Wait || t.Reason != v1alpha1.ReasonWaitingForHook {
		return false
	}
	_, since := t.State()
	return now.Sub(since) >= HookPatience
}
