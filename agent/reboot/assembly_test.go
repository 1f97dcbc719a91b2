package reboot

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestAssembly_Identities(t *testing.T) {
	config := &rest.Config{Host: "https://api", QPS: -1}
	for asNode, want := range map[bool]string{true: "system:node:n1", false: ""} {
		node, own := Assembly{Config: config, AsNode: asNode, Node: "n1"}.identities()
		if node.Impersonate.UserName != want || own.Impersonate.UserName != "" {
			t.Errorf("acts as %q on the Node and as %q else, want %q and itself", node.Impersonate.UserName, own.Impersonate.UserName, want)
		}
		if node.QPS != 5 || node.Burst != 10 || config.QPS != -1 {
			t.Errorf("limits %v, %v; the caller's config has %v", node.QPS, node.Burst, config.QPS)
		}
	}
}

// 250 pods need 250 requests. At the agent's own limit they would take 48 seconds.
func TestNewDrainClient_EmptiesALargeNodeAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList"}`)
	}))
	defer server.Close()
	node, _ := Assembly{Config: &rest.Config{Host: server.URL}, Node: "n1"}.identities()
	client, err := newDrainClient(node)
	if err != nil {
		t.Fatal(err)
	}
	drainer, began := &drain.Drainer{Pods: client, Policy: client, Clock: clock.RealClock{}}, time.Now()
	for range 250 {
		if _, err := drainer.Look(t.Context(), "n1", drain.PodRules{}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("250 requests took %s", took)
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
		"another order of volumes in use":            {using("b", "a"), false},
		"the same number of volumes, but other ones": {using("a", "c"), true},
		"a heartbeat (behaviour 56)":                 {conditioned(corev1.NodeReady), false},
		"somebody else's label":                      {labelled("x"), false},
		"our label":                                  {labelled(v1alpha1.LabelRebootRequired), true},
		"our condition":                              {conditioned(v1alpha1.NodeRebootRequired), true},
		"a cordon":                                   {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"a grant":                                    {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationGrant: "x"} }, true},
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
