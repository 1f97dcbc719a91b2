package drain_test

import (
	"context"
	"errors"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

var _ = Describe("Drain when the API server fails", func() {
	internal := apierrors.NewInternalError(errors.New("etcd")).ErrStatus
	expired := apierrors.NewResourceExpired("too old").ErrStatus
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	It("tries again after a 500", func(ctx context.Context) {
		w.pods(ctx, "web")
		w.wire.Meddle(wire.First(isEviction), wire.Fail(internal))
		evictsAtLast(ctx, w)
	})

	It("evicts the other pods if a webhook refuses one, names that one, and tries it again", func(ctx context.Context) {
		const refusal = `admission webhook "db.example.com" denied the request: the primary is to move first`
		w.pods(ctx, "db", "web")
		w.wire.Meddle(func(r *http.Request) bool { return isEviction(r) && wire.Info(r).Name == "db" },
			wire.Fail(metav1.Status{Code: http.StatusBadRequest, Message: refusal}))
		d := w.start(v1alpha1.Drain{})
		Eventually(w.blocked, soon, polling).Should(Equal([]string{"db: EvictionBlocked: " + refusal}))
		Expect(w.left(ctx)).To(Equal([]string{"db"}))
		w.wire.Meddle(nil, nil)
		Expect(d.wait()).To(Succeed())
	})

	It("does not evict a pod again whose response was lost but which terminates", func(ctx context.Context) {
		w.kubelet.hold()
		w.pods(ctx, "web")
		c := w.stopClock()
		w.wire.Meddle(isEviction, wire.Lose)
		d := w.start(v1alpha1.Drain{})
		Eventually(w.counted, soon, polling).Should(Equal(map[string]int{"error": 1}))
		Eventually(w.terminating, soon, polling).Should(ConsistOf(ContainSubstring("terminating until")))
		// The back-off ends long before the pod counts as stuck. The drain reports that after it
		// has decided what to send.
		c.SetTime(w.get(ctx, "web").DeletionTimestamp.Add(stuckAfter))
		Eventually(w.status, soon, polling).Should(HaveField("Blocked", ConsistOf(HaveField("Reason", drain.ReasonStuckTerminating))))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
		Expect(w.wire.Counts()[evicts]).To(Equal(1))
	})

	It("does not cancel evictions in flight when it ends, because their allowance in the budget would be lost", func(ctx context.Context) {
		w.kubelet.hold()
		w.pods(ctx, "web")
		w.budget(ctx, "one", 1)
		w.stopClock() // so that the request has just been sent
		asked, answered := make(chan struct{}), make(chan struct{})
		w.wire.Meddle(isEviction, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			close(asked)
			<-answered
			return next.RoundTrip(r) // fails if the request was cancelled
		})
		d := w.start(v1alpha1.Drain{})
		Eventually(asked, soon).Should(BeClosed())
		d.cancel()
		close(answered)
		Expect(d.wait()).To(MatchError(context.Canceled))
		Expect(w.get(ctx, "web").DeletionTimestamp).NotTo(BeNil())
	})

	It("ends although an eviction never gets a response", func(ctx context.Context) {
		w.pods(ctx, "web")
		c := w.stopClock()
		var ends error
		w.wire.Meddle(isEviction, func(r *http.Request, next http.RoundTripper) (response *http.Response, _ error) {
			response, ends = wire.Hang(r, next)
			return response, ends
		})
		d := w.start(v1alpha1.Drain{})
		Eventually(w.evictions, soon, polling).Should(HaveLen(1))
		d.cancel()
		Eventually(c.HasWaiters, soon, polling).Should(BeTrue())
		c.Step(2 * time.Second) // requestGrace
		Expect(d.wait()).To(MatchError(context.Canceled))
		Expect(ends).To(MatchError(context.Canceled), "it is called back, and not given up after its own time")
		Expect(w.counted()).To(BeEmpty(), "it was not a response")
	})

	It("is not delayed by the Retry-After of a load balancer that answers a WATCH while the API server is down", func(ctx context.Context) {
		w.pods(ctx, "web")
		w.wire.Meddle(wire.First(wire.Is(watchesPods)), wire.Fail(metav1.Status{
			Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Details: &metav1.StatusDetails{RetryAfterSeconds: 3600},
		}))
		Expect(w.start(v1alpha1.Drain{}).wait()).To(Succeed())
		Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1, watchesPods: 2, evicts: 1}))
	})

	It("says why it cannot read the pods until it can", func(ctx context.Context) {
		w.kubelet.hold()
		w.pods(ctx, "web")
		w.wire.Meddle(wire.Is(listsPods), wire.Fail(internal))
		d := w.start(v1alpha1.Drain{})
		Eventually(w.status, soon, polling).Should(Equal(drain.Status{
			Unread: "listing pods: Internal error occurred: etcd",
		}))
		w.wire.Meddle(nil, nil)
		Eventually(w.status, soon, polling).Should(Equal(drain.Status{Remaining: 1}))
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
	})

	It("continues a watch that ends at the same resource version", func(ctx context.Context) {
		w.kubelet.hold()
		pods := w.pods(ctx, "web-1", "web-2", "web-3")
		from := func(watch int) string { return w.wire.Of(watchesPods)[watch].URL.Query().Get("resourceVersion") }
		d := w.start(v1alpha1.Drain{})
		Eventually(w.counted, soon, polling).Should(HaveKeyWithValue("evicted", 3))
		remove(ctx, pods[0])
		Eventually(w.status, soon, polling).Should(HaveField("Remaining", 2))
		w.endWatch(watchesPods)
		w.kubelet.release(ctx)
		Expect(d.wait()).To(Succeed())
		Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1, watchesPods: 2, evicts: 3}))
		Expect(from(1)).NotTo(Equal(from(0)), "it continued at the same version")
	})

	DescribeTable("lists again if the watch is too old, and notices the pods that left during that time",
		func(ctx context.Context, tooOld wire.Func) {
			w.kubelet.hold()
			pods := w.pods(ctx, "web-1", "web-2")
			w.wire.Meddle(wire.First(wire.Is(watchesPods)), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				defer GinkgoRecover()
				remove(ctx, pods[0])
				return tooOld(r, next)
			})
			d := w.start(v1alpha1.Drain{})
			Eventually(w.status, soon, polling).Should(Equal(drain.Status{Remaining: 1, Evicted: 1}))
			// web-1 may or may not have been evicted before. web-2 was evicted once.
			Eventually(w.evictions, soon, polling).Should(ContainElement("web-2"))
			w.kubelet.release(ctx)
			Expect(d.wait()).To(Succeed())
			Expect(w.wire.Counts()).To(And(HaveKeyWithValue(listsPods, 2), HaveKeyWithValue(watchesPods, 2)))
		},
		Entry("reported by the answer", wire.Fail(expired)),
		Entry("reported by an event", expire(expired)),
	)

	Context("closed (behaviour 40)", func() {
		It("ends with an error when the node's pods may not be listed", nodeSelectors, func(ctx context.Context) {
			w.pods(ctx, "web")
			w.drainer.Pods = asNode(w.wire, "other")
			err := w.start(v1alpha1.Drain{}).wait()
			Expect(err).To(MatchError(ContainSubstring(`draining node "` + w.node + `": listing pods: pods is forbidden`)))
			Expect(w.wire.Counts()).To(Equal(map[string]int{listsPods: 1}))
		})

		It("ends with an error when pods may not be evicted", func(ctx context.Context) {
			w.pods(ctx, "web")
			allowReading(ctx, "reader")
			w.drainer.Pods = as(w.wire, "reader")
			err := w.start(v1alpha1.Drain{}).wait()
			Expect(err).To(MatchError(ContainSubstring(`evicting pod "` + w.namespace + `/web": pods "web" is forbidden`)))
			Expect(w.wire.Counts()[evicts]).To(Equal(3), "twice it may be a cache that lags")
			Expect(w.counted()).To(Equal(map[string]int{"error": 3}))
			Expect(w.get(ctx, "web").DeletionTimestamp).To(BeNil())
		})

		It("ends with an error when a rule selects namespaces that may not be read", func(ctx context.Context) {
			w.pods(ctx, "web")
			w.drainer.Policy = as(w.wire, "nobody")
			r := rule(v1alpha1.DrainSkip, "app", "web", 0)
			r.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
			err := w.start(rules(r)).wait()
			Expect(err).To(MatchError(ContainSubstring(`getting namespace "` + w.namespace + `" for the drain rules: namespaces`)))
			Expect(w.wire.Counts()[evicts]).To(BeZero())
		})

		It("ends with an error when a rule cannot be read", func() {
			r := rule(v1alpha1.DrainSkip, "not a key", "web", 0)
			Expect(w.start(rules(r)).wait()).To(MatchError(HavePrefix("reading drain rule 0: reading podSelector: ")))
			Expect(w.wire.Counts()).To(BeEmpty())
		})
	})

	It("tolerates a 403 of admission's cache, which may lag behind the watch", func(ctx context.Context) {
		w.pods(ctx, "web")
		lagging := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("only pods with spec.nodeName set to itself")).ErrStatus
		w.wire.Meddle(wire.First(isEviction), wire.Fail(lagging))
		evictsAtLast(ctx, w)
	})
})

// evictsAtLast drains the node. One request fails and the next succeeds. The pod stays until that
// has been counted.
func evictsAtLast(ctx context.Context, w *world) {
	GinkgoHelper()
	w.kubelet.hold()
	d := w.start(v1alpha1.Drain{})
	Eventually(w.counted, soon, polling).Should(Equal(map[string]int{"error": 1, "evicted": 1}))
	w.kubelet.release(ctx)
	Expect(d.wait()).To(Succeed())
}

// allowReading lets a user only read pods.
func allowReading(ctx context.Context, user string) {
	_, err := admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	// The authorizer reads a cache, too.
	Eventually(func() error {
		_, err := kubernetes.NewForConfigOrDie(impersonating(user)).CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}, soon, polling).Should(Succeed())
}
