package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// ballast takes half of n3.
const ballast = `
apiVersion: v1
kind: Pod
metadata: {name: ballast, namespace: default}
spec:
  nodeName: n3
  containers: [{name: ballast, image: example.com/ballast, resources: {requests: {cpu: 8, memory: 32Gi}}}]
`

const hopper = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: example.com/web}]
`

// A pod that is evicted from n1 would go to n2, which is empty, if n2 were not the next to be rebooted; then it goes to n3,
// though that is half full. Where no other node is left it goes to n2 all the same.
func TestPendingTaint_KeepsAnEvictedPodFromHoppingOntoTheNextNode(t *testing.T) {
	c := emptyCluster(t, func() [][]byte { return nil })
	for _, name := range []string{"n1", "n2", "n3"} {
		must(t, c.AddNode(t.Context(), name))
	}
	h := hop{T: t, c: c}
	must(t, c.ApplyManifest(t.Context(), []byte(ballast)))
	h.kubectl("cordon", "n2", "n3")
	must(t, c.ApplyManifest(t.Context(), []byte(hopper)))
	h.lands("", "n1")
	h.kubectl("uncordon", "n2", "n3")
	h.hops("n1", "n2")

	h.kubectl("cordon", "n3")
	h.hops("n2", "n1")
	h.kubectl("uncordon", "n3")
	pending, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": plan.WithPending(nil, corev1.TaintEffectPreferNoSchedule)}})
	must(t, err)
	h.kubectl("patch", "node", "n2", "--patch="+string(pending))
	h.hops("n1", "n3")

	h.kubectl("cordon", "n1")
	h.hops("n3", "n2")
}

type hop struct {
	*testing.T
	c *embedded.Cluster
}

func (h hop) kubectl(args ...string) {
	h.Helper()
	_, err := h.c.Kubectl(h.Context(), nil, args...)
	must(h.T, err)
}

// hops cordons the node of the pod, as an agent does, evicts the pod, and looks where the next one is; then the node is in
// service again.
func (h hop) hops(from, to string) {
	h.Helper()
	h.kubectl("cordon", from)
	pod := h.lands("", from)
	must(h.T, h.c.Client().CoreV1().Pods("default").EvictV1(h.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod}}))
	h.lands(pod, to)
	h.kubectl("uncordon", from)
}

// lands waits until another pod than one is on a node, and fails where it is on another.
func (h hop) lands(before, node string) (pod string) {
	h.Helper()
	err := wait.PollUntilContextTimeout(h.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := h.c.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return false, err
		}
		for _, p := range pods.Items {
			if p.Name == before || p.DeletionTimestamp != nil || p.Spec.NodeName == "" {
				continue
			}
			if pod = p.Name; p.Spec.NodeName != node {
				return false, fmt.Errorf("pod %s is on %s, want %s", p.Name, p.Spec.NodeName, node)
			}
			return true, nil
		}
		return false, nil
	})
	must(h.T, err)
	return pod
}
