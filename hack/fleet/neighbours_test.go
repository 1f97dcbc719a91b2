package fleet

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// neighbour returns the path of a program of hack/neighbours. It skips the test if the program has
// not been built, or fails it if NEIGHBOURS_REQUIRED is set, as in `make versions`.
func neighbour(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("this takes minutes; make versions runs it")
	}
	path := filepath.Join(testenv.Root(), "bin", "neighbours", name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("NEIGHBOURS_REQUIRED") != "" {
		t.Fatalf("%s is missing, and NEIGHBOURS_REQUIRED is set: hack/neighbours/build.sh", path)
	}
	testenv.NotShown(t, path+" is missing: hack/neighbours/build.sh builds it")
	return ""
}

// start starts a program that ends with the fleet.
func (s *trial) start(program process.Program) *process.Process {
	s.Helper()
	p, err := s.fleet.Cluster.Processes.Start(program)
	s.must(err)
	return p
}

// adopt puts a machine behind a node that Karpenter has made, and lets the operator's agent run
// there.
func (s *trial) adopt(node string) *Host {
	s.Helper()
	ctx := context.WithoutCancel(s.Context())
	h, err := newHost(ctx, s.fleet.Cluster, node, engines()[0])
	s.must(err)
	s.fleet.attach(ctx, h, 100*time.Millisecond)
	s.fleet.Hosts = append(s.fleet.Hosts, h)
	// A change of the pod makes the kubelet look at it.
	s.kubectl("annotate", "pods", "--namespace="+namespace, "--field-selector=spec.nodeName="+node, "example.com/adopted=true")
	return h
}

// stageAndHold stages updates on machines, and waits until their nodes are granted and cordoned.
// hold keeps them there.
func (s *trial) stageAndHold(hosts ...*Host) {
	s.Helper()
	for _, h := range hosts {
		s.must(h.Stage())
		s.await(h.Name+" to be granted and cordoned", func() bool {
			n := s.node(h.Name)
			return n.Annotations[v1alpha1.AnnotationGrant] != "" && n.Spec.Unschedulable
		})
	}
}

// hold is a lead time that no test waits for. A drain keeps the lead time with which it began.
func hold(spec *v1alpha1.RebootPolicySpec) {
	spec.Drain = &v1alpha1.Drain{LeadTime: &v1alpha1.Duration{Duration: time.Hour}}
	spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}}
}

// gone reports whether a node has been deleted.
func (s *trial) gone(node string) bool {
	s.Helper()
	_, err := s.fleet.Cluster.Client().CoreV1().Nodes().Get(s.Context(), node, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		s.must(err)
	}
	return err != nil
}

// disrupted reports whether Karpenter has begun to remove a node.
func disrupted(n *corev1.Node) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == "karpenter.sh/disrupted" {
			return true
		}
	}
	return n.DeletionTimestamp != nil
}
