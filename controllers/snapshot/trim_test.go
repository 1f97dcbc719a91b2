package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// decoded returns a Node as it is decoded from a response.
func decoded(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"example.com/pool": "workers", corev1.LabelHostname: name},
			Annotations: map[string]string{"example.com/other": "dropped", "reboot-operator.io/paused": "true"},
		},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
			}},
			Images: []corev1.ContainerImage{{Names: []string{"dropped"}}},
		},
	}
}

func transformed(t *testing.T, node *corev1.Node) *corev1.Node {
	t.Helper()
	object, err := snapshot.Transform()(node)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*corev1.Node)
}

func TestTransform_ReturnsWhatTrimReturns(t *testing.T) {
	if diff := cmp.Diff(snapshot.Trim(decoded("a")), transformed(t, decoded("a"))); diff != "" {
		t.Errorf("(-trimmed +transformed):\n%s", diff)
	}
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	if diff := cmp.Diff(snapshot.Trim(bare), transformed(t, bare)); diff != "" {
		t.Errorf("without labels (-trimmed +transformed):\n%s", diff)
	}
	if object, err := snapshot.Transform()("no node"); object != "no node" || err != nil {
		t.Errorf("an object that is not a Node becomes %v, %v", object, err)
	}
}

func TestTrim_KeepsTheAnswerOfAHookThatIsAsked(t *testing.T) {
	node := decoded("a")
	node.Annotations["example.com/a"], node.Annotations["example.com/b"] = "TRUE", "none"
	node.Annotations[v1alpha1.AnnotationHooks] = protocol.HookPhase{
		Policy: "workers", Seq: 1, BootID: "one", Stage: v1alpha1.HooksBefore, Hooks: []v1alpha1.AnnotationKey{"example.com/a"}, At: metav1.Now(),
	}.String()
	if _, asked := snapshot.Trim(node).Annotations["example.com/a"]; !asked {
		t.Error("the invalid answer of a hook is dropped, although it has to be reported")
	}
	if _, kept := snapshot.Trim(node).Annotations["example.com/b"]; kept {
		t.Error("what nobody asks for is kept")
	}
}

// A change of what is only shown to people must not wake the manager.
func TestTrim_KeepsMoreConditionsIfTheyAreNamed(t *testing.T) {
	node := decoded("a")
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDrainInProgress, Message: "waits"})
	if got := snapshot.Trim(node).Status.Conditions; len(got) != 1 || got[0].Type != corev1.NodeReady {
		t.Errorf("decisions look at %v", got)
	}
	if got := snapshot.Trim(node, corev1.NodeDrainInProgress).Status.Conditions; len(got) != 2 || got[1].Message != "waits" {
		t.Errorf("people are shown %v", got)
	}
}

// The manager's own condition keeps its times. A heartbeat of any other condition does not change
// the Node.
func TestTrim_KeepsWhenTheManagerWroteItsCondition(t *testing.T) {
	node := decoded("a")
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeRebootPermitted})
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
	}
	for _, c := range snapshot.Trim(node).Status.Conditions {
		if kept := !c.LastHeartbeatTime.IsZero(); kept != (c.Type == v1alpha1.NodeRebootPermitted) {
			t.Errorf("condition %s keeps its heartbeat: %t", c.Type, kept)
		}
	}
}

// A kubelet may report any number of conditions of one type, and each of them would be compared with
// all others.
func TestTrim_KeepsOneConditionOfEachType(t *testing.T) {
	node := decoded("a")
	for range 10_000 {
		node.Status.Conditions = append(node.Status.Conditions, node.Status.Conditions[0])
	}
	node.Status.Conditions = append(node.Status.Conditions,
		corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "down"},
		corev1.NodeCondition{Type: corev1.NodeDrained, Status: corev1.ConditionTrue},
	)
	got := snapshot.Trim(node, corev1.NodeDrained).Status.Conditions
	if len(got) != 2 || got[0].Reason != "down" || got[1].Type != corev1.NodeDrained {
		t.Errorf("%d conditions are kept: %+v", len(got), got[:min(len(got), 3)])
	}
}
