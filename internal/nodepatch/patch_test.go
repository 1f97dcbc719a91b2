package nodepatch

import (
	"encoding/json"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func makeNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n1", ResourceVersion: "7", Annotations: map[string]string{"a": "1", "b": "1"}, Labels: map[string]string{"a": "1", "b": "1"},
		},
		Spec:   corev1.NodeSpec{Unschedulable: true, ProviderID: "p", Taints: []corev1.Taint{{Key: "a"}, {Key: "b"}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "A", Reason: "One"}, {Type: "B", Reason: "One", Message: "one"}}},
	}
}

func TestPatch_ChangesOnlyTheFieldsThatItNames(t *testing.T) {
	for name, tc := range map[string]struct {
		patch  func(p *Patch)
		change func(n *corev1.Node)
	}{
		"nothing":                           {func(*Patch) {}, func(*corev1.Node) {}},
		"an annotation":                     {func(p *Patch) { p.Annotate("a", "2") }, func(n *corev1.Node) { n.Annotations["a"] = "2" }},
		"no annotation":                     {func(p *Patch) { p.RemoveAnnotation("a") }, func(n *corev1.Node) { delete(n.Annotations, "a") }},
		"an annotation that does not exist": {func(p *Patch) { p.RemoveAnnotation("c") }, func(*corev1.Node) {}},
		"a label":                           {func(p *Patch) { p.Label("c", "2") }, func(n *corev1.Node) { n.Labels["c"] = "2" }},
		"no label":                          {func(p *Patch) { p.RemoveLabel("b") }, func(n *corev1.Node) { delete(n.Labels, "b") }},
		"a condition":                       {func(p *Patch) { p.Condition(corev1.NodeCondition{Type: "B", Reason: "One", Message: "two"}) }, func(n *corev1.Node) { n.Status.Conditions[1].Message = "two" }},
		"a condition, no message":           {func(p *Patch) { p.Condition(corev1.NodeCondition{Type: "B", Reason: "One"}) }, func(n *corev1.Node) { n.Status.Conditions[1].Message = "" }},
		"no condition":                      {func(p *Patch) { p.RemoveCondition("A") }, func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[1:] }},
		"no cordon":                         {func(p *Patch) { p.Uncordon() }, func(n *corev1.Node) { n.Spec.Unschedulable = false }},
		"a cordon after all":                {func(p *Patch) { p.Uncordon(); p.Cordon() }, func(*corev1.Node) {}},
		"other taints":                      {func(p *Patch) { p.Taint([]corev1.Taint{{Key: "b"}}) }, func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[1:] }},
		"no taints":                         {func(p *Patch) { p.Taint(nil) }, func(n *corev1.Node) { n.Spec.Taints = nil }},
		"an end and an addition":            {func(p *Patch) { p.Uncordon(); p.Annotate("c", "2") }, func(n *corev1.Node) { n.Spec.Unschedulable, n.Annotations["c"] = false, "2" }},
	} {
		t.Run(name, func(t *testing.T) {
			p := New("")
			tc.patch(p)
			want := makeNode()
			tc.change(want)
			byType := cmpopts.SortSlices(func(a, b corev1.NodeCondition) bool { return a.Type < b.Type }) // They have no order.
			if diff := gocmp.Diff(want, patched(t, makeNode(), p), byType); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// patched is a Node as the API server makes it of a patch.
func patched(t *testing.T, node *corev1.Node, p *Patch) *corev1.Node {
	t.Helper()
	before, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Data(node)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	got := &corev1.Node{}
	if err := json.Unmarshal(after, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPatch_LeavesOneConditionOfAType(t *testing.T) {
	node := makeNode()
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: "A", Reason: "Two"}, corev1.NodeCondition{Type: "A", Reason: "Three"})
	got := patched(t, node, New("").Condition(corev1.NodeCondition{Type: "A", Reason: "Four"})).Status.Conditions
	want := []corev1.NodeCondition{{Type: "A", Reason: "Four"}, {Type: "B", Reason: "One", Message: "one"}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPatch_CarriesTheVersionItWasMadeFrom(t *testing.T) {
	if got := patched(t, makeNode(), New("6")).ResourceVersion; got != "6" {
		t.Errorf("got version %s", got)
	}
}

// A condition is as old as its status, and its heartbeat is that of the write.
func TestDated_MovesTheTransitionWithTheStatus(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	before := corev1.NodeCondition{Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}
	for status, want := range map[corev1.ConditionStatus]time.Time{corev1.ConditionTrue: now.Add(-time.Hour), corev1.ConditionFalse: now} {
		got := Dated(corev1.NodeCondition{Status: status}, before, now)
		if !got.LastTransitionTime.Time.Equal(want) || !got.LastHeartbeatTime.Time.Equal(now) {
			t.Errorf("%s: %+v", status, got)
		}
	}
}
