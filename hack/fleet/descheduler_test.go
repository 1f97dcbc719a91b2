package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// RemovePodsViolatingNodeTaints of the descheduler takes a cordon for a taint, and evicts the
// node's pods before the operator does. With the cordon's taint excluded it leaves the drain alone.
func TestDescheduler(t *testing.T) {
	program := neighbour(t, "descheduler")
	workload := fmt.Appendf(fmt.Appendf(nil, guest, "drained", "node-1"), "---"+guest, "tainted", "node-2")
	s := newTrial(t, Options{Nodes: 2, Workload: workload}, hold)
	drained, tainted := s.guest("drained"), s.guest("tainted")
	s.stageAndHold(s.fleet.Hosts[0])
	s.kubectl("taint", "node", "node-2", "example.com/other=:NoSchedule")

	stop := s.startDescheduler(program, "excluded", "{excludedTaints: [node.kubernetes.io/unschedulable]}")
	s.await("the descheduler to evict the pod of a tainted node", func() bool { return s.guest("tainted") != tainted })
	if s.guest("drained") != drained {
		t.Error("the descheduler has evicted a pod of a cordoned node, although that taint is excluded")
	}
	stop()
	s.startDescheduler(program, "default", "{}")
	s.await("the descheduler to evict the pod of a cordoned node", func() bool { return s.guest("drained") != drained })
}

// guest is a Deployment of one pod on a given node.
const guest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {kubernetes.io/hostname: %[2]s}
      containers: [{name: guest, image: example.com/guest}]
`

// guest returns the UID of the running pod of a Deployment, or "".
func (s *trial) guest(name string) types.UID {
	s.Helper()
	for _, pod := range s.pods("default", "app="+name) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return pod.UID
		}
	}
	return ""
}

const deschedulerPolicy = `
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: taints
  pluginConfig:
  - {name: RemovePodsViolatingNodeTaints, args: %s}
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
`

// startDescheduler starts the descheduler with arguments of the plugin, and returns a function that
// ends it.
func (s *trial) startDescheduler(program, name, args string) (stop func()) {
	s.Helper()
	c := s.fleet.Cluster
	name = "descheduler-" + name
	policy := filepath.Join(c.Dir, name+".yaml")
	s.must(os.WriteFile(policy, fmt.Appendf(nil, deschedulerPolicy, args), 0o600))
	kubeconfig, err := c.UserKubeconfig(name, "system:masters")
	s.must(err)
	p := s.start(process.Program{Name: name, Path: program, Args: []string{
		"--kubeconfig=" + kubeconfig, "--policy-config-file=" + policy, "--descheduling-interval=1s", "--secure-port=0",
	}})
	return p.Kill
}
