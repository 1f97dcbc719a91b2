package reboot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// emitted returns the events since the last call.
func (a *announcer) emitted() []string {
	var all []string
	for recorder := a.recorder.EventRecorder.(*events.FakeRecorder); len(recorder.Events) > 0; {
		all = append(all, <-recorder.Events)
	}
	return all
}

// warnings returns those of them that are warnings.
func (a *announcer) warnings() []string {
	var all []string
	for _, event := range a.emitted() {
		if strings.HasPrefix(event, corev1.EventTypeWarning) {
			all = append(all, event)
		}
	}
	return all
}

// TestReported shows that a need emits one event. Only the condition names the engines.
func TestReported(t *testing.T) {
	condition := func(status corev1.ConditionStatus, reason v1alpha1.Reason, message string) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: v1alpha1.NodeRebootRequired, Status: status, Reason: string(reason), Message: message}}
	}
	none := condition(corev1.ConditionUnknown, v1alpha1.ReasonEngineUnreachable, "No update engine is found.")
	one := condition(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, "Nothing is staged. Reported by sentinel.")
	two := condition(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, "Nothing is staged. Reported by update-engine, sentinel.")
	needed := condition(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, `An administrator asks for a reboot: "Reported by me". `+"An update is staged. Reported by update-engine (asks), sentinel.")
	a := newAnnouncer(events.NewFakeRecorder(10))
	before := []corev1.NodeCondition(nil)
	for _, after := range [][]corev1.NodeCondition{none, one, two, needed, needed, two} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: after}}
		a.reported(t.Context(), node, step.Observation{Conditions: before})
		before = after
	}
	want := []string{`Normal RebootRequired UpdateStaged: An administrator asks for a reboot: "Reported by me". An update is staged.`}
	if diff := cmp.Diff(want, a.emitted()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestNotice_NamesThePodsInTheWayInEachAttempt shows that each set of pods is reported once in each
// attempt, once it has held up the drain for some seconds.
func TestNotice_NamesThePodsInTheWayInEachAttempt(t *testing.T) {
	a := newAnnouncer(events.NewFakeRecorder(10))
	node, o := &corev1.Node{}, step.Observation{Record: inPhase(drainingPhase)}
	blocked := []drain.Pod{{Namespace: "a", Name: "db-0", UID: "1", Reason: v1alpha1.EventEvictionBlocked, Message: "why"}}
	for range 2 {
		a.begun(node, o, *o.Record.Progress)
		for _, blocked[0].Recent = range []bool{true, false, false} {
			a.notice(node, o, blocked)
		}
	}
	want := slices.Repeat([]string{"Warning EvictionBlocked the drain waits for a/db-0 (why)."}, 2)
	if diff := cmp.Diff(want, a.warnings()); diff != "" {
		t.Errorf("warnings in two attempts (-want +got):\n%s", diff)
	}
}

// The first write that names the volumes emits the event. So does a write that goes on without
// waiting for them.
func TestReconcile_EmitsTheWaitForVolumesOnce(t *testing.T) {
	r, api, _ := makeReconciler(t, inPhase(drainingPhase))
	api.keeps = true
	r.drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainDone, DoneAt: now.Add(-time.Minute), LeftAt: now}}
	reconcile := func(want ...string) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.announcer.emitted()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	api.node.Status.VolumesInUse = []corev1.UniqueVolumeName{"disk"}
	reconcile("Normal VolumesInUse The pods that must leave the node before a reboot have left. The reboot waits at most 5m0s " +
		"for the kubelet to release disk (status.volumesInUse).")
	api.node.Status.VolumesInUse = []corev1.UniqueVolumeName{"disk", "other"}
	r.Clock.(*testclock.FakeClock).Step(time.Minute) // because each write needs a change
	patches := len(api.patches)
	if reconcile(); len(api.patches) != patches+1 {
		t.Errorf("patches %q", api.patches)
	}
	r.drains.last.DoneAt, r.drains.last.LeftAt = now.Add(-time.Hour), r.Clock.Now()
	reconcile("Warning VolumesInUse the reboot continues after 5m0s, although the kubelet still uses disk, other", "Normal Drained drained (number 1)")
}
