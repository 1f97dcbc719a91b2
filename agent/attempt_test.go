package main

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// patient is a policy with the defaults.
var patient v1alpha1.RebootPolicySpec

// draining returns a machine whose drain waits for a pod that its budget protects. It times out
// when the spec advances the time.
func draining(ctx SpecContext, spec v1alpha1.RebootPolicySpec) *machine {
	GinkgoHelper()
	m := needing(ctx, spec)
	m.protectedPod(ctx)
	m.start(ctx)
	m.shows(ctx, needOf, Equal("True UpdateStaged"))
	m.grant(ctx, 1, protocol.GrantActive)
	m.shows(ctx, phaseOf, Equal("1 Draining cordoned"))
	Eventually(func() []string { return m.requests.of("/eviction") }).ShouldNot(BeEmpty())
	return m
}

var _ = Describe("An attempt", func() {
	It("is given up when a budget blocks for longer than drain.timeout (behaviour 38)", func(ctx SpecContext) {
		m := draining(ctx, patient)
		// The clock may advance before the refusal arrives, so advance it until the event is there.
		Eventually(func() map[string]int {
			m.passes(ctx, 5*time.Second)
			return m.eventsOf(ctx)
		}).WithPolling(250 * time.Millisecond).Should(HaveKey(v1alpha1.EventEvictionBlocked))
		m.showsMeanwhile(ctx, 2*time.Second, conditionOf(corev1.NodeDrainInProgress), Equal("True Draining"))
		m.showsMeanwhile(ctx, 2*time.Second, messageOf(corev1.NodeDrainInProgress), MatchRegexp(
			`^The drain waits for default/[^ ]*protected[^ ]* \(PodDisruptionBudget %s\)\. 0 of 1 pods have left\. The drain may take until \w+ \S+ \d\d:\d\d:\d\d UTC; then the node is uncordoned and backs off\.$`, m.Name+"-protected"))
		m.showsMeanwhile(ctx, v1alpha1.DefaultDrainTimeout, phaseOf, Equal("1 Aborted DrainTimedOut failures=1"))
		m.shows(ctx, conditionOf(corev1.NodeDrainInProgress), Equal("False DrainAborted"))
		node := m.node(ctx)
		Expect(cordonOf(node)).To(Equal("schedulable"))
		Expect(progressOf(node).Message).To(And(ContainSubstring("longer than 20m0s"), ContainSubstring("protected")))
		m.emits(ctx, string(v1alpha1.ReasonDrainTimedOut))
		m.emits(ctx, v1alpha1.EventDrainAborted)
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(v1alpha1.EventEvictionBlocked, 1))

		By("reporting to the manager whether the budget would hold up the next drain, too")
		Expect(progressOf(node).Budgeted).To(BeTrue())
		m.setBudget(ctx, 0)
		m.annotate(ctx, v1alpha1.AnnotationPreflight, protocol.Preflight{Policy: m.policy.Name, Revision: "r1", Failed: 1}.String())
		m.showsMeanwhile(ctx, 5*time.Second, annotationOf(v1alpha1.AnnotationReport), MatchRegexp(`"failed":1,"refused":.*PodDisruptionBudget %s-protected allows no eviction now`, m.Name))
		m.allowEvictions(ctx)
		m.showsMeanwhile(ctx, 5*time.Second, annotationOf(v1alpha1.AnnotationReport), And(ContainSubstring(`"failed":1`), Not(ContainSubstring("refused"))))
		m.setBudget(ctx, 0)

		By("counting the next failure with it")
		m.grant(ctx, 2, protocol.GrantActive)
		m.shows(ctx, phaseOf, Equal("2 Draining cordoned failures=1"))
		m.showsMeanwhile(ctx, v1alpha1.DefaultDrainTimeout, phaseOf, Equal("2 Aborted DrainTimedOut failures=2"))
		Expect(m.Logind.Reboots()).To(BeZero())
	})

	It("reboots with the remaining pods if the policy says so (behaviour 38)", func(ctx SpecContext) {
		m := draining(ctx, v1alpha1.RebootPolicySpec{Drain: &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}})
		m.passes(ctx, v1alpha1.DefaultDrainTimeout) // only once, because logind is called again if the host does not go down
		m.shows(ctx, phaseOf, Equal("1 Rebooting DrainTimedOut cordoned"))
		Expect(progressOf(m.node(ctx)).PodsForced).To(BeEquivalentTo(1), "the pod that is left")
		Eventually(m.Logind.Reboots).Should(Equal(1))
		Expect(conditionOf(corev1.NodeDrained)(m.node(ctx))).To(Equal("True DrainTimedOut"))
		m.emits(ctx, string(v1alpha1.ReasonDrainTimedOut))
		m.emits(ctx, string(v1alpha1.ReasonRebooting))
	})

	It("never reboots after a failed drain, even once drain.timeout has passed (behaviour 40)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{Drain: &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}})
		m.requests.forbid("/api/v1/pods", 1) // the one request is the check before the drain
		m.start(ctx)
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "please")
		m.shows(ctx, needOf, Equal("True Requested"))
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, phaseOf, Equal("1 Draining cordoned"))
		m.showsMeanwhile(ctx, 2*time.Second, messageOf(corev1.NodeDrainInProgress), ContainSubstring("forbidden"))
		m.passes(ctx, v1alpha1.DefaultDrainTimeout)
		m.shows(ctx, phaseOf, Equal("1 Aborted DrainTimedOut failures=1"))
		Expect(progressOf(m.node(ctx)).Message).To(ContainSubstring("forbidden"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		Expect(m.Logind.Reboots()).To(BeZero())
	})

	It("ends when the manager cancels the grant, and does not count as a failure", func(ctx SpecContext) {
		m := draining(ctx, patient)
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.shows(ctx, phaseOf, Equal("1 Aborted Cancelled"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))

		By("never being begun again by its own grant")
		m.grant(ctx, 1, protocol.GrantActive)
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Aborted Cancelled"))

		By("but by the next")
		m.grant(ctx, 2, protocol.GrantActive)
		m.shows(ctx, phaseOf, Equal("2 Draining cordoned"))
	})

	It("does not begin on a paused node, and is not stopped by a pause (behaviour 23)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.protectedPod(ctx)
		m.start(ctx)
		m.annotate(ctx, v1alpha1.AnnotationPaused, "disk swap")
		m.grant(ctx, 1, protocol.GrantActive)
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())

		m.change(ctx, func(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationPaused) })
		m.shows(ctx, phaseOf, Equal("1 Draining cordoned"))
		m.annotate(ctx, v1alpha1.AnnotationPaused, "true")
		m.allowEvictions(ctx)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
	})

	It("leaves an administrator's cordon alone (behaviour 43)", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.protectedPod(ctx)
		m.start(ctx)
		m.change(ctx, func(node *corev1.Node) { node.Spec.Unschedulable = true })
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, phaseOf, Equal("1 Draining"))
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.shows(ctx, phaseOf, Equal("1 Aborted Cancelled"))
		Expect(cordonOf(m.node(ctx))).To(Equal("cordoned"))
		Expect(m.eventsOf(ctx)).NotTo(HaveKey(v1alpha1.EventCordoned))
	})

	It("undoes its own cordon even if the API server has lost its field manager", func(ctx SpecContext) {
		m := draining(ctx, patient)
		Expect(cordonedBy(m.node(ctx))).To(ContainElement(v1alpha1.FieldOwnerAgent))
		writers := 0
		Eventually(func() []string {
			writers++
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/%d":""}}}`, writers))
			Expect(api.Patch(ctx, m.node(ctx), patch, client.FieldOwner(fmt.Sprintf("writer-%d", writers)))).To(Succeed())
			return cordonedBy(m.node(ctx))
		}).Should(Equal([]string{"ancient-changes"}))
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.shows(ctx, phaseOf, Equal("1 Aborted Cancelled"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
	})

	It("stops with the agent within seconds, and evicts nothing afterwards (behaviour 58)", func(ctx SpecContext) {
		m := draining(ctx, patient)
		stopped := make(chan struct{})
		go func() { m.kill(); close(stopped) }()
		Eventually(stopped).WithTimeout(5 * time.Second).Should(BeClosed())
		requests := m.requests.Len()
		m.allowEvictions(ctx)
		Expect(m.requests.Len()).To(Equal(requests))
		Expect(api.Get(ctx, client.ObjectKey{Namespace: "default", Name: m.Name + "-protected"}, &corev1.Pod{})).To(Succeed())
	})
})

