package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	m.Run()
}

// trial is a fleet in a test, with its policy.
type trial struct {
	*testing.T
	fleet  *Fleet
	policy *Policy
}

// newTrial starts a fleet of the shipped programs, on machines with short reboots. At the end of
// the test, the judge checks everything that happened. Logs are kept if the test fails.
func newTrial(t *testing.T, o Options, adapt func(*v1alpha1.RebootPolicySpec)) *trial {
	t.Helper()
	s := startTrial(t, o)
	var err error
	s.policy, err = s.fleet.ApplyPolicy(t.Context(), adapt)
	must(t, err)
	return s
}

// startTrial is like newTrial, without a policy.
func startTrial(t *testing.T, o Options) *trial {
	t.Helper()
	o.RebootDuration = 100 * time.Millisecond
	s := &trial{T: t}
	var err error
	s.fleet, err = Start(context.WithoutCancel(t.Context()), o) // the history must continue until the judge has seen all of it
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs are in %s", s.fleet.Cluster.KeepLogs())
		}
		s.fleet.Stop()
	})
	t.Cleanup(func() { check(t, s.fleet) })
	return s
}

func (s *trial) must(err error) {
	s.Helper()
	must(s.T, err)
}

func (s *trial) await(description string, done func() bool) {
	s.Helper()
	s.must(s.fleet.Await(s.Context(), description, done))
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

// status returns the status that the manager reports.
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

// pods returns the pods of a namespace with the given labels.
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
