package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestRunHooks(t *testing.T) {
	began := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	type want struct {
		Passed  bool
		Action  Action
		Reason  v1alpha1.Reason
		Message string
		Failed  time.Time
		Until   time.Time
	}
	keys := []v1alpha1.AnnotationKey{"example.com/a", "example.com/b"}
	phase := &protocol.HookPhase{Policy: "workers", Seq: 7, BootID: "boot", Stage: v1alpha1.HooksAfter, Hooks: keys, At: metav1.NewTime(began)}
	but := func(edit func(*protocol.HookPhase)) *protocol.HookPhase {
		other := *phase
		edit(&other)
		return &other
	}
	both := map[string]string{"example.com/a": "true", "example.com/b": "true"}
	begins := want{Action: BeginHooks, Reason: v1alpha1.ReasonWaitingForHook, Message: "hooks begin"}
	for name, tc := range map[string]struct {
		keys    []v1alpha1.AnnotationKey
		phase   *protocol.HookPhase
		answers map[string]string
		later   time.Duration
		want    want
	}{
		"no hooks":         {want: want{Passed: true, Action: Wait}},
		"the phase begins": {keys: keys, answers: both, want: begins},
		"a phase of an earlier grant begins again": {
			keys: keys, answers: both, phase: but(func(h *protocol.HookPhase) { h.Seq = 6 }), want: begins,
		},
		"a phase of the other stage is none": {
			keys: keys, answers: both, phase: but(func(h *protocol.HookPhase) { h.Stage = v1alpha1.HooksBefore }), want: begins,
		},
		"a phase of another policy with the same number is none": {
			keys: keys, answers: both, phase: but(func(h *protocol.HookPhase) { h.Policy = "others" }), want: begins,
		},
		"a phase that names no policy and no boot is not this one": {
			keys: keys, answers: both, phase: &protocol.HookPhase{Seq: 7, Stage: v1alpha1.HooksAfter, At: metav1.NewTime(began)}, want: begins,
		},
		"a phase that began in an earlier boot begins again": {
			keys: keys, answers: both, phase: but(func(h *protocol.HookPhase) { h.BootID = "earlier" }), want: begins,
		},
		"a hook that the policy names since the phase began: its answer may be stale (behaviour 51)": {
			keys: keys, answers: both, phase: but(func(h *protocol.HookPhase) { h.Hooks = keys[:1] }), want: begins,
		},
		"a hook that the policy does not name any more is not waited for": {
			keys: keys[:1], phase: phase, answers: map[string]string{"example.com/a": "true"}, want: want{Passed: true, Action: Wait},
		},
		"one has answered": {
			keys: keys, phase: phase, answers: map[string]string{"example.com/b": "true"},
			want: want{Action: Wait, Reason: v1alpha1.ReasonWaitingForHook, Message: `waiting until each is "true": example.com/a`, Until: began.Add(time.Hour)},
		},
		"a word that is no answer": {
			keys: keys[:1], phase: phase, answers: map[string]string{"example.com/a": "TRUE"},
			want: want{
				Action: Wait, Reason: v1alpha1.ReasonWaitingForHook, Until: began.Add(time.Hour),
				Message: `waiting until each is "true": example.com/a (is "TRUE", which is no answer: only "true", "false" and "failed: why" are)`,
			},
		},
		"an empty word is no answer either, and nothing in time": {
			keys: keys[:1], phase: phase, answers: map[string]string{"example.com/a": ""}, later: time.Hour,
			want: want{
				Action: Wait, Reason: v1alpha1.ReasonHookTimedOut, Failed: began.Add(time.Hour),
				Message: `hooks have not approved by Sat 2026-11-21 03:00:00 UTC: example.com/a (is "", which is no answer: only "true", "false" and "failed: why" are)`,
			},
		},
		"all have answered": {
			keys: keys, phase: phase, answers: both, want: want{Passed: true, Action: Wait},
		},
		"one says no": {
			keys: keys, phase: phase, answers: map[string]string{"example.com/a": "true", "example.com/b": "failed: disk full"},
			want: want{Action: Wait, Reason: v1alpha1.ReasonHookFailed, Message: "a hook refused: example.com/b: failed: disk full", Failed: began},
		},
		"nothing in time": {keys: keys, phase: phase, later: time.Hour, want: want{
			Action: Wait, Reason: v1alpha1.ReasonHookTimedOut, Failed: began.Add(time.Hour),
			Message: "hooks have not approved by Sat 2026-11-21 03:00:00 UTC: example.com/a, example.com/b",
		}},
		"a late yes counts": {
			keys: keys[:1], phase: phase, answers: map[string]string{"example.com/a": "true"}, later: 2 * time.Hour,
			want: want{Passed: true, Action: Wait},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.RebootPolicy{}
			policy.Spec.Hooks = &v1alpha1.Hooks{After: tc.keys}
			f := &fleet{Snapshot: Snapshot{Now: began.Add(tc.later), Policy: policy}, name: "workers"}
			node := &Node{BootID: "boot", Record: protocol.Record{Hooks: tc.phase}, Annotations: tc.answers}
			reboot := &tracker{f: f, Reboot: Reboot{Entry: v1alpha1.LedgerEntry{Seq: 7}, Node: node, Action: Wait}}
			passed := reboot.runHooks(v1alpha1.HooksAfter)
			got := want{passed, reboot.Action, reboot.Reason, reboot.Message, reboot.FailedAt, reboot.Until}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