// cordonedBy returns the field managers that own the cordon.
func cordonedBy(node *corev1.Node) (managers []string) {
	for _, entry := range node.ManagedFields {
		if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:unschedulable"`) {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

var _ = Describe("An agent that is killed", func() {
	It("during a drain continues the drain, and never uncordons in between (behaviour 64)", func(ctx SpecContext) {
		m := draining(ctx, patient)
		begun := progressOf(m.node(ctx)).At
		m.restart(ctx)
		m.allowEvictions(ctx)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
		Expect(progressOf(m.node(ctx)).DrainStartedAt).To(Equal(&begun), "its time runs from the first process")
		Eventually(m.Logind.Reboots).Should(Equal(1))
	})

	It("past the point of no return calls logind again as long as the boot lasts (behaviours 47, 48, 63)", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.Logind.AcceptAndDoNothing(true)
		m.grant(ctx, 1, protocol.GrantActive)
		m.emits(ctx, string(v1alpha1.ReasonRebooting))
		m.passes(ctx, 5*time.Minute)
		Eventually(m.Logind.Reboots).Should(Equal(2))
		m.restart(ctx)
		Eventually(m.Logind.Reboots).Should(Equal(3))

		By("taking that for no reboot: its conditions stay and so does its need")
		m.looksAgain(ctx)
		node := m.node(ctx)
		Expect(phaseOf(node)).To(Equal("1 Rebooting cordoned"))
		Expect(conditionOf(corev1.NodeMaintenanceInProgress)(node)).To(Equal("True Rebooting"))
		Expect(needOf(node)).To(Equal("True UpdateStaged"))

		By("and giving the node back after the third call, which counts as a failure, even if the grant was cancelled since")
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.restart(ctx)
		m.showsMeanwhile(ctx, 5*time.Minute, phaseOf, Equal("1 Aborted RebootTimedOut failures=1"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		Expect(m.Logind.Reboots()).To(Equal(3))
	})

	It("past the point of no return does not call logind under a cancelled grant, and puts the node back in service", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.Logind.AcceptAndDoNothing(true)
		m.grant(ctx, 1, protocol.GrantActive)
		m.emits(ctx, string(v1alpha1.ReasonRebooting))
		m.kill()
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.start(ctx)
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Rebooting cordoned"))
		m.showsMeanwhile(ctx, 5*time.Minute, phaseOf, Equal("1 Aborted GrantWithdrawn"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		Expect(m.Logind.Reboots()).To(Equal(1), "the call before the grant was cancelled")
	})
})

var _ = Describe("The lead time of a drain", func() {
	It("passes completely, even if the agent is killed during that time", func(ctx SpecContext) {
		m := needing(ctx, v1alpha1.RebootPolicySpec{Drain: &v1alpha1.Drain{LeadTime: &v1alpha1.Duration{Duration: time.Hour}}})
		m.pod(ctx, "db", m.owner("ReplicaSet"))
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, messageOf(corev1.NodeDrainInProgress), ContainSubstring("Its pods are evicted from "))
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Draining cordoned"))
		m.kill()
		m.Clock.Jump(50 * time.Minute)
		m.start(ctx)
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Draining cordoned"))
		Expect(m.requests.of("/eviction")).To(BeEmpty(), "ten minutes are left")

		m.passes(ctx, 10*time.Minute)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
		Expect(m.requests.of("/eviction")).NotTo(BeEmpty())
	})
})
