package controllers_test

import (
	"context"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const methodPatch = "PATCH"

// taints returns the taints of a node as key:effect.
func (f *fleet) taints(name string) []string {
	var taints []string
	for _, t := range f.get(name).Spec.Taints {
		taints = append(taints, t.Key+":"+string(t.Effect))
	}
	return taints
}

// taint adds a taint of another program.
func (f *fleet) taint(name, key string) {
	node := f.get(name)
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: "db", Effect: corev1.TaintEffectNoExecute})
	Expect(api.Update(context.Background(), node, client.FieldOwner("kubectl"))).To(Succeed())
}

var _ = Describe("The pending taint", func() {
	const pending, theirs = v1alpha1.TaintPending + ":PreferNoSchedule", "example.com/dedicated:NoExecute"

	// waiting returns a fleet with one granted node, in which the others wait for their turn.
	waiting := func(size int, edit ...func(*v1alpha1.RebootPolicySpec)) (f *fleet, p *v1alpha1.RebootPolicy, goes string, waits []string) {
		f = makeFleet(size)
		f.taint(f.nodes[size-1], "example.com/dedicated")
		p = f.policy("workers", edit...)
		f.need(f.nodes...)
		goes = f.next()
		waits = slices.DeleteFunc(slices.Clone(f.nodes), func(name string) bool { return name == goes })
		for _, name := range waits {
			Eventually(f.taints).WithArguments(name).Should(ContainElement(pending))
		}
		return f, p, goes, waits
	}
	It("is on nodes that wait for their turn, and is removed in the same write as the cordon", func() {
		f, _, goes, waits := waiting(3)
		Expect(f.taints(goes)).NotTo(ContainElement(pending))
		Expect(f.taints(f.nodes[2])).To(ContainElement(theirs))
		f.reboot(goes)
		Eventually(f.granted).Should(And(HaveLen(1), Not(ContainElement(goes))))
		next := f.granted()[0]
		Expect(waits).To(ContainElement(next))
		Expect(f.taints(next)).To(ContainElement(pending), "the grant and the drain cause no write of the taint")
		before := len(requests.Matching(methodPatch, "/nodes/"+next+"?"))
		f.reboot(next)
		Eventually(func() bool { return f.get(next).Spec.Unschedulable }).Should(BeFalse())
		Expect(f.taints(next)).NotTo(ContainElement(pending))
		Expect(requests.Matching(methodPatch, "/nodes/"+next+"?")).To(HaveLen(before + 1))
		Expect(f.taints(f.nodes[2])).To(ContainElement(theirs))
	})

	It("is there before the grant is published", func() {
		f := makeFleet(2)
		f.need(f.nodes...)
		f.show("False NoPolicy", f.nodes...)
		f.policy("workers")
		Eventually(f.granted).Should(Equal(f.nodes[:1]))
		writes := requests.Matching(methodPatch, "/nodes/"+f.pool)
		tainted := slices.IndexFunc(writes, func(r string) bool { return strings.Contains(r, f.nodes[1]+"?") })
		first := slices.IndexFunc(writes, func(r string) bool {
			return strings.Contains(r, f.nodes[0]+"/status?")
		})
		Expect(tainted).To(BeNumerically(">=", 0))
		// The first write to the status of the granted node was NoPolicy, and the second is the
		// grant.
		published := first + 1 + slices.IndexFunc(writes[first+1:], func(r string) bool { return strings.Contains(r, f.nodes[0]+"/status?") })
		Expect(tainted).To(BeNumerically("<", published), "%v", writes)
	})

	It("keeps new pods off a node that waits for a pod, until the pod has gone", func() {
		const off = v1alpha1.TaintPending + ":NoSchedule"
		f := makeFleet(2)
		p := f.policy("workers", waitsForPods, func(s *v1alpha1.RebootPolicySpec) { s.Gates.BlockingPods[0].TaintEffect = corev1.TaintEffectNoSchedule })
		f.taint(f.nodes[0], "example.com/dedicated")
		f.need(f.nodes...)
		f.reply(f.nodes[0], blocks)
		f.reply(f.nodes[1], blocks)
		Eventually(f.taints).WithArguments(f.nodes[0]).Should(ContainElements(theirs, off))
		Expect(f.granted()).To(BeEmpty(), "it takes no slot")
		Eventually(f.reason).WithArguments(f.nodes[1]).Should(Equal("False BlockingPod"))
		Eventually(f.taints).WithArguments(f.nodes[1]).Should(And(ContainElement(pending), Not(ContainElement(off))), "no more of them than may be down")

		By("the pod going")
		f.reply(f.nodes[0])
		Eventually(f.granted).Should(Equal(f.nodes[:1]))
		Eventually(f.taints).WithArguments(f.nodes[0]).Should(And(ContainElements(theirs, pending), Not(ContainElement(off))), "pods of hooks may come")
		Eventually(f.taints).WithArguments(f.nodes[1]).Should(ContainElement(off))

		By("the policy going")
		f.reboot(f.nodes[0])
		Expect(api.Delete(context.Background(), p)).To(Succeed())
		Eventually(f.taints).WithArguments(f.nodes[1]).ShouldNot(ContainElement(off))
		Eventually(f.taints).WithArguments(f.nodes[0]).Should(And(ContainElement(theirs), Not(ContainElement(pending))))
	})

	It("is removed before the policy", func() {
		f, p, goes, waits := waiting(3)
		Expect(api.Delete(context.Background(), p)).To(Succeed())
		Eventually(isGone).WithArguments(p).Should(BeTrue())
		for _, name := range append(waits, goes) {
			Expect(f.taints(name)).NotTo(ContainElement(pending))
		}
		Expect(f.taints(f.nodes[2])).To(ContainElement(theirs))
	})

	It("is removed from a node that no policy governs", func() {
		f := makeFleet(1)
		node := f.get(f.nodes[0])
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintPending, Effect: corev1.TaintEffectPreferNoSchedule})
		Expect(api.Update(context.Background(), node)).To(Succeed())
		Eventually(f.taints).WithArguments(f.nodes[0]).ShouldNot(ContainElement(pending))
	})

	It("does not overwrite a taint that somebody sets at the same moment, and is set again", func() {
		f := makeFleet(2)
		raced := f.nodes[1]
		tries := 0
		requests.meddleWith(func(r *http.Request) bool {
			if r.Method != methodPatch || !strings.HasSuffix(r.URL.Path, "/nodes/"+raced) {
				return false
			}
			if tries++; tries <= 2 {
				defer GinkgoRecover()
				f.taint(raced, "example.com/race"+strings.Repeat("x", tries))
			}
			return false
		})
		f.policy("workers")
		f.need(f.nodes...)
		Eventually(f.taints).WithArguments(raced).Should(ContainElements(pending, "example.com/racex:NoExecute", "example.com/racexx:NoExecute"))
	})

	It("delays no reboot, no condition and no other node if a webhook refuses it", func() {
		f := makeFleet(3)
		refused := f.nodes[1]
		requests.meddleWith(func(r *http.Request) bool {
			return r.Method == methodPatch && strings.HasSuffix(r.URL.Path, "/nodes/"+refused)
		})
		p := f.policy("workers")
		f.need(f.nodes...)
		Eventually(f.granted).Should(Equal(f.nodes[:1]))
		Eventually(f.taints).WithArguments(f.nodes[2]).Should(ContainElement(pending))
		Eventually(f.reason).WithArguments(refused).Should(Equal("False BudgetExhausted"))
		Eventually(grantsOf).WithArguments(p).Should(HaveLen(1))
		Expect(f.taints(refused)).NotTo(ContainElement(pending))
	})
})
