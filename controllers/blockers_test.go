package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("What an agent reports against a reboot", func() {
	It("holds back only its node, with one reason in condition, status and metric: an update that rolls back, a host that locksmithd may reboot (behaviours 27, 57)", func() {
		f := makeFleet(3)
		node, other := f.nodes[0], f.nodes[2]
		blockers := map[string]protocol.Blocker{
			node:       {Reason: v1alpha1.ReasonUpdateNotApplied, Message: "2.0 rolls back"},
			f.nodes[1]: {Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd is active on this host"},
		}
		reports := func(name string, blocker protocol.Blocker) {
			f.annotate(name, v1alpha1.AnnotationReport, protocol.AgentReport{BlockedBy: []protocol.Blocker{blocker}}.String())
		}
		var held []v1alpha1.BlockedNodes
		counts := map[string]float64{}
		for name, blocker := range blockers {
			reports(name, blocker)
			held = append(held, v1alpha1.BlockedNodes{Reason: blocker.Reason, Count: 1, Nodes: []string{name}})
			counts[string(blocker.Reason)] = 1
		}
		f.need(f.nodes...)
		p := f.policy("workers")
		for name, blocker := range blockers {
			Eventually(f.reason).WithArguments(name).Should(Equal("False " + string(blocker.Reason)))
			Expect(f.condition(name, v1alpha1.NodeRebootPermitted).Message).To(Equal(blocker.Message))
		}
		Eventually(f.granted).Should(ConsistOf(other))
		Eventually(func() []v1alpha1.BlockedNodes { return policyStatus(p).Blocked }).Should(ConsistOf(held))
		Eventually(blocked).WithArguments(p.Name).Should(Equal(counts))
		f.reboot(other)
		Eventually(grantsOf).WithArguments(p).Should(BeEmpty())
		Expect(policyStatus(p).Seq).To(Equal(int64(1)), "the slot that is free goes to nobody")

		By("letting one go once its agent has no reason any more")
		f.annotate(node, v1alpha1.AnnotationReport, nil)
		Eventually(f.granted).Should(ConsistOf(node))
		Eventually(blocked).WithArguments(p.Name).Should(Equal(map[string]float64{string(v1alpha1.ReasonCoordinatorConflict): 1}))

		By("taking back the grant that its agent has not begun to use")
		reports(node, blockers[node])
		Eventually(f.granted).Should(BeEmpty())
		Expect(f.grant(node).Reason).To(Equal(v1alpha1.ReasonUpdateNotApplied))
	})
})

// blocked returns the metric of the waiting nodes by reason.
func blocked(policy string) map[string]float64 {
	return gaugesOf("reboot_operator_blocked_nodes", policy, "reason")
}
