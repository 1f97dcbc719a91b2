package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

var _ = Describe("An agent that is killed", func() {
	It("while it drains, goes on draining, and never uncordons in between (behaviour 64)", func(ctx SpecContext) {
		m := draining(ctx, patient)
		begun := progressOf(m.node(ctx)).At
		m.restart(ctx)
		m.allowEvictions(ctx)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
		Expect(progressOf(m.node(ctx)).DrainStartedAt).To(Equal(&begun), "its time runs from the first process")
		Eventually(m.Logind.Reboots).Should(Equal(1))
	})

	It("while it drains, by a reboot of somebody else, gives up without a failure", func(ctx SpecContext) {
		m := draining(ctx, patient)
		m.boot(ctx)
		m.start(ctx)
		m.shows(ctx, phaseOf, Equal("1 Aborted Cancelled"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
	})

	It("past the point of no return, asks logind (again) as long as the boot lasts (behaviours 47, 48, 63)", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.Logind.AcceptAndDoNothing(true)
		m.grant(ctx, 1, protocol.GrantActive)
		Eventually(m.Logind.Reboots).Should(Equal(1))
		m.restart(ctx)
		Eventually(m.Logind.Reboots).Should(Equal(2))

		By("taking that for no reboot: its conditions stand and so does its need")
		m.looksAgain(ctx)
		node := m.node(ctx)
		Expect(phaseOf(node)).To(Equal("1 Rebooting cordoned"))
		Expect(conditionOf(corev1.NodeMaintenanceInProgress)(node)).To(Equal("True Rebooting"))
		Expect(needOf(node)).To(Equal("True UpdateStaged"))

		By("and a grant that is taken back now does not stop it")
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.restart(ctx)
		Eventually(m.Logind.Reboots).Should(Equal(3))
	})
})
