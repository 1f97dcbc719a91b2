package reboot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

func TestProgressPatch(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
	progress := protocol.Progress{Seq: 1, Phase: drainingPhase, BootID: boot, At: metav1.NewTime(now)}
	cordon, uncordon := progressPatch(node, progress), progressPatch(node, progress)
	cordon.Cordon()
	uncordon.Uncordon()
	const written = `{"metadata":{"resourceVersion":"7","annotations":{"reboot-operator.io/progress":` +
		`"{\"seq\":1,\"phase\":\"Draining\",\"bootID\":\"boot-2\",\"cordoned\":false,\"at\":\"2026-11-21T22:00:00Z\"}"}}`
	cases := map[string]struct {
		patch *nodepatch.Patch
		want  string
	}{
		"nothing":                  {&nodepatch.Patch{}, `{}`},
		"a progress":               {progressPatch(node, progress), written + `}`},
		"a progress and a cordon":  {cordon, written + `,"spec":{"unschedulable":true}}`},
		"a progress and no cordon": {uncordon, written + `,"spec":{"unschedulable":null}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.patch.Data(nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("Data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddReport(t *testing.T) {
	earlier := metav1.NewTime(now.Add(-time.Hour))
	before := corev1.NodeCondition{
		Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionTrue, Reason: "UpdateStaged", Message: "Staged.",
		LastHeartbeatTime: earlier, LastTransitionTime: earlier,
	}
	want := func(status corev1.ConditionStatus, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: v1alpha1.NodeRebootRequired, Status: status, Reason: "UpdateStaged", Message: message}
	}
	dated := func(c corev1.NodeCondition, heartbeat, transition metav1.Time) *nodepatch.Status {
		c.LastHeartbeatTime, c.LastTransitionTime = heartbeat, transition
		return new(nodepatch.Patch).Condition(c).Status
	}
	falls := nodepatch.Patch{Status: dated(want(corev1.ConditionFalse, "Nothing."), metav1.NewTime(now), metav1.NewTime(now))}
	falls.RemoveCondition(v1alpha1.NodeRebootPermitted)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "7",
			Labels:          map[string]string{"a": "1", "b": "2"},
			Annotations:     map[string]string{v1alpha1.AnnotationRebootRequested: "x"},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{before}},
	}
	cases := map[string]struct {
		status step.NodeStatus
		want   nodepatch.Patch
		wrote  bool
	}{
		"nothing": {step.NodeStatus{}, nodepatch.Patch{}, false},
		"unchanged values are not written again (behaviour 4)": {step.NodeStatus{
			Conditions: []corev1.NodeCondition{want(corev1.ConditionTrue, "Staged.")},
			Labels:     map[string]*string{"a": new("1"), "c": nil}, Annotations: map[string]*string{"d": nil},
		}, nodepatch.Patch{}, false},
		"another message keeps the time of transition": {
			step.NodeStatus{Conditions: []corev1.NodeCondition{want(corev1.ConditionTrue, "Staged again.")}},
			nodepatch.Patch{Status: dated(want(corev1.ConditionTrue, "Staged again."), metav1.NewTime(now), earlier)},
			true,
		},
		"another status moves it": {
			step.NodeStatus{Conditions: []corev1.NodeCondition{want(corev1.ConditionUnknown, "Staged.")}},
			nodepatch.Patch{Status: dated(want(corev1.ConditionUnknown, "Staged."), metav1.NewTime(now), metav1.NewTime(now))},
			true,
		},
		"a label that is removed only if it has not changed": {
			step.NodeStatus{Labels: map[string]*string{"a": nil}, Versioned: []string{"a", "b"}},
			nodepatch.Patch{Metadata: nodepatch.Metadata{ResourceVersion: "7", Labels: map[string]*string{"a": nil}}},
			true,
		},
		"an unchanged label needs no version": {
			step.NodeStatus{Labels: map[string]*string{"a": nil, "b": new("2")}, Versioned: []string{"b"}},
			nodepatch.Patch{Metadata: nodepatch.Metadata{Labels: map[string]*string{"a": nil}}},
			true,
		},
		"a condition of the manager goes with the report": {
			step.NodeStatus{
				Conditions: []corev1.NodeCondition{want(corev1.ConditionFalse, "Nothing.")}, Removed: []corev1.NodeConditionType{v1alpha1.NodeRebootPermitted},
			},
			falls,
			true,
		},
		"labels change, come and go": {
			step.NodeStatus{Labels: map[string]*string{"a": nil, "b": new("3"), "c": new("4")}},
			nodepatch.Patch{Metadata: nodepatch.Metadata{Labels: map[string]*string{"a": nil, "b": new("3"), "c": new("4")}}},
			true,
		},
		"the agent's report is written only over the one that was read": {
			step.NodeStatus{
				Annotations: map[string]*string{v1alpha1.AnnotationReport: new("{}")}, Versioned: []string{v1alpha1.AnnotationReport},
			},
			nodepatch.Patch{Metadata: nodepatch.Metadata{
				ResourceVersion: "7", Annotations: map[string]*string{v1alpha1.AnnotationReport: new("{}")},
			}},
			true,
		},
		"a request is removed only if it has not changed": {
			step.NodeStatus{
				Annotations: map[string]*string{v1alpha1.AnnotationRebootRequested: nil}, Versioned: []string{v1alpha1.AnnotationRebootRequested},
			},
			nodepatch.Patch{Metadata: nodepatch.Metadata{
				ResourceVersion: "7", Annotations: map[string]*string{v1alpha1.AnnotationRebootRequested: nil},
			}},
			true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got nodepatch.Patch
			if wrote := addStatus(&got, node, tc.status, now); wrote != tc.wrote {
				t.Errorf("report = %v, want %v", wrote, tc.wrote)
			}
			data, err := got.Data(nil)
			wanted, err2 := tc.want.Data(nil)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if diff := cmp.Diff(string(wanted), string(data)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReconcile_SeesItsOwnWriteBeforeTheCacheDoes(t *testing.T) {
	r, api, _ := makeReconciler(t, granted())
	begun := api.node.DeepCopy()
	begun.ResourceVersion, begun.Spec.Unschedulable = "11", true
	begun.Annotations[v1alpha1.AnnotationProgress] = makeProgress(1, drainingPhase, boot).String()
	r.writer.written, r.writer.writtenAt = begun, now
	r.drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainRunning}}
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

// TestReconcile_OutlivesARestore covers a restore of the API server's data from a backup. Versions
// are then lower than that of the agent's own write, and may stay so. A cache that is only slow
// must still not be trusted, so the Node is read live.
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

// A write that conflicts with an irrelevant write of another program is repeated at once. After any
// other conflict the agent decides again.
func TestReconcile_AForeignWriteCostsNoWait(t *testing.T) {
	cases := map[string]struct {
		outruns int
		meddle  func(*corev1.Node)
		writes  int
		wait    time.Duration
	}{
		"a heartbeat":                {outruns: 1, writes: 2, wait: time.Minute},
		"another conflict each time": {outruns: swapTries, writes: swapTries + 1, wait: time.Minute},
		"more conflicts than tries":  {outruns: swapTries + 1, writes: swapTries + 1, wait: conflictRetry},
		"an annotation of others":    {outruns: 1, meddle: func(n *corev1.Node) { n.Annotations["example.com/a"] = "b" }, writes: 2, wait: time.Minute},
		"a pause":                    {outruns: 1, meddle: func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationPaused] = "true" }, writes: 1, wait: conflictRetry},
		"the grant, taken away":      {outruns: 1, meddle: func(n *corev1.Node) { delete(n.Annotations, v1alpha1.AnnotationGrant) }, writes: 1, wait: conflictRetry},
		"a cordon":                   {outruns: 1, meddle: func(n *corev1.Node) { n.Spec.Unschedulable = true }, writes: 1, wait: conflictRetry},
		"another Node of the name": {
			outruns: 1, meddle: func(n *corev1.Node) { n.UID = "another" }, writes: 1, wait: conflictRetry,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, granted())
			api.outruns, api.meddle = tc.outruns, tc.meddle
			got, err := r.Reconcile(t.Context(), ctrl.Request{})
			if err != nil || got.RequeueAfter != tc.wait || len(api.patches) != tc.writes {
				t.Errorf("again after %s (%v), %d writes; want %s, %d", got.RequeueAfter, err, len(api.patches), tc.wait, tc.writes)
			}
		})
	}
}

// The end of an attempt undoes the cordon only while it is the agent's own. Somebody may have taken
// it over in the write that came first.
func TestSwap_LooksAgainWhoseCordonItIs(t *testing.T) {
	r, api, _ := makeReconciler(t, inPhase(drainingPhase))
	api.node.Spec.Unschedulable = true
	api.outruns, api.meddle = 1, func(n *corev1.Node) {
		n.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)},
		}
	}
	patch := nodepatch.New(api.node.ResourceVersion)
	patch.Uncordon()
	if err := r.writer.write(t.Context(), api.node.DeepCopy(), patch); !apierrors.IsConflict(err) || len(api.patches) != 1 {
		t.Errorf("%d writes: %v", len(api.patches), err)
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
