package drain_test

import (
	"context"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

var _ = Describe("Drain under PodDisruptionBudgets", func() {
	const needs = "EvictionBlocked: The disruption budget web needs 3 healthy pods and has 3 currently"
	var w *world
	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.stopClock() // so that no back-off ends
	})

	It("waits, says why, and then evicts as many pods as the budget allows (behaviour 38)", func(ctx context.Context) {
		w.budget(ctx, "web", 0)
		w.pods(ctx, "web-1", "web-2", "web-3")
		d := w.start(v1alpha1.Drain{})
		Eventually(w.blocked, soon, polling).Should(Equal([]string{"web-1: " + needs, "web-2: " + needs, "web-3: " + needs}))

		w.allow(ctx, "web", 1)
		Eventually(w.status, soon, polling).Should(And(HaveField("Remaining", 2), HaveField("Blocked", HaveLen(2))))
		w.allow(ctx, "web", 2)
		Expect(d.wait()).To(Succeed())

		Expect(w.wire.Counts()).To(Equal(map[string]int{
			listsPods: 1, watchesPods: 1, watchBudgets: 1, evicts: 3 + 1 + 2,
		}))
		Expect(w.counted()).To(Equal(map[string]int{"blocked": 3, "evicted": 3}))
	})

	It("reports after five seconds that a pod is blocked for longer, without another request", func(ctx context.Context) {
		c := w.stopClock()
		w.budget(ctx, "web", 0)
		w.pods(ctx, "web")
		d := w.start(v1alpha1.Drain{})
		Eventually(w.status, soon, polling).Should(HaveField("Blocked", ConsistOf(And(HaveField("Budgets", "web"), HaveField("Recent", true)))))
		c.Step(5 * time.Second) // the next request is due after half a minute
		Eventually(w.status, soon, polling).Should(HaveField("Blocked", ConsistOf(HaveField("Recent", false))))
		Expect(w.counted()).To(Equal(map[string]int{"blocked": 1}))
		w.allow(ctx, "web", 1)
		Expect(d.wait()).To(Succeed())
	})

	It("gives the next free eviction of a budget to a waiting pod while another one terminates (behaviour 38)", func(ctx context.Context) {
		w.budget(ctx, "web", 0)
		w.pods(ctx, "web-1", "web-2", "web-3")
		w.kubelet.hold()
		d := w.start(v1alpha1.Drain{})
		Eventually(w.blocked, soon, polling).Should(HaveLen(3))
		for before := range 3 {
			w.allow(ctx, "web", 1)
			Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", before+1))
		}
		Eventually(w.blocked, soon, polling).Should(BeEmpty())
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
		Expect(w.counted()).To(Equal(map[string]int{"blocked": 3, "evicted": 3}))
	})

	It("evicts other pods while one budget is exhausted", func(ctx context.Context) {
		w.budget(ctx, "web", 0)
		w.create(ctx, "free", labelled("app", "free"))
		w.pods(ctx, "web")
		d := w.start(v1alpha1.Drain{})
		Eventually(w.status, soon, polling).Should(And(HaveField("Evicted", 1), HaveField("Blocked", HaveLen(1))))
		Expect(w.left(ctx)).To(ConsistOf("web"))
		w.allow(ctx, "web", 1)
		Expect(d.wait()).To(Succeed())
	})

	It("is not delayed by the Retry-After of a budget that lags", func(ctx context.Context) {
		w.pods(ctx, "web") // before the budget, because this client would wait for it
		Expect(admin.PolicyV1().PodDisruptionBudgets(w.namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		}, metav1.CreateOptions{})).Error().NotTo(HaveOccurred())
		retryAfter := make(chan string, 1)
		w.wire.Meddle(wire.First(isEviction), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			retryAfter <- resp.Header.Get("Retry-After")
			return resp, err
		})
		d := w.start(v1alpha1.Drain{})
		Eventually(w.blocked, soon, polling).Should(Equal([]string{
			"web: EvictionBlocked: The disruption budget web is still being processed by the server.",
		}))
		Expect(retryAfter).To(Receive(Equal("10")))
		w.allow(ctx, "web", 1)
		Expect(d.wait()).To(Succeed())
		Expect(w.wire.Counts()[evicts]).To(Equal(2))
	})

	It("names the problem of two budgets, and continues when one is deleted", func(ctx context.Context) {
		w.budget(ctx, "web", 1)
		w.budget(ctx, "all", 1)
		w.pods(ctx, "web")
		d := w.start(v1alpha1.Drain{})
		Eventually(w.blocked, soon, polling).Should(Equal([]string{
			"web: EvictionBlocked: several PodDisruptionBudgets select the pod (all, web), which the eviction API does not support: leave one",
		}))
		Expect(w.counted()).To(Equal(map[string]int{"blocked": 1}))
		w.dropBudget(ctx, "all")
		Expect(d.wait()).To(Succeed())
		Expect(w.wire.Counts()[evicts]).To(Equal(2))
	})

	It("tries again with a back-off if budgets cannot be watched", func(ctx context.Context) {
		c := w.stopClock()
		w.drainer.Policy = as(w.wire, "nobody")
		w.budget(ctx, "web", 0)
		w.pods(ctx, "web")
		d := w.start(v1alpha1.Drain{})
		Eventually(w.blocked, soon, polling).Should(HaveLen(1))
		w.allow(ctx, "web", 1)
		Eventually(func() bool {
			c.Step(firstDelayAtMost)
			return w.status().Remaining == 0
		}, soon, polling).Should(BeTrue())
		Expect(d.wait()).To(Succeed())
	})

	It("watches the budgets again when their watch ends", func(ctx context.Context) {
		c := w.stopClock()
		w.budget(ctx, "web", 0)
		w.pods(ctx, "web")
		d := w.start(v1alpha1.Drain{})
		w.endWatch(watchBudgets)
		Eventually(c.Waiters, soon, polling).Should(Equal(2), "the net and the pause before the next watch")
		c.Step(firstDelayAtMost)
		Eventually(w.wire.Counts, soon, polling).Should(HaveKeyWithValue(watchBudgets, 2))
		w.allow(ctx, "web", 1)
		Expect(d.wait()).To(Succeed())
	})

	It("waits for the namespace controller in a terminating namespace", func(ctx context.Context) {
		w.pods(ctx, "web")
		Expect(admin.CoreV1().Namespaces().Delete(ctx, w.namespace, metav1.DeleteOptions{})).To(Succeed())
		d := w.start(v1alpha1.Drain{})
		Eventually(w.counted, soon, polling).Should(Equal(map[string]int{"blocked": 1}))
		Expect(w.blocked()).To(BeEmpty(), "it will go, nobody needs to act")
		Expect(admin.CoreV1().Pods(w.namespace).Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		Expect(d.wait()).To(Succeed())
	})

	It("evicts a pod that is not ready although its budget is exhausted, if the budget allows that", func(ctx context.Context) {
		w.budget(ctx, "web", 0)
		w.pod(ctx, "web", func(p *corev1.Pod) {
			p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(corev1.PodCondition) bool { return true })
		})
		Expect(w.start(v1alpha1.Drain{}).wait()).To(Succeed())
	})
})
