package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Load balancers", func() {
	const key = v1alpha1.LabelExcludeFromLoadBalancers
	var f *fleet
	begin := func(labels map[string]any) (name string) {
		f = makeFleet(1)
		name = f.nodes[0]
		if labels != nil {
			f.patch(name, map[string]any{"metadata": map[string]any{"labels": labels}})
		}
		f.policy("workers", func(s *v1alpha1.RebootPolicySpec) {
			s.Drain = &v1alpha1.Drain{ExcludeFromLoadBalancers: true}
		})
		f.need(name)
		Eventually(f.granted).Should(HaveLen(1))
		return name
	}

	It("take a node out from the grant until it is back, in the writes that are made anyway", func() {
		name := begin(nil)
		Expect(f.get(name).Labels).To(HaveKeyWithValue(key, v1alpha1.ExcludedByOperator), "grant and label are one write")
		f.start(name)
		f.commit(name)
		Expect(f.get(name).Labels).To(HaveKey(key))
		f.boot(name, 2)
		Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
		Expect(f.get(name).Labels).NotTo(HaveKey(key), "uncordon, end of the grant and of the label are one write")
		Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
	})

	It("keep a label that somebody else has set as it is", func() {
		name := begin(map[string]any{key: "mine"})
		Expect(f.grant(name).Excluded).To(BeFalse())
		f.reboot(name)
		Expect(f.get(name).Labels).To(HaveKeyWithValue(key, "mine"))
	})

	It("have the node back when the grant is taken back", func() {
		name := begin(nil)
		f.annotate(name, v1alpha1.AnnotationPaused, "true")
		Eventually(f.granted).Should(BeEmpty())
		Expect(f.get(name).Labels).NotTo(HaveKey(key))
	})

	It("have it back when the agent has given up", func() {
		name := begin(nil)
		f.start(name)
		f.patch(name, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationProgress: f.progress(name, protocol.PhaseAborted,
				func(p *protocol.Progress) { p.Failures, p.Reason = 1, v1alpha1.ReasonDrainTimedOut })}},
			"spec": map[string]any{"unschedulable": nil},
		})
		Eventually(func() map[string]string { return f.get(name).Labels }).ShouldNot(HaveKey(key))
		Expect(f.grant(name).Excluded).To(BeFalse())
	})
})
