package reboot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestObjected: an event follows the write that made the objection stand, and no other.
func TestObjected(t *testing.T) {
	rolledBack := protocol.Objection{Reason: v1alpha1.ReasonUpdateNotApplied, Message: "Still at 1.0, not 2.0."}
	other := protocol.Objection{Reason: v1alpha1.ReasonUpdateNotApplied, Message: "Still at 1.0, not 2.1."}
	inhibited := protocol.Objection{Reason: v1alpha1.ReasonInhibited, Message: "Blocked by x."}
	cases := map[string]struct {
		before, after []protocol.Objection
		want          []string
	}{
		"it is there now":          {nil, []protocol.Objection{rolledBack}, []string{rolledBack.Message}},
		"it is behind another":     {[]protocol.Objection{inhibited}, []protocol.Objection{inhibited, rolledBack}, []string{rolledBack.Message}},
		"it was there before":      {[]protocol.Objection{rolledBack, inhibited}, []protocol.Objection{rolledBack}, nil},
		"another one was there":    {[]protocol.Objection{other}, []protocol.Objection{rolledBack}, []string{rolledBack.Message}},
		"it is gone":               {[]protocol.Objection{rolledBack}, nil, nil},
		"somebody needs not see":   {nil, []protocol.Objection{inhibited}, nil},
		"nobody could read before": {[]protocol.Objection{{}}, []protocol.Objection{rolledBack}, []string{rolledBack.Message}},
		"nobody can read now":      {nil, []protocol.Objection{{}}, nil},
	}
	annotations := func(all []protocol.Objection) map[string]string {
		if len(all) == 0 {
			return nil
		}
		return map[string]string{v1alpha1.AnnotationReport: protocol.AgentReport{Objection: protocol.JoinObjections(all)}.String()}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			a := NewAnnouncer(recorder)
			a.objected(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: annotations(tc.after)}}, annotations(tc.before))
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, strings.TrimPrefix(event, "Warning UpdateNotApplied "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReported: a need is an event, once; which engines there are is in the condition alone.
func TestReported(t *testing.T) {
	says := func(status corev1.ConditionStatus, reason v1alpha1.Reason, message string) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: v1alpha1.NodeRebootRequired, Status: status, Reason: string(reason), Message: message}}
	}
	none := says(corev1.ConditionUnknown, v1alpha1.ReasonEngineUnreachable, "No update engine is found.")
	one := says(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, "Nothing is staged. Reported by sentinel.")
	two := says(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, "Nothing is staged. Reported by update-engine, sentinel.")
	needed := says(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, `An administrator asks for a reboot: "Reported by me". `+"An update is staged. Reported by update-engine (asks), sentinel.")
	recorder := events.NewFakeRecorder(10)
	a := NewAnnouncer(recorder)
	before := []corev1.NodeCondition(nil)
	for _, after := range [][]corev1.NodeCondition{none, one, two, needed, needed, two} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: after}}
		a.reported(t.Context(), node, step.Observation{Conditions: before})
		before = after
	}
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	want := []string{`Normal RebootRequired UpdateStaged: An administrator asks for a reboot: "Reported by me". An update is staged.`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestNotice_NamesThePodsInTheWayInEachAttempt: once for each set of them, and again where a later attempt waits for the same ones.
func TestNotice_NamesThePodsInTheWayInEachAttempt(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	a := NewAnnouncer(recorder)
	node, o := &corev1.Node{}, makeObservation(beingDrained)
	blocked := []drain.Pod{{Namespace: "a", Name: "db-0", UID: "1", Reason: v1alpha1.EventEvictionBlocked, Message: "why"}}
	for range 2 {
		a.begun(node, o, *o.Record.Progress)
		a.notice(node, o, blocked)
		a.notice(node, o, blocked)
	}
	close(recorder.Events)
	got := 0
	for event := range recorder.Events {
		if event == "Warning EvictionBlocked the drain waits for a/db-0 (why)." {
			got++
		}
	}
	if got != 2 {
		t.Errorf("%d events in two attempts", got)
	}
}
