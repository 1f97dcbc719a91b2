package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/chaos/witness"
)

// confirmation is the delay between the end of a pod and its removal by the kubelet.
const confirmation = 300 * time.Millisecond

// workload plays the ReplicaSet, scheduler, kubelets and garbage collector of the pods of a
// schedule.
type workload struct {
	ctx     context.Context //nolint:containedctx // the life of the schedule
	objects client.Client
	witness *witness.Witness
	name    string
	group   *sync.WaitGroup
	fail    func(error)

	// comeBack places replacements on the node of the pod that they replace, even if it is cordoned.
	comeBack atomic.Bool

	mu      sync.Mutex
	created int
	removed map[string]bool // by UID
	// replacements is the number of pods that were replaced.
	replacements int
}

// addPod plays a ReplicaSet, the scheduler and a kubelet: it creates a pod on any node that accepts
// it, and the pod is Ready at once.
func (w *workload) addPod() { w.addPodTo("") }

// addPodTo adds a pod to a node, or to any node that accepts it if the name is empty.
func (w *workload) addPodTo(node string) {
	w.mu.Lock()
	w.created++
	name := fmt.Sprintf("%s-%d", w.name, w.created)
	w.mu.Unlock()
	insist(w.ctx, func() error {
		nodes := w.nodes(node)
		if len(nodes) == 0 {
			return errors.New("no node takes pods")
		}
		now := int64(0)
		return client.IgnoreAlreadyExists(w.objects.Create(w.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": w.name},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: w.name, UID: "chaos", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{
				NodeName: nodes[rand.IntN(len(nodes))], TerminationGracePeriodSeconds: &now,
				AutomountServiceAccountToken: new(false),
				Containers:                   []corev1.Container{{Name: "app", Image: "app"}},
				Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			},
		}))
	})
	status, err := json.Marshal(map[string]any{"status": corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}})
	if err != nil {
		w.fail(err)
	}
	insist(w.ctx, func() error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
		err := w.objects.Status().Patch(w.ctx, pod, client.RawPatch(types.StrategicMergePatchType, status))
		return client.IgnoreNotFound(err) // it may have been evicted already
	})
}

// nodes returns the nodes that accept a pod: the named one, or all that are not cordoned.
func (w *workload) nodes(node string) (nodes []string) {
	if node != "" {
		return []string{node}
	}
	for _, change := range w.witness.Present() {
		if change.Node != nil && !change.Node.Spec.Unschedulable {
			nodes = append(nodes, change.Name)
		}
	}
	return nodes
}

// see plays the controllers and kubelets. It replaces a pod that was deleted. It removes a pod
// whose grace period is over, because the API server may have gone away between the two writes of
// its deletion.
func (w *workload) see(pod *corev1.Pod, deleted bool) {
	switch {
	case pod.Labels["app"] != w.name || w.ctx.Err() != nil:
	case deleted:
		w.group.Go(func() { w.replace(pod) })
	case pod.DeletionTimestamp != nil:
		w.group.Go(func() {
			pause(w.ctx, confirmation)
			insist(w.ctx, func() error { return w.deletePod(pod) })
		})
	}
}

// removePods removes the pods of a machine that is gone, as the pod garbage collector does.
func (w *workload) removePods(node string) {
	for _, change := range w.witness.Present() {
		if change.Pod != nil && change.Pod.Spec.NodeName == node {
			w.remove(change.Pod)
		}
	}
}

// remove deletes a pod without an eviction.
func (w *workload) remove(pod *corev1.Pod) {
	w.mu.Lock()
	w.removed[string(pod.UID)] = true
	w.mu.Unlock()
	insist(w.ctx, func() error { return w.deletePod(pod) })
}

// replace plays a ReplicaSet that replaces a deleted pod.
func (w *workload) replace(pod *corev1.Pod) {
	node := ""
	if w.comeBack.Load() {
		node = pod.Spec.NodeName
	}
	w.addPodTo(node)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replacements++
}

// leaveNode moves the pods of the workload from a node to others. It creates the new pod first.
func (w *workload) leaveNode(node string) {
	for _, change := range w.witness.Present() {
		if change.Pod != nil && change.Pod.Spec.NodeName == node && change.Pod.Labels["app"] == w.name {
			w.addPod()
			w.remove(change.Pod)
		}
	}
}

// replaced returns the number of pods that were replaced.
func (w *workload) replaced() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replacements
}

// gone reports whether a pod was removed together with its machine.
func (w *workload) gone(pod *corev1.Pod) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.removed[string(pod.UID)]
}

// deletePod deletes a pod immediately. It does nothing if the pod is gone or was replaced.
func (w *workload) deletePod(pod *corev1.Pod) error {
	err := w.objects.Delete(w.ctx, pod.DeepCopy(), client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
