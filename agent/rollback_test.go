package main

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

var _ = Describe("An update that rolls back (behaviour 27)", func() {
	It("is tried twice, and a new version starts afresh", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.rebootsByLogind(ctx)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		objects := HavePrefix("UpdateNotApplied: The node was rebooted 2 times for version ")
		seq := int64(0)
		asks := func(version string) {
			GinkgoHelper()
			Expect(m.Engine.Emit(hosttest.NeedReboot(version))).To(Succeed())
			m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), ContainSubstring("version "+version))
		}
		// rebootsInVain uses a grant for a reboot that does not change os-release, and finishes it
		// as the manager does.
		rebootsInVain := func() {
			GinkgoHelper()
			Expect(blockerOf(m.node(ctx))).To(BeEmpty())
			before := m.Logind.Reboots()
			seq++
			m.grant(ctx, seq, protocol.GrantActive)
			Eventually(m.Logind.Reboots).Should(Equal(before + 1))
			m.shows(ctx, needOf, Equal("False UpToDate"))
			m.change(ctx, func(node *corev1.Node) { node.Spec.Unschedulable = false })
		}
		stopped := func(version string) {
			GinkgoHelper()
			m.shows(ctx, blockerOf, And(objects, ContainSubstring("version "+version+" and still runs 4459.2.0_odd"),
				ContainSubstring("kubectl annotate node "+m.Name+` reboot-operator.io/reboot-requested="why"`)))
		}

		By("two reboots for one version, with a new process in between")
		asks("5000.1.0")
		rebootsInVain()
		asks("5000.1.0")
		m.restart(ctx)
		rebootsInVain()
		asks("5000.1.0")
		stopped("5000.1.0")
		m.emits(ctx, string(v1alpha1.ReasonUpdateNotApplied))

		By("no third one, not even by a grant that was on its way, nor after a restart")
		seq++
		m.grant(ctx, seq, protocol.GrantActive)
		m.restart(ctx)
		m.change(ctx, func(node *corev1.Node) { delete(node.Labels, v1alpha1.LabelRebootRequired) })
		Eventually(func() map[string]string { return m.node(ctx).Labels }).Should(HaveKey(v1alpha1.LabelRebootRequired))
		Expect(phaseOf(m.node(ctx))).To(Equal("2 Rebooting cordoned"))
		Expect(m.Logind.Reboots()).To(Equal(2))
		m.grant(ctx, seq, protocol.GrantCancelled)

		By("falling with the need")
		Expect(m.Engine.Emit(hosttest.Idle())).To(Succeed())
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(blockerOf(m.node(ctx))).To(BeEmpty())

		By("a new version")
		asks("5000.2.0")
		Expect(blockerOf(m.node(ctx))).To(BeEmpty())
		Expect(m.Logind.Reboots()).To(Equal(2))
	})
})

var _ = It("A reboot of the host that nobody granted is recorded on the Node, and is an event", func(ctx SpecContext) {
	m := newMachine(ctx, patient)
	m.start(ctx)
	m.shows(ctx, needOf, Equal("False UpToDate"))
	unexpected := func() *protocol.UnexpectedReboot {
		engines, err := protocol.ParseEngines(m.node(ctx).Annotations)
		Expect(err).NotTo(HaveOccurred())
		return engines.Unexpected
	}
	Expect(unexpected()).To(BeNil())
	version := m.node(ctx).Labels[v1alpha1.LabelOSVersion]

	m.boot(ctx)
	m.restart(ctx)
	Eventually(unexpected).Should(And(HaveField("FromVersion", version), HaveField("ToVersion", version)))
	m.emits(ctx, v1alpha1.EventUnexpectedReboot)
	found := unexpected()

	m.restart(ctx)
	m.looksAgain(ctx)
	Expect(unexpected()).To(Equal(found), "the next process keeps it")
	Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(v1alpha1.EventUnexpectedReboot, 1))
})

var _ = It("A need without a version that comes back minutes after each boot gets two reboots", func(ctx SpecContext) {
	m := newMachine(ctx, patient)
	m.rebootsByLogind(ctx)
	m.start(ctx)
	m.shows(ctx, needOf, Equal("False UpToDate"))
	returns := func() {
		GinkgoHelper()
		Expect(m.Engine.Emit(hosttest.NeedReboot("0.0.0"))).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
	}
	for reboot := 1; reboot <= 2; reboot++ {
		returns()
		Expect(blockerOf(m.node(ctx))).To(BeEmpty())
		m.grant(ctx, int64(reboot), protocol.GrantActive)
		Eventually(m.Logind.Reboots).Should(Equal(reboot))
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.change(ctx, func(node *corev1.Node) { node.Spec.Unschedulable = false })
		m.upFor(20 * time.Minute)
	}
	returns()
	m.shows(ctx, blockerOf, HavePrefix("UpdateNotApplied: The node was rebooted 2 times for what update-engine reports, and soon after each boot it reports that again"))
})
