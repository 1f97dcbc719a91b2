package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = DescribeTable("An agent's objection holds its node back, and no other, by one reason in condition, status and metric", func(objection protocol.Objection) {
	f := makeFleet(2)
	node, other := f.nodes[0], f.nodes[1]
	report := protocol.AgentReport{Objection: &objection}.String()
	f.annotate(node, v1alpha1.AnnotationReport, report)
	f.need(f.nodes...)
	p := f.policy("workers")
	Eventually(f.reason).WithArguments(node).Should(Equal("False " + string(objection.Reason)))
	Expect(f.condition(node, v1alpha1.NodeRebootPermitted).Message).To(Equal(objection.Message))
	Eventually(f.granted).Should(ConsistOf(other))
	Eventually(func() []v1alpha1.BlockedNodes { return policyStatus(p).Blocked }).Should(
		ConsistOf(v1alpha1.BlockedNodes{Reason: objection.Reason, Count: 1, Nodes: []string{node}}))
	Eventually(blocked).WithArguments(p.Name).Should(Equal(map[string]float64{string(objection.Reason): 1}))
	f.reboot(other)
	Eventually(f.granted).Should(BeEmpty())
	Consistently(f.granted, "1s").Should(BeEmpty())

	By("letting it go once the agent objects no more")
	f.annotate(node, v1alpha1.AnnotationReport, nil)
	Eventually(f.granted).Should(ConsistOf(node))
	Eventually(blocked).WithArguments(p.Name).Should(BeEmpty())

	By("taking back the grant that its agent has not begun to use")
	f.annotate(node, v1alpha1.AnnotationReport, report)
	Eventually(f.granted).Should(BeEmpty())
	Expect(f.grant(node).Reason).To(Equal(objection.Reason))
},
	Entry("An update that rolls back (behaviour 27)", protocol.Objection{Reason: v1alpha1.ReasonUpdateNotApplied, Message: "2.0 rolls back"}),
	Entry("A host that locksmithd may reboot (behaviour 57)",
		protocol.Objection{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd is active on this host"}),
)

// blocked is the metric of the nodes that wait, by reason.
func blocked(policy string) map[string]float64 {
	return gaugesOf("reboot_operator_blocked_nodes", policy, "reason")
}
