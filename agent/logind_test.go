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

var _ = Describe("logind", func() {
	const retry = 5 * time.Minute // the longest pause before another call
	lock := hosttest.BlockShutdown("packagekit", "Transaction in progress")

	It("refuses, and that is reported, retried and not taken for a reboot (behaviour 45)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.Logind.FailReboot("org.freedesktop.DBus.Error.AccessDenied", "Permission denied")
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, blockerOf, And(HavePrefix("RebootRefused: "), ContainSubstring("Permission denied")))
		m.emits(ctx, string(v1alpha1.ReasonRebootRefused))
		Expect(m.eventsOf(ctx)).NotTo(HaveKey(string(v1alpha1.ReasonRebooting)))
		m.passes(ctx, retry)
		Eventually(m.Logind.Reboots).Should(BeNumerically(">", 1))
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Rebooting cordoned"))

		By("accepting at last: the reason falls with the boot")
		m.rebootsByLogind(ctx)
		m.Logind.FailReboot("", "")
		m.showsMeanwhile(ctx, retry, needOf, Equal("False UpToDate"))
		Expect(blockerOf(m.node(ctx))).To(BeEmpty())
	})

	It("refuses permanently, and the node is put back in service and backs off", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.Logind.FailReboot("org.freedesktop.DBus.Error.AccessDenied", "Permission denied")
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
		m.showsMeanwhile(ctx, retry, phaseOf, Equal("1 Aborted RebootRefused failures=1"))
		Expect(progressOf(m.node(ctx)).Message).To(ContainSubstring("Permission denied"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		m.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False DrainAborted"))
		called := m.Logind.Reboots()
		m.passes(ctx, retry)
		Expect(m.Logind.Reboots()).To(Equal(called))
	})

	// keepsBootID is a host that reboots with the same boot ID, as a container does. up returns its
	// uptime after that.
	keepsBootID := func(ctx SpecContext, m *machine, up func() time.Duration) {
		m.Logind.OnReboot(func() {
			defer GinkgoRecover()
			m.kill()
			Expect(m.Logind.Start()).To(Succeed())
			m.upFor(up())
			m.start(ctx)
		})
	}

	It("reboots a host that keeps its boot ID, and the uptime proves it", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		keepsBootID(ctx, m, func() time.Duration {
			m.Engine.SetStatus(hosttest.Idle())
			return 10 * time.Second
		})
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
		Expect(progressOf(m.node(ctx)).Rebooted).To(BeTrue())
		Expect(m.Logind.Reboots()).To(Equal(1))
	})

	It("reboots a host that keeps its boot ID and uptime three times, and the node is put back in service", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		keepsBootID(ctx, m, func() time.Duration { return 24 * time.Hour })
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.showsMeanwhile(ctx, retry, phaseOf, Equal("1 Aborted RebootTimedOut failures=1"))
		Expect(m.Logind.Reboots()).To(Equal(3))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
	})

	It("is inhibited, which is reported before a grant (behaviour 46)", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.Logind.SetInhibitors(lock)
		m.start(ctx)
		m.shows(ctx, blockerOf, Equal("Inhibited: A shutdown of the host is blocked by packagekit (Transaction in progress)."))
		m.Logind.SetInhibitors()
		m.shows(ctx, blockerOf, BeEmpty()) // long before the agent's minute is over
	})

	It("is inhibited once the node is drained, and the reboot waits and is given up in the end", func(ctx SpecContext) {
		m := draining(ctx, patient)
		m.Logind.SetInhibitors(lock)
		m.allowEvictions(ctx)
		m.showsMeanwhile(ctx, 2*time.Second, conditionOf(corev1.NodeDrained), Equal("True Drained"))
		m.showsMeanwhile(ctx, v1alpha1.DefaultDrainTimeout, phaseOf, Equal("1 Aborted Inhibited failures=1"))
		Expect(progressOf(m.node(ctx)).Message).To(ContainSubstring("packagekit"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		m.shows(ctx, conditionOf(corev1.NodeDrained), Equal("False DrainAborted"))
		Expect(m.Logind.Reboots()).To(BeZero())
	})

	It("reports people who are logged in, and the drained node waits for them if the policy says so, for ten minutes at most", func(ctx SpecContext) {
		m := draining(ctx, v1alpha1.RebootPolicySpec{Reboot: &v1alpha1.Reboot{Sessions: v1alpha1.SessionsWait}})
		m.Logind.SetSessions(
			hosttest.Session{ID: "1", User: "core", Class: "user", State: "active", TTY: "pts/0", RemoteHost: "10.0.0.1"},
			hosttest.Session{ID: "2", User: "gdm", Class: "greeter", State: "active", TTY: "tty1"},
		)
		m.allowEvictions(ctx)
		m.showsMeanwhile(ctx, 2*time.Second, conditionOf(corev1.NodeDrained), Equal("True PeopleLoggedIn"))
		m.shows(ctx, messageOf(corev1.NodeDrained), HaveSuffix("People are logged in on the host: core (pts/0 from 10.0.0.1)."))
		Expect(m.Logind.Reboots()).To(BeZero())
		m.rebootsByLogind(ctx)
		m.showsMeanwhile(ctx, time.Minute, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
	})

	It("is inhibited past the point of no return, and neither this agent nor the next one calls it (behaviour 46)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.Logind.SetSystemd(hosttest.SystemdBefore257) // in which locks of root do not bind root
		m.Logind.FailReboot("org.freedesktop.DBus.Error.AccessDenied", "Permission denied")
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, blockerOf, ContainSubstring("Permission denied"))

		By("being held up before the call is retried")
		m.Logind.SetInhibitors(lock)
		called := m.Logind.Reboots()
		m.Logind.FailReboot("", "")
		m.showsMeanwhile(ctx, retry, blockerOf, And(HavePrefix("RebootRefused: "), ContainSubstring("packagekit")))
		Expect(m.Logind.Reboots()).To(Equal(called))

		By("holding up the next agent, too, which knows of no call")
		m.kill()
		m.Logind.SetInhibitors(hosttest.BlockShutdown("raid", "Rebuilding"))
		m.start(ctx)
		m.shows(ctx, blockerOf, And(HavePrefix("RebootRefused: "), ContainSubstring("raid")))
		Expect(m.Logind.Reboots()).To(Equal(called))

		By("rebooting once nobody holds a lock")
		m.rebootsByLogind(ctx)
		m.Logind.SetInhibitors()
		m.passes(ctx, retry)
		m.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
		Expect(m.Logind.Reboots()).To(Equal(called + 1))
	})

	It("would refuse although the policy ignores inhibitors, and the node is neither cordoned nor drained", func(ctx SpecContext) {
		m := needing(ctx, v1alpha1.RebootPolicySpec{Reboot: &v1alpha1.Reboot{Inhibitors: v1alpha1.ObstacleIgnore}})
		units, err := hosttest.StartUnits(m.Bus)
		Expect(err).NotTo(HaveOccurred())
		units.SetVersion("257.4-1")
		m.Logind.SetSystemd(hosttest.SystemdWithoutPolkit)
		m.Logind.SetInhibitors(lock)
		m.start(ctx)
		m.shows(ctx, annotationOf(v1alpha1.AnnotationReport), And(ContainSubstring("RebootRefused"), ContainSubstring("packagekit holds a block inhibitor")))
		m.grant(ctx, 1, protocol.GrantActive)
		m.passes(ctx, time.Minute)
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))

		By("rebooting once the lock is gone")
		m.rebootsByLogind(ctx)
		m.Logind.SetInhibitors()
		m.showsMeanwhile(ctx, time.Minute, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
	})

	It("is inhibited, and the policy ignores it", func(ctx SpecContext) {
		m := needing(ctx, v1alpha1.RebootPolicySpec{Reboot: &v1alpha1.Reboot{Inhibitors: v1alpha1.ObstacleIgnore}})
		m.Logind.SetInhibitors(lock)
		m.rebootsByLogind(ctx)
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
		Expect(m.Logind.Calls()).To(ContainElement("RebootWithFlags(0x10)"))
	})
})
