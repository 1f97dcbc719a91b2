package fleet

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// shared is the cluster of all tests, one after the other. Nil: the next test starts one.
var shared *embedded.Cluster

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if shared != nil {
		shared.Stop()
	}
	os.Exit(code)
}

// emptyCluster is a cluster with nothing in it. What brings manifests is called when the test ends: they are deleted, as is all else. A
// test that fails takes its cluster along and keeps the logs, so that it cannot fail the next one.
func emptyCluster(t *testing.T, brings func() [][]byte) *embedded.Cluster {
	t.Helper()
	if shared == nil {
		var err error
		shared, err = embedded.Start(t.Context(), embedded.Options{})
		must(t, err)
	}
	c := shared
	t.Cleanup(func() {
		if !t.Failed() {
			err := c.Clear(context.WithoutCancel(t.Context()), brings()...)
			if err == nil {
				return
			}
			t.Error(err)
		}
		t.Logf("logs are in %s", c.Dir)
		shared, c.KeepFiles = nil, true
		c.Stop()
	})
	return c
}

// trial is a fleet in a test, and its policy.
type trial struct {
	*testing.T
	fleet  *Fleet
	policy *Policy
}

// newTrial starts a fleet in an empty cluster: the programs that ship, and machines that are down for a moment only. In the end the
// judge looks at all that has happened.
func newTrial(t *testing.T, o Options, adapt func(*v1alpha1.RebootPolicySpec)) *trial {
	t.Helper()
	s := &trial{T: t}
	o.cluster = emptyCluster(t, func() [][]byte { return s.fleet.manifests })
	o.RebootDuration = 100 * time.Millisecond
	ctx := context.WithoutCancel(t.Context()) // the managers have to see the end of their policies
	var err error
	s.fleet, err = Start(ctx, o)
	must(t, err)
	t.Cleanup(func() {
		defer s.fleet.Stop()
		if !t.Failed() {
			_, err := s.fleet.Cluster.Kubectl(ctx, nil, "delete", "rebootpolicies", "--all", "--timeout=1m")
			must(t, err)
		}
	})
	t.Cleanup(func() { check(t, s.fleet) })
	s.policy, err = s.fleet.ApplyPolicy(t.Context(), adapt)
	must(t, err)
	return s
}

func (s *trial) must(err error) {
	s.Helper()
	must(s.T, err)
}

func (s *trial) await(what string, done func() bool) {
	s.Helper()
	s.must(s.fleet.Await(s.Context(), what, done))
}

func (s *trial) awaitFinished() {
	s.Helper()
	s.await("every node to be back", func() bool { return s.policy.Finished(s.Context()) })
}

func (s *trial) kubectl(args ...string) string {
	s.Helper()
	out, err := s.fleet.Cluster.Kubectl(s.Context(), nil, args...)
	s.must(err)
	return out
}

// status is what the manager reports of the policy.
func (s *trial) status() v1alpha1.RebootPolicyStatus {
	s.Helper()
	status, err := s.policy.Status(s.Context())
	s.must(err)
	return status
}

func (s *trial) node(name string) *corev1.Node {
	s.Helper()
	node, err := s.fleet.Cluster.Client().CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	return node
}

// pods are those of a namespace, with the labels.
func (s *trial) pods(namespace, labels string) []corev1.Pod {
	s.Helper()
	pods, err := s.fleet.Cluster.Client().CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{LabelSelector: labels})
	s.must(err)
	return pods.Items
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
