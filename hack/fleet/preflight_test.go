package fleet

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

// kept is a pod that keeps a node: one by a budget that allows nothing, one by a gate of the policy.
const kept = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {kubernetes.io/hostname: %[2]s}
      containers: [{name: %[1]s, image: example.com/%[1]s}]
`

// protected is the budget.
const protected = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: default}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: db}}
`

func TestPreflight_PodsThatKeepTheirNodesAreReportedBeforeASlotIsSpent(t *testing.T) {
	s := newTrial(t, Options{Nodes: 3, Workload: fmt.Appendf(fmt.Appendf(nil, kept, "db", "node-1"), kept, "migration", "node-2")}, func(spec *v1alpha1.RebootPolicySpec) {
		spec.Settle = &metav1.Duration{}
		spec.Gates = &v1alpha1.Gates{BlockingPods: []v1alpha1.BlockingPod{
			{PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "migration"}}},
		}}
	})
	waits := func(node string, reason v1alpha1.Reason) {
		t.Helper()
		s.await(node+" to wait: "+string(reason), func() bool {
			return slices.ContainsFunc(s.fleet.Recorder.Read().Views, func(v timeline.View) bool { return v.Node == node && strings.HasPrefix(v.Why, string(reason)+": ") })
		})
	}
	rebooted := func(node string) {
		t.Helper()
		s.await(node+" to be back", func() bool { return rebootsOf(s.fleet, node) == 1 })
	}

	// The budget gets no status while the controller manager is stopped. Nobody knows then what it allows, so node-1 waits.
	s.must(s.fleet.Cluster.Signal(embedded.KubeControllerManager, syscall.SIGSTOP))
	s.must(s.fleet.Cluster.ApplyManifest(t.Context(), []byte(protected)))
	s.must(s.fleet.Stage())
	waits("node-1", v1alpha1.ReasonUndrainablePod)
	s.must(s.fleet.Cluster.Signal(embedded.KubeControllerManager, syscall.SIGCONT))
	rebooted("node-3")
	waits("node-1", v1alpha1.ReasonUndrainablePod)
	waits("node-2", v1alpha1.ReasonBlockingPod)
	if status := s.status(); status.Seq != 1 || len(status.Grants) > 1 {
		t.Errorf("%d grants were given, want the one of node-3", status.Seq)
	}

	s.kubectl("delete", "deployment", "migration", "--namespace=default")
	rebooted("node-2")
	waits("node-1", v1alpha1.ReasonUndrainablePod)
	s.kubectl("delete", "poddisruptionbudget", "db", "--namespace=default")
	rebooted("node-1")
	s.awaitFinished()
	expectRights(t, s.fleet)
}

// rebootsOf counts the reboots of a node that is back in service.
func rebootsOf(f *Fleet, node string) int {
	for _, v := range f.Recorder.Read().Views {
		if v.Node == node && !v.Cordoned {
			return v.Reboots
		}
	}
	return 0
}
