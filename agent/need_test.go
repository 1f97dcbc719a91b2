package main

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

var _ = Describe("The need for a reboot", func() {
	message := messageOf(v1alpha1.NodeRebootRequired)

	It("is read from an engine before the grant, also if it ended without a signal (behaviours 2, 3)", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.Engine.SetStatus(hosttest.Idle()) // as after ResetStatus, which does not send a signal
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		node := m.node(ctx)
		Expect(cordonOf(node)).To(Equal("schedulable"))
		Expect(node.Annotations).NotTo(HaveKey(v1alpha1.AnnotationProgress))
		Expect(m.Logind.Reboots()).To(BeZero())
	})

	It("is received after malformed messages on the bus (behaviour 5)", func(ctx SpecContext) {
		m := upToDate(ctx)
		Expect(m.Bus.Broadcast()).To(Succeed())
		Expect(m.Bus.Broadcast("UPDATE_STATUS_UPDATED_NEED_REBOOT", int64(1))).To(Succeed())
		m.detectsABroadcast(ctx)
	})

	It("is one condition, even if another program has added one of its type", func(ctx SpecContext) {
		m := upToDate(ctx)
		node := m.node(ctx)
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionTrue, Reason: "Another", LastTransitionTime: metav1.Now(),
		})
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		m.shows(ctx, func(node *corev1.Node) string {
			var all []string
			for _, c := range node.Status.Conditions {
				if c.Type == v1alpha1.NodeRebootRequired {
					all = append(all, string(c.Status)+" "+c.Reason)
				}
			}
			return strings.Join(all, ", ")
		}, Equal("False UpToDate"))
	})

	It("survives a restart of the bus and of the agent without a confirmation by an engine (behaviours 6, 13)", func(ctx SpecContext) {
		m := upToDate(ctx)
		Expect(m.Bus.Broadcast(int64(0), 0.0, hosttest.OpUpdatedNeedReboot, "4593.1.0", int64(0))).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		written := len(m.requests.writes())
		before := message(m.node(ctx))

		m.kill()
		Expect(m.Bus.Restart()).To(Succeed())
		Expect(m.Engine.Start()).To(Succeed())
		Expect(m.Logind.Start()).To(Succeed())
		asked := m.Engine.StatusCalls()
		m.start(ctx)
		Eventually(m.Engine.StatusCalls).Should(BeNumerically(">", asked))
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "a request")
		m.shows(ctx, message, Equal(`An administrator asks for a reboot: "a request". `+before))
		Expect(m.requests.writes()).To(HaveLen(written+1), "the request, and nothing about the need")

		By("falling with the boot, even one that somebody else made (behaviour 50)")
		m.change(ctx, func(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationRebootRequested) })
		m.shows(ctx, message, Equal(before))
		m.boot(ctx)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
	})

	It("ends a day after a broadcast that no engine confirms, even if the agent was restarted (behaviour 1)", func(ctx SpecContext) {
		m := upToDate(ctx)
		sent := time.Now().Truncate(time.Second)
		m.detectsABroadcast(ctx)
		engines, err := protocol.ParseEngines(m.node(ctx).Annotations)
		Expect(err).NotTo(HaveOccurred())
		until := engines.Reported[0].Until.Time
		Expect(until).To(And(BeTemporally(">=", sent.Add(24*time.Hour)), BeTemporally("<=", time.Now().Add(24*time.Hour))))
		Expect(message(m.node(ctx))).To(ContainSubstring("(asks by broadcast until " + timing.Instant(until) + ")"))

		By("ending while no agent runs")
		m.kill()
		engines.Reported[0].Until = new(metav1.NewTime(sent))
		m.annotate(ctx, v1alpha1.AnnotationEngines, engines.String())
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(m.node(ctx).Labels).NotTo(HaveKey(v1alpha1.LabelRebootRequired))

		By("being needed again from the next broadcast on")
		m.detectsABroadcast(ctx)
	})

	It("is a long uptime until the reboot", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.upFor(24*time.Hour - time.Second)
		m.annotate(ctx, v1alpha1.AnnotationMaxUptime, "24h0m0s")
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		booted := annotationOf(v1alpha1.AnnotationBootedAt)
		m.shows(ctx, booted, HaveSuffix("Z")) // for the forecast

		By("being found as time goes on, without a change on the Node")
		m.upFor(24 * time.Hour)
		m.shows(ctx, needOf, Equal("True MaxUptime"))
		Expect(message(m.node(ctx))).To(ContainSubstring("The node has been up for longer than 24h0m0s"))

		By("ending with a longer maximum, and with none")
		m.annotate(ctx, v1alpha1.AnnotationMaxUptime, "48h0m0s")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.annotate(ctx, v1alpha1.AnnotationMaxUptime, "24h0m0s")
		m.shows(ctx, needOf, Equal("True MaxUptime"))
		m.change(ctx, func(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationMaxUptime) })
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.shows(ctx, booted, HaveSuffix("Z"))

		By("ending with the reboot")
		m.annotate(ctx, v1alpha1.AnnotationMaxUptime, "24h0m0s")
		m.shows(ctx, needOf, Equal("True MaxUptime"))
		m.rebootsByLogind(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(m.Logind.Reboots()).To(Equal(1))
	})

	It("is a condition of another program that has lasted, once for each time that it changes", func(ctx SpecContext) {
		const deadlock corev1.NodeConditionType = "KernelDeadlock"
		m := newMachine(ctx, patient)
		m.upFor(24 * time.Hour)
		m.annotate(ctx, v1alpha1.AnnotationNodeConditions, `[{"type":"KernelDeadlock","for":"10m0s"}]`)
		detects := func(status corev1.ConditionStatus) {
			GinkgoHelper()
			node := m.node(ctx)
			node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == deadlock })
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
				Type: deadlock, Status: status, Reason: "DockerHung", LastTransitionTime: metav1.NewTime(m.Clock.Now()),
			})
			Expect(api.Status().Update(ctx, node)).To(Succeed())
		}
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))

		By("asking once it has lasted, without a change on the Node")
		detects(corev1.ConditionTrue)
		m.passes(ctx, 10*time.Minute-time.Second)
		Expect(needOf(m.node(ctx))).To(Equal("False UpToDate"))
		m.passes(ctx, time.Second)
		m.shows(ctx, needOf, Equal("True NodeCondition"))

		By("ending with the condition, and with the policy that names it")
		detects(corev1.ConditionFalse)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		detects(corev1.ConditionTrue)
		m.passes(ctx, 10*time.Minute)
		m.shows(ctx, needOf, Equal("True NodeCondition"))
		m.change(ctx, func(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationNodeConditions) })
		m.shows(ctx, needOf, Equal("False UpToDate"))

		By("ending with the reboot, though the condition stays")
		m.annotate(ctx, v1alpha1.AnnotationNodeConditions, `[{"type":"KernelDeadlock","for":"10m0s"}]`)
		m.shows(ctx, needOf, Equal("True NodeCondition"))
		m.rebootsByLogind(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, needOf, Equal("False ConditionIgnored"))
		Expect(message(m.node(ctx))).To(ContainSubstring("The reboot since then did not end it"))
		m.passes(ctx, time.Hour)
		m.shows(ctx, needOf, Equal("False ConditionIgnored"))
		Expect(m.Logind.Reboots()).To(Equal(1))

		By("asking again once it has changed")
		m.upFor(2 * time.Hour)
		detects(corev1.ConditionTrue)
		m.passes(ctx, 10*time.Minute)
		m.shows(ctx, needOf, Equal("True NodeCondition"))
	})

	It("waits on a host that has just booted, and says until when (lesson 23)", func(ctx SpecContext) {
		m := upToDate(ctx)
		m.upFor(119 * time.Second)
		m.detectsABroadcast(ctx)
		m.shows(ctx, blockerOf, HavePrefix("JustBooted: The host has just booted. Its drain waits until "))
		m.upFor(2 * time.Minute)
		m.shows(ctx, blockerOf, BeEmpty())
	})

	It("is requested by another controller with a label, until one reboot has ended it", func(ctx SpecContext) {
		labelled := func(node *corev1.Node) bool { return node.Labels[v1alpha1.LabelRebootRequested] != "" }
		m := upToDate(ctx)
		label := func(value string) {
			m.change(ctx, func(node *corev1.Node) {
				metav1.SetMetaDataLabel(&node.ObjectMeta, v1alpha1.LabelRebootRequested, value)
			})
		}
		label("gpu-lost")
		m.shows(ctx, needOf, Equal("True Requested"))
		Expect(message(m.node(ctx))).To(ContainSubstring(`Label reboot-operator.io/reboot-requested asks for a reboot: "gpu-lost".`))

		By("being removed with the first report after the boot, and not before")
		m.restart(ctx)
		m.rebootsByLogind(ctx)
		Expect(labelled(m.node(ctx))).To(BeTrue())
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(labelled(m.node(ctx))).To(BeFalse())

		By("being another one when it is made after the boot, and going by hand, too")
		label("gpu-lost")
		m.shows(ctx, needOf, Equal("True Requested"))
		m.change(ctx, func(node *corev1.Node) { delete(node.Labels, v1alpha1.LabelRebootRequested) })
		m.shows(ctx, needOf, Equal("False UpToDate"))
	})

	It("is requested by an administrator, until one reboot has ended it (behaviour 13)", func(ctx SpecContext) {
		requested := annotationOf(v1alpha1.AnnotationRebootRequested)
		m := upToDate(ctx)
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "new firmware")
		m.shows(ctx, needOf, Equal("True Requested"))

		By("surviving a restart of the agent")
		asked := m.Engine.StatusCalls()
		m.restart(ctx)
		Eventually(m.Engine.StatusCalls).Should(BeNumerically(">", asked))
		Expect(needOf(m.node(ctx))).To(Equal("True Requested"))

		By("being removed with the first report after the boot")
		m.rebootsByLogind(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(m.node(ctx).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))

		By("being another one when it is made after the boot, though the text is the same")
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "new firmware")
		m.shows(ctx, needOf, Equal("True Requested"))
		m.restart(ctx)
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "newer firmware")
		m.shows(ctx, message, ContainSubstring("newer firmware"))
		Expect(requested(m.node(ctx))).To(Equal("newer firmware"))
	})
})
