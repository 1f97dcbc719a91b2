package command

import (
	"os/exec"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
)

// TestRestConfig tests that clients have no rate limit, because 10,000 nodes need as many writes.
func TestRestConfig(t *testing.T) {
	s := &Session{Config: genericclioptions.NewConfigFlags(false)}
	s.Config.APIServer = new("https://api")
	config, err := s.restConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.QPS >= 0 {
		t.Errorf("the limit is %v requests a second", config.QPS)
	}
}

// TestShowsMore tests that heartbeats do not redraw the screen. 10,000 nodes have 33 heartbeats a
// second.
func TestShowsMore(t *testing.T) {
	trimmed := func(version string, conditions ...corev1.NodeCondition) *corev1.Node {
		return snapshot.Trim(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: version}, Status: corev1.NodeStatus{Conditions: conditions}})
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(1, 0)}
	later, down := ready, ready
	later.LastHeartbeatTime, down.Status = metav1.Unix(301, 0), corev1.ConditionFalse
	if showsMore(trimmed("1", ready), trimmed("2", later)) {
		t.Error("a heartbeat is taken for a change")
	}
	if !showsMore(trimmed("1", ready), trimmed("2", down)) || !showsMore(&v1alpha1.RebootPolicy{}, &v1alpha1.RebootPolicy{}) {
		t.Error("a change is taken for a heartbeat")
	}
}

// TestNotInService_ANodeOfWindowsIsDone tests that --wait does not wait for Windows nodes, on which
// no agent ever reports.
func TestNotInService_ANodeOfWindowsIsDone(t *testing.T) {
	node := fleettest.Node("n1", "w", func(n *corev1.Node) {
		n.Labels[corev1.LabelOSStable], n.Status.Conditions = "windows", n.Status.Conditions[:1]
	})
	if remaining := notInService(&node, new(record.Of(&node))); remaining != "" {
		t.Errorf("it is %s", remaining)
	}
}

// A printed command must survive copying to a shell, even with a context name that has spaces.
func TestQuoted_IsOneWordOfAShell(t *testing.T) {
	for _, word := range []string{"prod", "arn:aws:eks:eu-central-1:1234:cluster/prod", "/home/me/.kube/config", "my cluster", "it's", "$HOME", "a;b", "`id`", "*"} {
		printed, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quoted(word)).Output()
		if err != nil || string(printed) != word {
			t.Errorf("%q becomes %q (%v)", word, printed, err)
		}
	}
}
