package drain_test

import (
	"context"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// follow runs Follow with gates.blockingPods until the spec ends.
func (w *world) follow(blocking v1alpha1.BlockingPod) (found func() []drain.Pod) {
	ctx, cancel := context.WithCancel(context.Background())
	last, done := atomic.Pointer[drain.Findings]{}, make(chan error, 1)
	last.Store(&drain.Findings{})
	go func() {
		rules := drain.PodRules{Blocking: []v1alpha1.BlockingPod{blocking}}
		done <- w.drainer.Follow(ctx, w.node, rules, func(f drain.Findings) { last.Store(&f) })
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(done, soon).Should(Receive(MatchError(context.Canceled)))
	})
	return func() []drain.Pod { return last.Load().Blocking }
}

var _ = Describe("Follow", func() {
	It("reads the labels of namespaces again when a watch has ended", func(ctx context.Context) {
		w := newWorld(ctx)
		c := w.stopClock()
		label := func(team string) {
			GinkgoHelper()
			patch := `{"metadata":{"labels":{"team":` + team + `}}}`
			_, err := admin.CoreV1().Namespaces().Patch(ctx, w.namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		label(`"data"`)
		w.pod(ctx, "migration")
		blocking := w.follow(v1alpha1.BlockingPod{NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "data"}}})
		Eventually(blocking, soon, polling).Should(ConsistOf(HaveField("Name", "migration")))

		label("null")
		w.endWatch(watchesPods)
		Eventually(func() []drain.Pod {
			c.Step(firstDelayAtMost)
			return blocking()
		}, soon, polling).Should(BeEmpty())
		Eventually(w.wire.Counts, soon, polling).Should(And(
			HaveKeyWithValue(listsPods, 2), HaveKeyWithValue(watchesPods, 2), HaveKeyWithValue("get namespaces", 2)))
	})
})
