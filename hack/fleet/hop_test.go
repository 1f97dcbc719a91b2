package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

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
	h.fill("n3")
	h.change("n2", cordoned(true))
	h.change("n3", cordoned(true))
	must(t, c.ApplyManifest(t.Context(), []byte(hopper)))
	h.lands("", "n1")
	h.change("n3", cordoned(false))

	h.change("n2", cordoned(false))
	h.hops("n1", "n2")

	h.change("n3", cordoned(true))
	h.hops("n2", "n1")
	h.change("n3", cordoned(false))
	h.change("n2", func(n *corev1.Node) {
		n.Spec.Unschedulable, n.Spec.Taints = false, plan.WithPending(n.Spec.Taints, corev1.TaintEffectPreferNoSchedule)
	})
	h.hops("n1", "n3")

	h.change("n1", cordoned(true))
	h.hops("n3", "n2")
}

type hop struct {
	*testing.T
	c *embedded.Cluster
}

func cordoned(is bool) func(*corev1.Node) { return func(n *corev1.Node) { n.Spec.Unschedulable = is } }

func (h hop) change(node string, change func(*corev1.Node)) {
	h.Helper()
	nodes := h.c.Client().CoreV1().Nodes()
	must(h.T, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := nodes.Get(h.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(n)
		_, err = nodes.Update(h.Context(), n, metav1.UpdateOptions{})
		return err
	}))
}

// fill puts a pod on a node that asks for half of it.
func (h hop) fill(node string) {
	h.Helper()
	n, err := h.c.Client().CoreV1().Nodes().Get(h.Context(), node, metav1.GetOptions{})
	must(h.T, err)
	half := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		half[name] = *resource.NewQuantity(n.Status.Allocatable.Name(name, resource.DecimalSI).Value()/2, resource.DecimalSI)
	}
	_, err = h.c.Client().CoreV1().Pods("default").Create(h.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "ballast"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "ballast", Image: "example.com/ballast", Resources: corev1.ResourceRequirements{Requests: half},
		}}},
	}, metav1.CreateOptions{})
	must(h.T, err)
}

// hops cordons the node of the pod, as an agent does, evicts the pod, and looks where the next one is; then the node is in
// service again.
func (h hop) hops(from, to string) {
	h.Helper()
	h.change(from, cordoned(true))
	pod := h.lands("", from)
	must(h.T, h.c.Client().CoreV1().Pods("default").EvictV1(h.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod}}))
	h.lands(pod, to)
	h.change(from, cordoned(false))
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
