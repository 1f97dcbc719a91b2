package drain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

var _ = Describe("Drain", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	It("costs one LIST, one WATCH and one request for each pod (behaviours 37, 41)", func(ctx context.Context) {
		names := []string{}
		for i := range 12 {
			names = append(names, fmt.Sprintf("web-%02d", i))
		}
		stays := []*corev1.Pod{
			w.create(ctx, "daemon", ownedBy("DaemonSet")),
			w.create(ctx, "static", mirror, ownedBy("Node")),
			w.create(ctx, "succeeded", bare, phase(corev1.PodSucceeded)),
			w.create(ctx, "failed", phase(corev1.PodFailed)),
			w.create(ctx, "agent"),
			w.create(ctx, "elsewhere", on("other")),
		}
		w.pods(ctx, names...)
		w.drainer.Self = key(stays[4])
		w.stopClock() // so that every response is counted

		Expect(w.start(v1alpha1.Drain{}).wait()).To(Succeed())

		Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1, watchesPods: 1, evicts: 12}))
		Expect(w.evictions()).To(ConsistOf(names))
		Expect(w.counted()).To(Equal(map[string]int{"evicted": 12}))
		Expect(w.left(ctx)).To(ConsistOf("daemon", "static", "succeeded", "failed", "agent", "elsewhere"))
		for _, pod := range stays {
			Expect(w.get(ctx, pod.Name).ResourceVersion).To(Equal(pod.ResourceVersion), "%s was touched", pod.Name)
		}
		for i, s := range w.statuses {
			Expect(s).To(Equal(drain.Status{Remaining: 12 - i, Evicted: i}), "each change is reported, once")
		}
		Expect(w.statuses).To(HaveLen(13))
	})

	It("evicts nothing if the policy keeps a pod, and names all such pods (behaviour 39)", func(ctx context.Context) {
		w.create(ctx, "alone", bare)
		w.create(ctx, "cache", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
		w.pods(ctx, "web")

		err := w.start(v1alpha1.Drain{EmptyDirData: v1alpha1.PodDisposalBlock}).wait()

		undrainable, ok := errors.AsType[*drain.UndrainableError](err)
		Expect(ok).To(BeTrue(), "error %v", err)
		Expect(undrainable.Pods).To(HaveLen(2))
		Expect(err).To(MatchError(fmt.Sprintf("draining node %q: the policy keeps pods on the node: "+
			"pod %s/alone: no controller would create it again, and drain.unmanagedPods is Block; "+
			`pod %s/cache: the data in its emptyDir volume "tmp" would be lost, and drain.emptyDirData is Block`,
			w.node, w.namespace, w.namespace)))
		Expect(w.wire.Counts()[evicts]).To(BeZero())
		Expect(w.left(ctx)).To(ConsistOf("alone", "cache", "web"))
	})

	It("evicts nothing if a pod has come that keeps its node, even one of a DaemonSet", func(ctx context.Context) {
		selected := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "migration"} }
		w.create(ctx, "migration", selected)
		w.create(ctx, "everywhere", selected, ownedBy("DaemonSet"))
		w.pods(ctx, "web")

		err := w.start(v1alpha1.Drain{}, v1alpha1.BlockingPod{
			PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "migration"}},
		}).wait()

		Expect(err).To(MatchError(And(
			ContainSubstring("pod %s/everywhere: gates.blockingPods lets it keep its node until it has completed", w.namespace),
			ContainSubstring("pod %s/migration: gates.blockingPods lets it keep its node until it has completed", w.namespace),
		)))
		Expect(w.wire.Counts()[evicts]).To(BeZero())
		Expect(w.left(ctx)).To(ConsistOf("migration", "everywhere", "web"))
	})

	It("caps the grace period", func(ctx context.Context) {
		w.kubelet.hold()
		w.pod(ctx, "web", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) })
		d := w.start(v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 7 * time.Second}})
		Eventually(func() *int64 { return w.get(ctx, "web").DeletionGracePeriodSeconds }, soon, polling).
			Should(HaveValue(BeEquivalentTo(7)))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
	})

	It("caps the grace period of a pod that somebody else has deleted", func(ctx context.Context) {
		w.kubelet.hold()
		w.pods(ctx, "web")
		w.budget(ctx, "web", 0)
		Expect(admin.CoreV1().Pods(w.namespace).Delete(ctx, "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64(600))})).To(Succeed())
		d := w.start(v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 7 * time.Second}})
		Eventually(func() *int64 { return w.get(ctx, "web").DeletionGracePeriodSeconds }, soon, polling).
			Should(HaveValue(BeEquivalentTo(7)))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
		Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1, watchesPods: 1, evicts: 1}))
	})

	It("bypasses a PodDisruptionBudget with a rule of action Delete", func(ctx context.Context) {
		w.kubelet.hold()
		w.budget(ctx, "web", 0)
		w.pod(ctx, "stuck", func(p *corev1.Pod) { p.Labels["stuck"] = "ok" })
		r := rule(v1alpha1.DrainDelete, "stuck", "ok", 0)
		r.GracePeriod = &v1alpha1.Duration{Duration: 5 * time.Second}
		d := w.start(rules(r))
		Eventually(w.counted, soon, polling).Should(Equal(map[string]int{"deleted": 1}))
		Expect(w.get(ctx, "stuck").DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(5)))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
		Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1, watchesPods: 1, "delete pods": 1}))
		Expect(w.statuses).To(HaveExactElements(
			drain.Status{Remaining: 1}, drain.Status{Remaining: 1, Deleted: 1, Deleting: 1}, drain.Status{Evicted: 1, Deleted: 1},
		))
	})

	It("waits for pods to complete without evicting them (action WaitCompleted)", func(ctx context.Context) {
		batch := w.pod(ctx, "batch", bare, labelled("job", "batch"))
		d := w.start(rules(rule(v1alpha1.DrainWaitCompleted, "job", "batch", 0)))
		Eventually(w.blocked, soon, polling).Should(Equal([]string{"batch: WaitCompleted: a rule waits until it has completed"}))
		batch.Status.Phase = corev1.PodSucceeded
		_, err := admin.CoreV1().Pods(w.namespace).UpdateStatus(ctx, batch, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(d.wait()).To(Succeed())
		Expect(w.left(ctx)).To(ConsistOf("batch"))
		Expect(w.wire.Counts()[evicts]).To(BeZero())
	})

	It("evicts one order after the other, each only when the previous one is gone", func(ctx context.Context) {
		w.kubelet.hold()
		w.create(ctx, "db", labelled("tier", "db"))
		w.create(ctx, "proxy-1", labelled("tier", "proxy"))
		w.create(ctx, "proxy-2", labelled("tier", "proxy"))
		w.pods(ctx, "web")
		d := w.start(rules(rule("", "tier", "db", 10), rule("", "tier", "proxy", -5)))

		Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", 2))
		remove(ctx, w.get(ctx, "proxy-1"))
		Eventually(w.status, soon, polling).Should(Equal(drain.Status{Remaining: 3, Evicted: 1}))
		Expect(w.evictions()).To(ConsistOf("proxy-1", "proxy-2"), "proxy-2 is still there")
		remove(ctx, w.get(ctx, "proxy-2"))
		Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", 3))
		Expect(w.evictions()[2:]).To(Equal([]string{"web"}))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
		Expect(w.evictions()[2:]).To(Equal([]string{"web", "db"}))
	})

	It("selects by namespace labels, and reads each namespace once", func(ctx context.Context) {
		prod := makeNamespace(ctx, map[string]string{"tier": "prod"})
		in := func(p *corev1.Pod) { p.Namespace = prod }
		w.create(ctx, "prod-1", in)
		w.create(ctx, "prod-2", in)
		w.pods(ctx, "dev-1", "dev-2")
		r := rule(v1alpha1.DrainSkip, "app", "web", 0)
		r.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
		Expect(w.start(rules(r)).wait()).To(Succeed())
		Expect(w.evictions()).To(ConsistOf("dev-1", "dev-2"))
		Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1, watchesPods: 1, evicts: 2, "get namespaces": 2}))
	})

	It("evicts pods that appear during the drain, and names those it may not evict", func(ctx context.Context) {
		w.kubelet.hold()
		w.pods(ctx, "first")
		d := w.start(v1alpha1.Drain{})
		Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", 1))
		w.create(ctx, "alone", bare)
		w.create(ctx, "second")
		Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", 2))
		Eventually(w.blocked, soon, polling).Should(Equal([]string{
			"alone: UndrainablePod: no controller would create it again, and drain.unmanagedPods is Block",
		}))
		w.kubelet.release(ctx)
		Eventually(w.status, soon, polling).Should(HaveField("Remaining", 1))
		remove(ctx, w.get(ctx, "alone"))
		Expect(d.wait()).To(Succeed())
	})

	It("waits for pods that are terminating already, and reports stuck ones", func(ctx context.Context) {
		w.kubelet.hold()
		c := w.stopClock()
		w.pods(ctx, "slow")
		Expect(admin.CoreV1().Pods(w.namespace).Delete(ctx, "slow", metav1.DeleteOptions{})).To(Succeed())
		ends := w.get(ctx, "slow").DeletionTimestamp.UTC()
		d := w.start(v1alpha1.Drain{})
		Eventually(w.status, soon, polling).Should(Equal(drain.Status{Remaining: 1}))
		Expect(w.terminating()).To(Equal([]string{"slow: terminating until " + ends.Format("Mon 2006-01-02 15:04:05 UTC")}))
		Eventually(c.HasWaiters, soon, polling).Should(BeTrue())
		c.SetTime(ends.Add(stuckAfter))
		Eventually(w.blocked, soon, polling).Should(Equal([]string{
			"slow: StuckTerminating: still there after its grace period, which ended at " + ends.Format("Mon 2006-01-02 15:04:05 UTC"),
		}))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
		Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1, watchesPods: 1}), "nothing was asked, let alone forced")
	})

	It("ends promptly with its context, and leaves nothing behind", func(ctx context.Context) {
		w.budget(ctx, "web", 0)
		w.pods(ctx, "web-1", "web-2")
		d := w.start(v1alpha1.Drain{})
		Eventually(w.blocked, soon, polling).Should(HaveLen(2))
		Eventually(w.wire.Counts, soon, polling).Should(HaveKey(watchBudgets))
		d.cancel()
		var err error
		Eventually(d.done, soon, "1ms").Should(Receive(&err))
		Expect(err).To(MatchError(context.Canceled))
		Expect(goroutines()).NotTo(ContainSubstring("agent/drain."))
		Expect(w.left(ctx)).To(HaveLen(2))
	})

	It("continues when it is called again after a crash", func(ctx context.Context) {
		w.kubelet.hold()
		w.create(ctx, "db", labelled("tier", "db"))
		w.pods(ctx, "web-1", "web-2")
		spec := rules(rule("", "tier", "db", 10))
		first := w.start(spec)
		Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", 2))
		first.cancel()
		Expect(first.wait()).To(MatchError(context.Canceled))

		second := w.start(spec)
		w.kubelet.release(ctx)
		Expect(second.wait()).To(Succeed())
		Expect(w.evictions()).To(HaveLen(3), "pods that terminate are not asked twice")
		Expect(w.left(ctx)).To(BeEmpty())
	})

	DescribeTable("leaves a new pod with an old name alone",
		func(ctx context.Context, comesBack func(*world) func(*corev1.Pod)) {
			// The node's identity is not used, because admission would refuse some of these
			// requests before the UID is checked.
			w.drainer.Pods = as(w.wire, "admin", "system:masters")
			w.kubelet.hold()
			old := w.create(ctx, "db-0")
			w.pods(ctx, "other")
			var fresh *corev1.Pod
			first := wire.First(func(r *http.Request) bool { return isEviction(r) && wire.Info(r).Name == "db-0" })
			w.wire.Meddle(first, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				defer GinkgoRecover()
				remove(ctx, old)
				fresh = w.create(ctx, "db-0", comesBack(w))
				return next.RoundTrip(r)
			})
			d := w.start(rules(rule(v1alpha1.DrainSkip, "keep", "true", 0)))
			Eventually(w.counted, soon, polling).Should(Equal(map[string]int{"gone": 1, "evicted": 1}))
			w.kubelet.release(ctx)
			Expect(d.wait()).To(Succeed())
			Expect(w.get(ctx, "db-0")).To(And(
				HaveField("UID", fresh.UID), HaveField("DeletionTimestamp", BeNil()), HaveField("ResourceVersion", fresh.ResourceVersion)))
		},
		Entry("on another node", func(*world) func(*corev1.Pod) { return on("other") }),
		Entry("on the same node, and a rule keeps it", func(*world) func(*corev1.Pod) { return labelled("keep", "true") }),
	)

	It("is limited by the API server to the node's own pods", nodeSelectors, func(ctx context.Context) {
		foreign := w.pod(ctx, "foreign", on("other"))
		node := kubernetes.NewForConfigOrDie(impersonating("system:node:"+w.node, "system:nodes"))
		_, err := node.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=other"})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "listing another node's pods: %v", err)
		err = node.CoreV1().Pods(w.namespace).Delete(ctx, foreign.Name, metav1.DeleteOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "deleting another node's pod: %v", err)
		_, err = node.PolicyV1().PodDisruptionBudgets(w.namespace).List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "budgets need the agent's own identity: %v", err)
	})
})
