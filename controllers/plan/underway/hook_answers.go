package underway

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// WaitingHooks returns the hooks of the node that have not approved.
func (t Reboot) WaitingHooks() []v1alpha1.AnnotationKey {
	if t.Node == nil || t.Node.Hooks == nil || t.Node.Hooks.Seq != t.Entry.Seq || !hooked(t.Reason) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.Node.Hooks.Hooks), func(key v1alpha1.AnnotationKey) bool {
		return t.Node.Annotations[string(key)] == record.Yes
	})
}

// AnswerHook returns the command that answers for a hook of the node by hand, or that shows more if
// no hook waits.
func (t Reboot) AnswerHook() string {
	if waiting := t.WaitingHooks(); len(waiting) > 0 {
		return fmt.Sprintf("kubectl annotate node %s %s=%s --overwrite", t.Entry.Node, waiting[0], record.Yes)
	}
	return "kubectl reboot explain " + t.Entry.Node
}

// HookPatienceEnds returns when a person is told that a hook has not answered, or the zero time if
// the reboot waits for no hook.
func (t Reboot) HookPatienceEnds() time.Time {
	if t.Node == nil || t.Reason != v1alpha1.ReasonWaitingForHook || t.Action != Wait {
		return time.Time{}
	}
	_, since := t.State()
	return since.Add(HookPatience)
}
