package reboot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	at := func(c corev1.NodeCondition, heartbeat, transition metav1.Time) *nodepatch.Status {
		c.LastHeartbeatTime, c.LastTransitionTime = heartbeat, transition
		return &nodepatch.Status{Conditions: []any{c}}
	}
	falls := nodepatch.Patch{Status: at(want(corev1.ConditionFalse, "Nothing."), metav1.NewTime(now), metav1.NewTime(now))}
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
		report step.NodeStatus
		want   nodepatch.Patch
		wrote  bool
	}{
		"nothing": {step.NodeStatus{}, nodepatch.Patch{}, false},
		"what is there is not written again (behaviour 4)": {step.NodeStatus{
			Conditions: []corev1.NodeCondition{want(corev1.ConditionTrue, "Staged.")},
			Labels:     map[string]*string{"a": new("1"), "c": nil}, Annotations: map[string]*string{"d": nil},
		}, nodepatch.Patch{}, false},
		"another message keeps the time of transition": {
			step.NodeStatus{Conditions: []corev1.NodeCondition{want(corev1.ConditionTrue, "Staged again.")}},
			nodepatch.Patch{Status: at(want(corev1.ConditionTrue, "Staged again."), metav1.NewTime(now), earlier)},
			true,
		},
		"another status moves it": {
			step.NodeStatus{Conditions: []corev1.NodeCondition{want(corev1.ConditionUnknown, "Staged.")}},
			nodepatch.Patch{Status: at(want(corev1.ConditionUnknown, "Staged."), metav1.NewTime(now), metav1.NewTime(now))},
			true,
		},
		"a label that is removed only if it has not changed": {
			step.NodeStatus{Labels: map[string]*string{"a": nil}, Versioned: []string{"a", "b"}},
			nodepatch.Patch{Metadata: nodepatch.Metadata{ResourceVersion: "7", Labels: map[string]*string{"a": nil}}},
			true,
		},
		"what need not be changed needs no version": {
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
			if wrote := addReport(&got, node, tc.report, now); wrote != tc.wrote {
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

func TestOfInterest(t *testing.T) {
	labelled := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels = map[string]string{key: "x"} }
	}
	conditioned := func(kind corev1.NodeConditionType) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: kind}} }
	}
	using := func(volumes ...corev1.UniqueVolumeName) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.VolumesInUse = volumes }
	}
	cases := map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"another order of volumes in use": {using("b", "a"), false},
		"as many, and other ones":         {using("a", "c"), true},
		"a heartbeat (behaviour 56)":      {conditioned(corev1.NodeReady), false},
		"somebody else's label":           {labelled("x"), false},
		"our label":                       {labelled(v1alpha1.LabelRebootRequired), true},
		"our condition":                   {conditioned(v1alpha1.NodeRebootRequired), true},
		"a cordon":                        {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"a grant":                         {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationGrant: "x"} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := &corev1.Node{}, &corev1.Node{}
			using("a", "b")(before)
			using("a", "b")(after)
			tc.change(after)
			if got := interesting(before, after); got != tc.want {
				t.Errorf("interesting = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTrimNode(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Status: corev1.NodeStatus{
			Images: []corev1.ContainerImage{{}}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}},
		},
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}}},
	}
	got, err := TrimNode(node)
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("TrimNode: %v (-want +got):\n%s", err, diff)
	}
	if got, err := TrimNode("tombstone"); got != "tombstone" || err != nil {
		t.Errorf("TrimNode of something else: %v, %v", got, err)
	}
}
