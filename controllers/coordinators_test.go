package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A host that locksmithd may reboot (behaviour 57)", func() {
	objection := protocol.Objection{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd is active on this host"}

	It("is granted nothing until it is stopped, and holds no other up", func() {
		f := makeFleet(2)
		node, other := f.nodes[0], f.nodes[1]
		f.annotate(node, v1alpha1.AnnotationReport, protocol.AgentReport{Objection: &objection}.String())
		f.need(f.nodes...)
		p := f.policy("workers")
		Eventually(f.reason).WithArguments(node).Should(Equal("False CoordinatorConflict"))
		Expect(f.condition(node, v1alpha1.NodeRebootPermitted).Message).To(Equal(objection.Message))
		Eventually(f.granted).Should(ConsistOf(other))
		Eventually(blocked).WithArguments(p.Name).Should(Equal(map[string]float64{"CoordinatorConflict": 1}))
		f.reboot(other)
		Eventually(f.granted).Should(BeEmpty())
		Consistently(f.granted, "1s").Should(BeEmpty())

		By("stopping locksmithd")
		f.annotate(node, v1alpha1.AnnotationReport, nil)
		Eventually(f.granted).Should(ConsistOf(node))

		By("starting it again before the drain")
		f.annotate(node, v1alpha1.AnnotationReport, protocol.AgentReport{Objection: &objection}.String())
		Eventually(f.granted).Should(BeEmpty())
		Expect(f.grant(node).Reason).To(Equal(v1alpha1.ReasonCoordinatorConflict))
	})

	It("is granted its reboot where the policy has coordinators: Ignore", func() {
		f := makeFleet(1)
		f.annotate(f.nodes[0], v1alpha1.AnnotationReport, protocol.AgentReport{Objection: &objection}.String())
		f.need(f.nodes...)
		f.policy("workers", func(s *v1alpha1.RebootPolicySpec) {
			s.Reboot = &v1alpha1.Reboot{Coordinators: v1alpha1.CoordinatorsIgnore}
		})
		Eventually(f.granted).Should(ConsistOf(f.nodes[0]))
	})
})
