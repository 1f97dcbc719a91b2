package reboot

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// conditionsOf leaves out what a patch takes away.
func conditionsOf(patch []any) []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, c := range patch {
		if c, ok := c.(corev1.NodeCondition); ok {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// The first write that names the volumes brings the event, and so does going on without them.
func TestReconcile_EmitsTheWaitForVolumesOnce(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(1, drainingPhase, boot)})
	recorder := events.NewFakeRecorder(10)
	r.Events = NewAnnouncer(recorder)
	r.Drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainDone, DoneAt: now.Add(-time.Minute)}}
	api.node.Status.VolumesInUse = volumeNameList{"disk"}
	reconcile := func(want string) {
		t.Helper()
		o := r.observed(t, api.node)
		patch := &nodepatch.Patch{}
		addReport(patch, api.node, step.NodeStatusOf(o), o.Now)
		after := api.node.DeepCopy()
		after.Status.Conditions = append(after.Status.Conditions, conditionsOf(patch.Status.Conditions)...)
		r.Events.waits(after, o)
		api.node.Status.Conditions = after.Status.Conditions
		got := ""
		select {
		case got = <-recorder.Events:
		default:
		}
		if !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	reconcile("Normal VolumesInUse The pods that must leave the node before a reboot have left.")
	api.node.Status.VolumesInUse = volumeNameList{"disk", "other"}
	api.node.Status.Conditions[0].Reason = "SomethingElse" // so that there is something to write
	reconcile("")

	r.Drains.last.DoneAt = now.Add(-time.Hour)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	const want = "Warning VolumesInUse the reboot goes on after 5m0s, though the kubelet still uses disk, other"
	if got := <-recorder.Events; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}
