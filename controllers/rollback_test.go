package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("An update that rolls back (behaviour 27)", func() {
	It("holds its node back, and no other, by one reason in condition, status and metric", func() {
		f := makeFleet(2)
		node, other := f.nodes[0], f.nodes[1]
		const reason = v1alpha1.ReasonUpdateNotApplied
		objection := protocol.Objection{Reason: reason, Message: "2.0 rolls back"}
		f.annotate(node, v1alpha1.AnnotationReport, protocol.AgentReport{Objection: &objection}.String())
		f.need(f.nodes...)
		p := f.policy("workers")
		Eventually(f.reason).WithArguments(node).Should(Equal("False UpdateNotApplied"))
		Expect(f.condition(node, v1alpha1.NodeRebootPermitted).Message).To(Equal("2.0 rolls back"))
		Eventually(f.granted).Should(ConsistOf(other))
		Eventually(func() []v1alpha1.BlockedNodes { return policyStatus(p).Blocked }).Should(
			ConsistOf(v1alpha1.BlockedNodes{Reason: reason, Count: 1, Nodes: []string{node}}))
		Eventually(blocked).WithArguments(p.Name).Should(Equal(map[string]float64{"UpdateNotApplied": 1}))

		By("taking back the grant that its agent has not begun to use")
		f.annotate(node, v1alpha1.AnnotationReport, nil)
		f.reboot(other)
		Eventually(f.granted).Should(ConsistOf(node))
		f.annotate(node, v1alpha1.AnnotationReport, protocol.AgentReport{Objection: &objection}.String())
		Eventually(func() v1alpha1.Reason { return f.grant(node).Reason }).Should(Equal(reason))
		Expect(f.grant(node).State).To(Equal(protocol.GrantCancelled))

		By("letting it go once the agent objects no more")
		f.annotate(node, v1alpha1.AnnotationReport, nil)
		Eventually(f.granted).Should(ConsistOf(node))
		Eventually(blocked).WithArguments(p.Name).Should(BeEmpty())
	})
})

// blocked is the metric of the nodes that wait, by reason.
func blocked(policy string) map[string]float64 {
	return gaugesOf("reboot_operator_blocked_nodes", policy, "reason")
}

// gaugesOf are the values of a metric of a policy by the values of a label.
func gaugesOf(name, policy, by string) map[string]float64 {
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["policy"] == policy {
				values[labels[by]] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}
