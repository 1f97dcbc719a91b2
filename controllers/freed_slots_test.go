package controllers_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A slot that is freed while many nodes are updated with why they wait", func() {
	It("is granted again before all of them are updated", func() {
		const waiting = 60
		f := makeFleet(waiting + 1)
		p := f.policy("workers")
		goes, last := f.nodes[0], f.nodes[waiting]
		f.need(goes)
		Eventually(f.granted).Should(ConsistOf(goes))
		f.start(goes)
		f.commit(goes)
		f.need(f.nodes[1:]...)
		for _, name := range f.nodes[1:] {
			Eventually(f.reason).WithArguments(name).Should(Equal("False BudgetExhausted"))
			Eventually(f.taints).WithArguments(name).Should(ContainElement(v1alpha1.TaintPending + ":PreferNoSchedule"))
		}
		var explained, explainedBefore atomic.Int32
		requests.meddleWith(func(r *http.Request) bool {
			defer GinkgoRecover()
			switch {
			case r.Method != methodPatch:
			case strings.Contains(r.URL.Path, "/nodes/"+goes+"/") || strings.HasSuffix(r.URL.Path, "/nodes/"+goes):
				explainedBefore.CompareAndSwap(0, explained.Load())
			case strings.Contains(r.URL.Path, "/nodes/"):
				if explained.Add(1) == 1 {
					f.boot(goes, 2)
					Eventually(cachedBoot).WithArguments(f, goes).Should(Equal(bootID(goes, 2)), "the manager sees the boot")
				}
			}
			return false
		})
		By("pausing the policy, which is a new reason for every node that waits")
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = &v1alpha1.Pause{} })
		f.finishes(goes)
		Expect(explainedBefore.Load()).To(And(BeNumerically(">", 0), BeNumerically("<", waiting/2)))
		Eventually(f.reason).WithArguments(last).Should(Equal("False Paused"), "the others are updated all the same")
	})
})

// cachedBoot returns the boot of a node in the manager's cache.
func cachedBoot(f *fleet, name string) string {
	var node corev1.Node
	Expect(requests.cache.Get(context.Background(), client.ObjectKey{Name: name}, &node)).To(Succeed())
	return node.Status.NodeInfo.BootID
}
