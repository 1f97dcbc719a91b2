package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// hookBackOff is the pause before the next attempt after hooks refused, so that the node does not
// take a slot again and again.
const hookBackOff = 15 * time.Minute

const (
	// maxAnswer limits, in bytes, a hook's answer in a condition's message.
	maxAnswer = 128
	// maxMessage limits, in bytes, a message from a record.
	maxMessage = 512
)

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
	hooks := t.f.Policy.Spec.HooksOrDefault()
	keys := hooks.Of(stage)
	if len(keys) == 0 || !t.inHookPhase(stage, keys) {
		return nodeHooks{stage: stage, begun: len(keys) == 0}
	}
	waiting, refused := answers(t.Node.Annotations, keys)
	began := t.Node.Hooks.At.Time
	if !possible(began, t.Entry.At.Time, t.f.Now) { // two leaders' clocks differ; a deadline that counts from now would move on forever
		began = t.Entry.At.Time
	}
	return nodeHooks{stage, true, waiting, refused, began.Add(hooks.TimeoutOrDefault())}
}

// inHookPhase reports whether the node shows this phase, for which all stale answers were removed.
// A phase dated in the future does not count, because it would never time out.
func (t *tracker) inHookPhase(stage v1alpha1.HookStage, keys []v1alpha1.AnnotationKey) bool {
	h := t.Node.Hooks
	return h.Covers(protocol.BeginHooks(t.Entry, t.f.name, t.Node.BootID, stage, keys, t.f.Now)) && h.At.Sub(t.f.Now) <= clockAhead
}

// awaitHooks handles hooks that have not all approved: they begin, the reboot waits for them, or it
// fails.
func (t *tracker) awaitHooks(h nodeHooks) {
	switch {
	case !h.begun:
		t.Action, t.Reason, t.Message = BeginHooks, v1alpha1.ReasonWaitingForHook, "hooks start"
		t.Stage, t.Until = h.stage, time.Time{}
	case len(h.refused) > 0:
		t.Reason, t.Message, t.Until = v1alpha1.ReasonHookFailed, "a hook refused: "+list(h.refused), time.Time{}
		t.FailedAt = t.refusedAt()
	case !t.f.Now.Before(h.deadline):
		t.Reason, t.FailedAt, t.Until = v1alpha1.ReasonHookTimedOut, h.deadline, time.Time{}
		t.Message = fmt.Sprintf("hooks have not approved by %s: %s", t.f.instant(h.deadline), list(h.waiting))
	default:
		t.Reason, t.Until = v1alpha1.ReasonWaitingForHook, h.deadline
		t.Message = fmt.Sprintf("waiting for annotations to be \"true\" by %s: %s", t.f.instant(h.deadline), list(h.waiting))
	}
}

// refusedAt returns when the node first showed that a hook refused, because answers have no time.
// Until the node shows it, refusedAt returns when the hooks began. Counting from there always would
// let another node's success in between hide the failure.
func (t *tracker) refusedAt() time.Time {
	asked, shown := t.Node.Hooks.At.Time, t.Node.Permitted
	if shown == nil || shown.Reason != string(v1alpha1.ReasonHookFailed) || !hasCome(shown.LastHeartbeatTime.Time, t.f.Now) {
		return asked
	}
	return timing.Latest(asked, shown.LastHeartbeatTime.Time)
}

// answers returns the hooks that have not approved. It reports invalid values, because nothing else
// tells the user why they do not count.
func answers(annotations map[string]string, keys []v1alpha1.AnnotationKey) (waiting, refused []string) {
	for _, key := range keys {
		switch value, there := annotations[string(key)]; {
		case value == yes:
		case isNo(value):
			refused = append(refused, string(key)+": "+message.Shorten(maxAnswer, value))
		case there:
			waiting = append(waiting, fmt.Sprintf(`%s (is %q; valid answers are "true", "false" and "failed: why")`, key, message.Shorten(maxAnswer, value)))
		default:
			waiting = append(waiting, string(key))
		}
	}
	return waiting, refused
}

// yes is the answer that approves.
const yes = "true"

func isNo(value string) bool { return value == "false" || strings.HasPrefix(value, "failed") }

// IsAnswer reports whether an annotation's value may be the answer of a hook. Users choose the
// keys.
func IsAnswer(value string) bool { return value == yes || isNo(value) }

// HookUnanswered reports whether a hook has not answered for HookPatience, so that a person should
// know. The hook's timeout may be much longer.
func (t Reboot) HookUnanswered(now time.Time) bool {
	if t.Node == nil || t.Action != Wait || t.Reason != v1alpha1.ReasonWaitingForHook {
		return false
	}
	_, since := t.State()
	return now.Sub(since) >= HookPatience
}
