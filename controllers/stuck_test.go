package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("A reboot that goes another way", func() {
	// goesDown returns a fleet of two nodes that need a reboot. One of them is past the point of no
	// return.
	goesDown := func() (f *fleet, p *v1alpha1.RebootPolicy, down, waits string) {
		f = makeFleet(2)
		p = f.policy("workers")
		f.need(f.nodes...)
		Eventually(f.granted).Should(HaveLen(1))
		down, waits = f.granted()[0], f.nodes[0]
		if waits == down {
			waits = f.nodes[1]
		}
		f.start(down)
		f.commit(down)
		return f, p, down, waits
	}
	ready := func(f *fleet, name, status string) {
		f.reports(name, testenv.Condition(corev1.NodeReady, status, "Kubelet"))
	}

	It("takes too long, which is reported in condition, event and metric, and keeps its slot (behaviour 26)", func() {
		f, p, down, waits := goesDown()
		ready(f, down, "Unknown")
		f.passes(down, time.Hour)
		Eventually(f.reason).WithArguments(down).Should(Equal("True RebootTimedOut"))
		for _, object := range []string{down, p.Name} {
			Eventually(reasonsOf).WithArguments(object).Should(ContainElement("RebootTimedOut"))
		}
		Expect(f.condition(down, v1alpha1.NodeRebootFailed)).To(And(HaveField("Status", corev1.ConditionTrue), HaveField("Reason", "RebootTimedOut"),
			HaveField("Message", f.condition(down, v1alpha1.NodeRebootPermitted).Message)), "condition and reason are one write")
		Expect(countOf("reboot_operator_reboots_total", p.Name, "timed_out")).To(BeEquivalentTo(1))
		Eventually(func() int32 { return policyStatus(p).Nodes.Failed }).Should(BeEquivalentTo(1))
		Eventually(f.reason).WithArguments(waits).Should(Equal("False BudgetExhausted"))
		Consistently(f.granted, "500ms").Should(Equal([]string{down}), "the limit is not widened")
		Expect(policyStatus(p).Grants).To(HaveLen(1))

		By("ending like any other once the machine is back")
		ready(f, down, "True")
		f.boot(down, 2)
		Eventually(f.granted).Should(Equal([]string{waits}))
		Expect(f.get(down).Spec.Unschedulable).To(BeFalse())
		Eventually(f.condition).WithArguments(down, v1alpha1.NodeRebootFailed).Should(BeNil())
	})

	It("has a node that is Ready again without its agent, which does not count as a failed machine", func() {
		f, _, up, _ := goesDown()
		f.status(up, map[string]any{"nodeInfo": map[string]any{"bootID": bootID(up, 2)}})
		f.passes(up, time.Hour)
		Eventually(f.reason).WithArguments(up).Should(Equal("True AgentSilent"))
		Eventually(reasonsOf).WithArguments(up).Should(ContainElement("AgentSilent"))
		Expect(f.condition(up, v1alpha1.NodeRebootFailed)).To(BeNil(), "a health controller would power it off")
		Expect(f.granted()).To(Equal([]string{up}))
	})

	It("keeps the boot ID, as after a soft reboot or a restart of the agent: it does not succeed and keeps its slot, although the need vanishes (behaviours 19, 48, 61, 63)", func() {
		f, p, down, _ := goesDown()
		ready(f, down, "False")
		ready(f, down, "True")
		f.reports(down, testenv.Condition(corev1.NodeMaintenanceInProgress, "False", "Restarted"), testenv.Condition(v1alpha1.NodeRebootRequired, "False", "UpToDate"))
		f.passes(down, time.Hour)
		Eventually(f.reason).WithArguments(down).Should(Equal("True RebootTimedOut"))
		Expect(f.condition(down, v1alpha1.NodeRebootFailed)).To(BeNil(), "it is Ready: a health controller would power it off")
		Expect(f.granted()).To(Equal([]string{down}))
		Expect(policyStatus(p).Grants).To(HaveLen(1))
		Expect(f.get(down).Spec.Unschedulable).To(BeTrue(), "nobody uncordons a node that was not rebooted")
		Expect(reasonsOf(down)).NotTo(ContainElement("RebootSucceeded"))
	})

	It("is replaced by a reboot by hand: the node is not a candidate any more, and its slot is free (behaviour 50)", func() {
		f := makeFleet(2)
		p := f.policy("workers")
		f.need(f.nodes...)
		byHand := f.next()
		f.boot(byHand, 2)
		Eventually(func() protocol.GrantState { return f.grant(byHand).State }).Should(Equal(protocol.GrantCancelled))
		Eventually(f.reason).WithArguments(byHand).Should(BeEmpty())
		Eventually(f.granted).Should(And(HaveLen(1), Not(ContainElement(byHand))))
		Expect(reasonsOf(byHand)).NotTo(ContainElement("RebootSucceeded"))
		next := f.granted()[0]
		f.reboot(next)
		Eventually(func() int32 { return policyStatus(p).Nodes.RebootRequired }).Should(BeZero())

		By("being granted its reboot if it still needs one")
		f.need(byHand)
		Eventually(f.granted).Should(Equal([]string{byHand}))
		Expect(f.grant(byHand).BootID).To(Equal(bootID(byHand, 2)))

		By("losing it with the next boot by hand: once its agent reports that the need outlives that, a new grant is for that boot")
		f.status(byHand, map[string]any{"nodeInfo": map[string]any{"bootID": bootID(byHand, 3)}})
		Eventually(f.reason).WithArguments(byHand).Should(Equal("False NodeUnavailable"))
		f.need(byHand)
		Eventually(func() string { return f.grant(byHand).BootID }).Should(Equal(bootID(byHand, 3)))
	})
})
