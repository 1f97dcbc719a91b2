package main

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("The life of a reboot", func() {
	It("takes four writes from a broadcast to a new boot (behaviours 1, 53, 54, 59)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		status := http.MethodPatch + " /api/v1/nodes/" + m.Name + "/status"
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))

		By("hearing the canonical signal")
		m.detectsABroadcast(ctx)
		Expect(m.node(ctx).Labels).To(And(
			HaveKeyWithValue(v1alpha1.LabelRebootRequired, "true"),
			HaveKeyWithValue(v1alpha1.LabelOSID, "flatcar"),
			HaveKeyWithValue(v1alpha1.LabelOSVersion, "4459.2.0_odd"),
			Not(HaveKey(v1alpha1.LabelOSGroup)),
		))

		By("rebooting once it is granted")
		m.Logind.OnReboot(func() {
			defer GinkgoRecover()
			for _, reason := range []string{
				v1alpha1.EventRebootRequired, v1alpha1.EventCordoned, v1alpha1.EventDraining, v1alpha1.EventDrained,
			} {
				m.emits(ctx, reason) // in any order, because all events arrive before a host is down
			}
			m.boot(ctx)
			m.start(ctx)
		})
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		node := m.node(ctx)
		Expect(phaseOf(node)).To(Equal("1 Rebooting cordoned"))
		Expect(progressOf(node).BootID).To(Equal(m.Name + "-boot-1"))
		Expect(progressOf(node).DrainStartedAt).NotTo(BeNil())
		Expect(cordonOf(node)).To(Equal("cordoned"), "only the manager uncordons")
		Expect(node.Labels).NotTo(HaveKey(v1alpha1.LabelRebootRequired))
		Expect(conditionOf(corev1.NodeDrainInProgress)(node)).To(Equal("False Drained"))
		Expect(conditionOf(corev1.NodeDrained)(node)).To(Equal("False RebootSucceeded"))
		Expect(conditionOf(corev1.NodeMaintenanceInProgress)(node)).To(Equal("False RebootSucceeded"))
		Expect(messageOf(corev1.NodeMaintenanceInProgress)(node)).To(Equal("The node has been rebooted."))
		Expect(m.Logind.Reboots()).To(Equal(1))
		Expect(m.requests.writes()).To(HaveExactElements(
			status, // up to date
			status, // need
			http.MethodPatch+" /api/v1/nodes/"+m.Name, // start
			status, // commit
			status, // after the boot
		))
	})

	It("sends no request to the API server while nothing happens (behaviours 4, 56)", func(ctx SpecContext) {
		m := upToDate(ctx)
		m.detectsABroadcast(ctx)
		m.emits(ctx, v1alpha1.EventRebootRequired)

		By("letting repeats, heartbeats and a finished grant pass")
		before := m.requests.Len()
		for range 5 {
			Expect(m.Bus.SendNeedReboot()).To(Succeed())
			m.heartbeat(ctx)
		}
		m.grant(ctx, 1, protocol.GrantFinished)

		By("and writing once there is something new, which comes after all of that")
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "new firmware")
		m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), ContainSubstring("new firmware"))
		Eventually(m.requests.Len).Should(Equal(before+2), "one write and one event (a series)")
		Expect(m.requests.writes()).To(HaveLen(3), "up to date, need, request")
	})

	It("writes again what somebody removed (defect 13)", func(ctx SpecContext) {
		m := upToDate(ctx)
		m.detectsABroadcast(ctx)
		m.change(ctx, func(node *corev1.Node) { delete(node.Labels, v1alpha1.LabelRebootRequired) })
		Eventually(func() map[string]string { return m.node(ctx).Labels }).Should(HaveKey(v1alpha1.LabelRebootRequired))
	})
})
