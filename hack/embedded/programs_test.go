package embedded_test

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// TestCluster_Outages: programs of a bare cluster are killed, stopped and revived; what was stored stays, and none of it is an
// error of the cluster's.
func TestCluster_Outages(t *testing.T) {
	c, err := embedded.Start(t.Context(), embedded.Options{Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Stop(); leavesNothing(t, c.Dir) }()
	nodes := c.Client().CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) > 0 {
		t.Errorf("a new node has taints that nobody removes: %v", node.Spec.Taints)
	}
	for _, program := range []string{embedded.KubeAPIServer, embedded.Etcd} {
		c.Kill(program)
		c.Kill(program) // one that is down stays so
		if err := c.Signal(program, syscall.SIGSTOP); err == nil {
			t.Errorf("%s was killed and takes signals", program)
		}
		if program == embedded.KubeAPIServer {
			if _, err := nodes.Get(t.Context(), "n1", metav1.GetOptions{}); err == nil {
				t.Error("the API server answers although it was killed")
			}
		}
		if err := c.Revive(t.Context(), program); err != nil {
			t.Fatal(err)
		}
		if err := c.Revive(t.Context(), program); err != nil {
			t.Errorf("reviving what runs: %v", err)
		}
		if _, err := nodes.Get(t.Context(), "n1", metav1.GetOptions{}); err != nil {
			t.Errorf("after %s was revived: %v", program, err)
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := c.Signal(embedded.Etcd, signal); err != nil {
			t.Error(err)
		}
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}
