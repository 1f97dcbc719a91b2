package main

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("An update that rolls back (behaviour 27)", func() {
	It("is tried twice; a new version starts afresh", func(ctx SpecContext) {
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
		// rebootsInVain is a grant that is used, after which os-release is what it was, and the manager's end of it.
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

	It("is stopped without a version too: a need that is there again after two reboots; an administrator's request starts afresh (behaviour 27)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		Expect(os.Mkdir(filepath.Join(m.Root, "run"), 0o755)).To(Succeed())
		file := filepath.Join(m.Root, "run", "reboot-required")
		m.rebootsByLogind(ctx)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		seq := int64(0)
		need := func() {
			GinkgoHelper()
			Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
			m.shows(ctx, needOf, Equal("True SentinelPresent"))
		}
		// rebootsInVain is a grant that is used, a boot that leaves the file where it is, and the manager's end of it.
		rebootsInVain := func() {
			GinkgoHelper()
			Expect(blockerOf(m.node(ctx))).To(BeEmpty())
			before, boot := m.Logind.Reboots(), m.Boots()+1
			seq++
			m.grant(ctx, seq, protocol.GrantActive)
			m.shows(ctx, annotationOf(v1alpha1.AnnotationEngines), And(
				ContainSubstring("%s-boot-%d", m.Name, boot), ContainSubstring(`{"name":"sentinel","asks":true,"again":true}`)))
			Expect(messageOf(v1alpha1.NodeRebootRequired)(m.node(ctx))).To(HaveSuffix("sentinel (asks again after the reboot)."))
			Expect(m.Logind.Reboots()).To(Equal(before + 1))
			m.change(ctx, func(node *corev1.Node) { node.Spec.Unschedulable = false })
		}
		stopped := func() {
			GinkgoHelper()
			m.shows(ctx, blockerOf, And(
				HavePrefix("UpdateNotApplied: The node was rebooted 2 times for what sentinel reports"), ContainSubstring("/run/reboot-required exists"),
				ContainSubstring("kubectl annotate node "+m.Name+` reboot-operator.io/reboot-requested="why"`)))
		}

		By("two reboots, with a new process in between")
		need()
		rebootsInVain()
		m.restart(ctx)
		rebootsInVain()
		stopped()
		m.emits(ctx, string(v1alpha1.ReasonUpdateNotApplied))

		By("no third one, not even by a grant, nor after a restart or somebody else's reboot")
		m.kill()
		m.boot(ctx)
		m.start(ctx)
		m.shows(ctx, annotationOf(v1alpha1.AnnotationEngines), ContainSubstring("%s-boot-4", m.Name))
		seq++
		m.grant(ctx, seq, protocol.GrantActive)
		m.restart(ctx)
		m.change(ctx, func(node *corev1.Node) { delete(node.Labels, v1alpha1.LabelRebootRequired) })
		Eventually(func() map[string]string { return m.node(ctx).Labels }).Should(HaveKey(v1alpha1.LabelRebootRequired))
		Expect(phaseOf(m.node(ctx))).To(Equal("2 Rebooting cordoned"))
		stopped()
		Expect(m.Logind.Reboots()).To(Equal(2))
		m.grant(ctx, seq, protocol.GrantCancelled)

		By("an administrator's request")
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "the script that makes the file is gone")
		m.shows(ctx, blockerOf, BeEmpty())
		rebootsInVain()
		Expect(m.node(ctx).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))

		By("going on when the need ends: one that comes later is another")
		Expect(os.Remove(file)).To(Succeed())
		m.shows(ctx, needOf, Equal("False UpToDate"))
		need()
		Expect(blockerOf(m.node(ctx))).To(BeEmpty())
		Expect(m.Logind.Reboots()).To(Equal(3))
	})
})
