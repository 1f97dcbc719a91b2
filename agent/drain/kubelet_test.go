package drain_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// kubelet is a fake kubelet of one node. It removes pods that are being deleted, unless it holds
// them.
type kubelet struct {
	mu      sync.Mutex
	holding bool
	held    []*corev1.Pod
}

// startKubelet starts a kubelet that runs until the spec ends.
func startKubelet(node string) *kubelet {
	k := &kubelet{}
	ctx, stop := context.WithCancel(context.Background())
	w, err := admin.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Modified && pod.DeletionTimestamp != nil {
				k.terminate(ctx, pod)
			}
		}
	}()
	DeferCleanup(func() {
		stop()
		w.Stop()
		<-done
	})
	return k
}

func (k *kubelet) terminate(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.holding {
		k.held = append(k.held, pod)
		return
	}
	remove(ctx, pod)
}

// hold makes it keep pods that terminate from now on.
func (k *kubelet) hold() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holding = true
}

// release removes the held pods and stops holding.
func (k *kubelet) release(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holding = false
	for _, pod := range k.held {
		remove(ctx, pod)
	}
	k.held = nil
}

// remove removes a pod at once, as a kubelet does when its processes have ended.
func remove(ctx context.Context, pod *corev1.Pod) {
	err := admin.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		Expect(err).NotTo(HaveOccurred())
	}
}
