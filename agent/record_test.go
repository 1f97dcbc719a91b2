package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A record that cannot be read", func() {
	It("permits nothing, and is reported once for each of its values", func(ctx SpecContext) {
		const grant = `{"policy":"p","seq":1,"bootID":"b","state":"Sure","at":"2026-11-21T00:00:00Z"}`
		m := newMachine(ctx, patient)
		m.annotate(ctx, v1alpha1.AnnotationGrant, grant)
		m.start(ctx)
		m.emits(ctx, string(v1alpha1.ReasonRecordUnreadable))
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(string(v1alpha1.ReasonRecordUnreadable), 1))

		m.annotate(ctx, v1alpha1.AnnotationGrant, grant+" and more")
		Eventually(func() map[string]int { return m.eventsOf(ctx) }).Should(HaveKeyWithValue(string(v1alpha1.ReasonRecordUnreadable), 2))
	})

	It("keeps the slot past the point of no return, and is repaired after the boot", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.Logind.AcceptAndDoNothing(true)
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		Eventually(m.Logind.Reboots).Should(Equal(1))
		m.annotate(ctx, v1alpha1.AnnotationProgress, "nonsense")
		m.emits(ctx, string(v1alpha1.ReasonRecordUnreadable))
		m.restart(ctx)
		m.looksAgain(ctx)
		Expect(m.node(ctx).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationProgress, "nonsense"))

		m.boot(ctx)
		m.start(ctx)
		m.shows(ctx, phaseOf, HavePrefix("1 Aborted RecordUnreadable"))
		Expect(cordonOf(m.node(ctx))).To(Equal("cordoned"), "nobody knows whose it is")
		m.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), HavePrefix("False"))
		Expect(m.Logind.Reboots()).To(Equal(1))
	})
})
