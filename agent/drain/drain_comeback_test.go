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
)

var _ = DescribeTable("Drain ends although a controller puts its pod back on the cordoned node again and again, and names it",
	func(ctx context.Context, evicted int, why string, changes ...func(*corev1.Pod)) {
		w := newWorld(ctx)
		w.kubelet.hold() // so that each replacement is there before the pod that it replaces is gone
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
	Entry("because it names the node", 2, " again and again: its controller, or a scheduler of its own, puts it there"),
)
