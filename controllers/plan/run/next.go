package run

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// Turn holds the state of the policy on which the next stage depends, without the hooks.
type Turn struct {
	// Seq is the ledger's sequence number. A stage that begins takes the next one.
	Seq int64
	// Holds is true if the ledger has entries of the policy.
	Holds bool
	// Waits is true if only the hooks before the run keep a node from its grant.
	Waits bool
	// Stage returns the stage of a run that has begun, from the state of the nodes.
	Stage func() v1alpha1.RunStage
}

// Next returns the stage of the run once nodes are chosen, and the sequence number after it. A stage
// that begins has no time yet; the write sets it.
func (h *Hooks) Next(t Turn) (*v1alpha1.RunHooks, int64) {
	hooks := h.policy.Spec.HooksOrDefault()
	switch {
	case h.over:
		return nil, t.Seq
	case h.asks == v1alpha1.RunBefore, h.current == nil && t.Waits:
		return h.ask(t.Seq, v1alpha1.RunBefore, hooks.RunBefore)
	case h.asks == v1alpha1.RunAfter:
		return h.askAfter(t.Seq)
	case h.current == nil && t.Holds && len(hooks.RunAfter) > 0: // without hooks before the run, or after the status was lost
		return h.ask(t.Seq, v1alpha1.RunRunning, nil)
	case h.current == nil || h.current.Stage == v1alpha1.RunAfter:
		return h.current, t.Seq
	}
	switch stage := t.Stage(); {
	case stage == v1alpha1.RunAfter:
		return h.askAfter(t.Seq)
	case stage != h.current.Stage && h.current.Stage != v1alpha1.RunBefore:
		h.current.Stage, h.current.At = stage, metav1.Time{}
	}
	return h.current, t.Seq
}

// MayIdle reports whether the run may be idle for a while: blocks that end by themselves keep it so
// for at most the hooks' timeout.
func (h *Hooks) MayIdle() bool { return h.current.Stage != v1alpha1.RunIdle || h.now.Before(h.Until) }

// ask begins a stage with a new number, above that of every answer present. A policy that was
// deleted and applied again counts from 0, and old answers may have been applied with it.
func (h *Hooks) ask(seq int64, stage v1alpha1.RunStage, keys []v1alpha1.AnnotationKey) (*v1alpha1.RunHooks, int64) {
	for _, key := range keys {
		number, _, _ := strings.Cut(h.policy.Annotations[string(key)], ":")
		if answered, err := strconv.ParseInt(number, 10, 64); err == nil && record.MayFollow(answered, seq) {
			seq = max(seq, answered)
		}
	}
	seq++
	return &v1alpha1.RunHooks{Stage: stage, Number: seq, Asked: keys}, seq
}

// askAfter ends the run. Without hooks.runAfter it is over at once, unless it failed before it
// began and the next one must wait.
func (h *Hooks) askAfter(seq int64) (*v1alpha1.RunHooks, int64) {
	keys := h.policy.Spec.HooksOrDefault().RunAfter
	if len(keys) == 0 && h.current.Reason == "" {
		return nil, seq
	}
	after, seq := h.ask(seq, v1alpha1.RunAfter, keys)
	after.Reason, after.Message = h.current.Reason, h.current.Message
	return after, seq
}
