package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// hookBackOff keeps a node whose before-hooks say no from taking a slot again and again.
const hookBackOff = 15 * time.Minute

// runHooks tells whether every hook of a stage has said yes. While one has not, the flight begins the phase, waits, or is
// marked with the reason and the instant at which it failed.
func (f *fleet) runHooks(t *Flight, stage v1alpha1.HookStage) (passed bool) {
	hooks := f.Policy.Spec.HooksOrDefault()
	keys := hooks.Of(stage)
	if len(keys) == 0 {
		return true
	}
	phase := t.Node.Hooks
	if phase == nil || phase.Seq != t.Entry.Seq || phase.Stage != stage {
		t.Action, t.Reason, t.Message = BeginHooks, v1alpha1.ReasonWaitingForHook, "hooks begin"
		t.Stage, t.Until = stage, time.Time{}
		return false
	}
	waiting, refused := answers(t.Node.Annotations, keys)
	if len(waiting)+len(refused) == 0 {
		return true
	}
	f.awaitHooks(t, waiting, refused, phase.At.Add(hooks.TimeoutOrDefault()))
	return false
}

func (f *fleet) awaitHooks(t *Flight, waiting, refused []string, deadline time.Time) {
	switch {
	case len(refused) > 0:
		t.Reason, t.Message, t.Until = v1alpha1.ReasonHookFailed, "a hook said no: "+list(refused), time.Time{}
		t.FailedAt = t.Node.Hooks.At.Time
	case !f.Now.Before(deadline):
		t.Reason, t.FailedAt, t.Until = v1alpha1.ReasonHookTimedOut, deadline, time.Time{}
		t.Message = fmt.Sprintf("hooks have not said yes by %s: %s", instant(deadline), list(waiting))
	default:
		t.Reason, t.Until = v1alpha1.ReasonWaitingForHook, deadline
		t.Message = "waiting until each is \"true\": " + list(waiting)
	}
}

// beforeHooks run before the bell, so the agent knows nothing of the grant yet. A hook that says no, or nothing in time,
// gives the slot back.
func (f *fleet) beforeHooks(t *Flight) (passed bool) {
	if f.runHooks(t, v1alpha1.HooksBefore) {
		return true
	}
	if !t.FailedAt.IsZero() {
		t.Action, t.FailedAt = CancelGrant, time.Time{}
	}
	return false
}

// answers sorts out the hooks that have not said yes.
func answers(annotations map[string]string, keys []v1alpha1.AnnotationKey) (waiting, refused []string) {
	for _, key := range keys {
		switch value := annotations[string(key)]; {
		case value == "true":
		case value == "false" || strings.HasPrefix(value, "failed"):
			refused = append(refused, string(key)+": "+shorten(value))
		default:
			waiting = append(waiting, string(key))
		}
	}
	return waiting, refused
}

// shorten bounds what a hook may put into a condition's message.
func shorten(value string) string {
	const most = 128
	value = strings.ToValidUTF8(value, "?")
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "…"
}

// hookRefused tells whether the last grant was given back because of a before-hook.
func (n *Node) hookRefused() bool {
	g := n.Grant
	return g != nil && g.State == v1alpha1.GrantCancelled && g.BootID == n.BootID &&
		(g.Reason == v1alpha1.ReasonHookFailed || g.Reason == v1alpha1.ReasonHookTimedOut)
}
