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

// hookBackOff keeps a node whose before-hooks refuse from taking a slot again and again.
const hookBackOff = 15 * time.Minute

// runHooks reports whether every hook of a stage has approved. While one has not, the reboot begins the phase, waits, or is
// failed, with the reason and the instant.
func (t *tracker) runHooks(stage v1alpha1.HookStage) (passed bool) {
	hooks := t.f.Policy.Spec.HooksOrDefault()
	keys, phase := hooks.Of(stage), t.Node.Hooks
	if len(keys) == 0 {
		return true
	}
	if !t.inPhase(stage, keys) {
		t.Action, t.Reason, t.Message = BeginHooks, v1alpha1.ReasonWaitingForHook, "hooks begin"
		t.Stage, t.Until = stage, time.Time{}
		return false
	}
	waiting, refused := answers(t.Node.Annotations, keys)
	if len(waiting)+len(refused) == 0 {
		return true
	}
	began := believed(phase.At.Time, t.Entry.At.Time, t.f.Now)
	t.awaitHooks(waiting, refused, began.Add(hooks.TimeoutOrDefault()))
	return false
}

// inPhase reports whether the node is in this phase, in which every hook has lost its stale answer. A phase in the future would
// never time out.
func (t *tracker) inPhase(stage v1alpha1.HookStage, keys []v1alpha1.AnnotationKey) bool {
	h := t.Node.Hooks
	return h.Covers(protocol.BeginHooks(t.Entry, t.f.name, t.Node.BootID, stage, keys, t.f.Now)) && h.At.Sub(t.f.Now) <= clockAhead
}

func (t *tracker) awaitHooks(waiting, refused []string, deadline time.Time) {
	switch {
	case len(refused) > 0:
		t.Reason, t.Message, t.Until = v1alpha1.ReasonHookFailed, "a hook refused: "+list(refused), time.Time{}
		t.FailedAt = t.refusedAt()
	case !t.f.Now.Before(deadline):
		t.Reason, t.FailedAt, t.Until = v1alpha1.ReasonHookTimedOut, deadline, time.Time{}
		t.Message = fmt.Sprintf("hooks have not approved by %s: %s", t.f.instant(deadline), list(waiting))
	default:
		t.Reason, t.Until = v1alpha1.ReasonWaitingForHook, deadline
		t.Message = "waiting until each is \"true\": " + list(waiting)
	}
}

// refusedAt is since when the node shows that a hook refused, for an answer has no time. Until it does: when the hooks were asked. A node that was
// back in service between the two would hide the failure.
func (t *tracker) refusedAt() time.Time {
	asked, shown := t.Node.Hooks.At.Time, t.Node.Permitted
	if shown == nil || shown.Reason != string(v1alpha1.ReasonHookFailed) || !hasCome(shown.LastHeartbeatTime.Time, t.f.Now) {
		return asked
	}
	return timing.Latest(asked, shown.LastHeartbeatTime.Time)
}

// answers sorts out the hooks that have not approved. A value that is no answer is reported: nothing else states why it does not count.
func answers(annotations map[string]string, keys []v1alpha1.AnnotationKey) (waiting, refused []string) {
	for _, key := range keys {
		switch value, there := annotations[string(key)]; {
		case value == yes:
		case isNo(value):
			refused = append(refused, string(key)+": "+message.Shorten(maxAnswer, value))
		case there:
			waiting = append(waiting, fmt.Sprintf(`%s (is %q, which is no answer: only "true", "false" and "failed: why" are)`, key, message.Shorten(maxAnswer, value)))
		default:
			waiting = append(waiting, string(key))
		}
	}
	return waiting, refused
}

// yes is the answer with which the reboot goes on.
const yes = "true"

func isNo(value string) bool { return value == "false" || strings.HasPrefix(value, "failed") }

// IsAnswer reports whether the value of an annotation may be the answer of a hook. Their keys are the users'.
func IsAnswer(value string) bool { return value == yes || isNo(value) }

const (
	// maxAnswer bounds, in bytes, what one hook may put into a condition's message.
	maxAnswer = 128
	// maxMessage bounds, in bytes, what a record reports.
	maxMessage = 512
)
