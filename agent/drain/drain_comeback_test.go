package drain_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

var _ = DescribeTable("Drain ends although a controller puts its pod back on the cordoned node repeatedly, and names the pod",
	func(ctx context.Context, evicted int, why string, changes ...func(*corev1.Pod)) {
		w := newWorld(ctx)
		w.kubelet.hold() // so that each replacement exists before the old pod is gone
		w.wire.Meddle(isEviction, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			defer GinkgoRecover()
			resp, err := next.RoundTrip(r)
			if err == nil && resp.StatusCode == http.StatusCreated {
				w.create(ctx, fmt.Sprintf("web-%d", len(w.left(ctx))), changes...)
			}
			return resp, err
		})
		w.pod(ctx, "web-0", changes...)
		d := w.start(v1alpha1.Drain{})
		Eventually(w.status, soon, polling).Should(HaveField("Back", HaveLen(1)))
		Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", evicted))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())

		last := fmt.Sprintf("web-%d", evicted)
		Expect(w.left(ctx)).To(ConsistOf(last))
		Expect(w.status()).To(Equal(drain.Status{Evicted: evicted, Back: []drain.Pod{{
			Namespace: w.namespace, Name: last, UID: w.get(ctx, last).UID, Message: "comes back to the cordoned node" + why,
		}}}))
	},
	Entry("because it tolerates a cordon", 1, ": it tolerates the taint node.kubernetes.io/unschedulable", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}),
	Entry("because it names the node", 2, " again and again: its controller, or another scheduler, puts it there"),
)

var _ = Describe("Pods that came back to the drained node", func() {
	everything := rules(rule(v1alpha1.DrainSkip, "keep", "true", 0), rule(v1alpha1.DrainDelete, "stuck", "true", 0))
	evictLeft := func(ctx context.Context, w *world) []string {
		GinkgoHelper()
		refused, err := w.drainer.EvictLeft(ctx, w.node, drain.PodRules{Drain: everything})
		Expect(err).NotTo(HaveOccurred())
		names := []string{}
		for _, pod := range refused {
			names = append(names, pod.Name+": "+pod.Message)
		}
		return names
	}

	It("are evicted again, as far as their budget allows", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.pod(ctx, "web-0")
		w.budget(ctx, "web", 0)
		Expect(evictLeft(ctx, w)).To(ConsistOf("web-0: The disruption budget web needs 3 healthy pods and has 3 currently"))
		Expect(w.get(ctx, "web-0").DeletionTimestamp).To(BeNil())
		w.allow(ctx, "web", 1)
		Expect(evictLeft(ctx, w)).To(BeEmpty())
		Eventually(w.left, soon, polling).WithArguments(ctx).Should(BeEmpty())
		Expect(w.counted()).To(Equal(map[string]int{"blocked": 1, "evicted": 1}))
	})

	It("are left alone if they use no eviction of their budget, or a rule skips them", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.pod(ctx, "starting", phase(corev1.PodPending), func(p *corev1.Pod) { p.Status.Conditions = nil })
		w.pod(ctx, "kept", labelled("keep", "true"))
		w.pod(ctx, "stuck", labelled("stuck", "true"))
		w.pod(ctx, "bare", bare)
		w.pod(ctx, "agent", ownedBy("DaemonSet"))
		Expect(evictLeft(ctx, w)).To(BeEmpty())
		Expect(w.left(ctx)).To(HaveLen(5))
		Expect(w.counted()).To(BeEmpty())
	})

	It("are unknown without permission to list them", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.wire.Meddle(func(*http.Request) bool { return true }, wire.Forbid)
		_, err := w.drainer.EvictLeft(ctx, w.node, drain.PodRules{})
		Expect(err).To(MatchError(ContainSubstring("evicting what is left on node")))
	})
})
