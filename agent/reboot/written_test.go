package reboot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestReconcile_SeesItsOwnWriteBeforeTheCacheDoes(t *testing.T) {
	r, api, _ := makeReconciler(t, granted())
	begun := api.node.DeepCopy()
	begun.ResourceVersion, begun.Spec.Unschedulable = "11", true
	begun.Annotations[v1alpha1.AnnotationProgress] = makeProgress(1, drainingPhase, boot).String()
	r.writer.written, r.writer.writtenAt = begun, now
	r.Drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainRunning}}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || r.writer.written == nil {
		t.Errorf("error %v, patches %q", err, api.patches)
	}
	for _, patch := range api.patches {
		if strings.HasPrefix(patch, "node") {
			t.Errorf("began twice: %s", patch)
		}
	}
	api.node.ResourceVersion = "12"
	if node, err := r.writer.node(t.Context()); err != nil || node.ResourceVersion != "12" || r.writer.written != nil {
		t.Errorf("the cache is ahead, and still the write counts: %v, %v", node, err)
	}
}

// TestReconcile_OutlivesARestore: after one the versions are lower than that of the agent's own write, and may stay
// so. A cache that is only slow must not be believed all the same, so the API server is asked.
func TestReconcile_OutlivesARestore(t *testing.T) {
	cases := map[string]struct {
		at   time.Time
		want string
	}{
		"its own write counts at first":        {now.Add(-writtenLasts + 1), "90"},
		"for long: what the API server shows":  {now.Add(-writtenLasts), "30"},
		"after a conflict: the same, and soon": {time.Time{}, "30"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, protocol.Record{})
			live := *api
			live.node = api.node.DeepCopy()
			live.node.ResourceVersion, api.node.ResourceVersion = "30", "20"
			r.writer.live, r.writer.written, r.writer.writtenAt = &live, api.node.DeepCopy(), tc.at
			r.writer.written.ResourceVersion = "90"
			for range 2 {
				if node, err := r.writer.node(t.Context()); err != nil || node.ResourceVersion != tc.want {
					t.Errorf("goes by %v, want %s: %v", node, tc.want, err)
				}
			}
			api.node.ResourceVersion, live.getErr = "30", errAPI
			if node, err := r.writer.node(t.Context()); tc.want == "30" && (err != nil || r.writer.written != nil) {
				t.Errorf("the cache is there, and still goes by %v: %v", node, err)
			}
		})
	}
}

func TestReconcile_SpacesConflictsInARow(t *testing.T) {
	r, api, _ := makeReconciler(t, granted())
	r.writer.written, r.writer.writtenAt = api.node.DeepCopy(), now
	var waits []time.Duration
	for _, api.patchErr = range []error{conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict, nil, conflict} {
		got, err := r.Reconcile(t.Context(), ctrl.Request{})
		if err != nil || api.patchErr != nil && !r.writer.writtenAt.IsZero() {
			t.Errorf("%v, and a write that was refused counts on since %s", err, r.writer.writtenAt)
		}
		waits = append(waits, got.RequeueAfter/conflictRetry)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 64, 100, 100, time.Minute / conflictRetry, 1}, waits); diff != "" {
		t.Errorf("waits, in 100 ms (-want +got):\n%s", diff)
	}
}
