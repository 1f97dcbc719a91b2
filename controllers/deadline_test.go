package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A deadline", func() {
	// deadlineOf returns condition DeadlineNear of a policy.
	deadlineOf := func(p *v1alpha1.RebootPolicy) string {
		c := conditionOf(p, v1alpha1.ConditionDeadlineNear)
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}

	It("that is near or has passed is reported in condition, event, metric and notification", func() {
		hook := startWebhook("notified-of-deadlines")
		f := makeFleet(2)
		paused := func(s *v1alpha1.RebootPolicySpec) {
			s.Pause, s.Deadline = &v1alpha1.Pause{}, &v1alpha1.Duration{Duration: 4 * time.Hour}
		}
		p := f.policy("workers", paused, notifies("notified-of-deadlines", v1alpha1.NotifyDeadline))
		nodes := func() map[string]float64 { return gaugesOf("reboot_operator_nodes", p.Name, "state") }
		Expect(deadlineOf(p)).To(Equal("False InTime: no node has needed a reboot for three quarters of spec.deadline"))
		f.needSince(f.nodes[0], now.Now().Add(-3*time.Hour-time.Minute))
		Eventually(deadlineOf).WithArguments(p).Should(HavePrefix("True DeadlineNear: 1 node close to the deadline: " + f.nodes[0] + " by "))
		Eventually(notesOf).WithArguments(p.Name).Should(ContainElement(HavePrefix("DeadlineNear: 1 node close to the deadline: " + f.nodes[0])))
		Eventually(nodes).Should(And(HaveKeyWithValue("deadline_near", 1.0), HaveKeyWithValue("deadline_passed", 0.0)))
		Eventually(hook.messages).Should(ConsistOf(HavePrefix("Policy " + p.Name + ": 1 node close to the deadline: " + f.nodes[0])))

		By("passing it")
		f.passes(f.nodes[1], time.Hour)
		Eventually(deadlineOf).WithArguments(p).Should(HavePrefix("True DeadlinePassed: 1 node past the deadline, 0 close to it: " + f.nodes[0] + " since "))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("DeadlinePassed"))
		Eventually(nodes).Should(And(HaveKeyWithValue("deadline_near", 0.0), HaveKeyWithValue("deadline_passed", 1.0)))
		Eventually(hook.messages).Should(ContainElement(HavePrefix("Policy " + p.Name + ": 1 node past the deadline")))

		By("another node passing it")
		f.needSince(f.nodes[1], now.Now().Add(-5*time.Hour))
		Eventually(hook.messages).Should(ContainElement(HavePrefix("Policy " + p.Name + ": 2 nodes past the deadline")))
		Expect(policyStatus(p).Nodes.Overdue).To(Equal(int32(2)))

		By("taking it out of the policy")
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.Deadline = nil })
		Eventually(conditionOf).WithArguments(p, v1alpha1.ConditionDeadlineNear).Should(BeZero())
	})

	It("that ignores windows reboots only the nodes that are past it", func() {
		f := makeFleet(2)
		p := f.policy("workers", limit(2), closed, func(s *v1alpha1.RebootPolicySpec) {
			s.Deadline = &v1alpha1.Duration{Duration: 4 * time.Hour}
			s.Urgent = &v1alpha1.Urgent{Overdue: &v1alpha1.UrgentNodes{Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows}}}
		})
		late, early := f.nodes[0], f.nodes[1]
		f.needSince(early, now.Now().Add(-time.Hour))
		Eventually(f.reason).WithArguments(early).Should(Equal("False WindowClosed"))
		f.needSince(late, now.Now().Add(-5*time.Hour))
		Eventually(f.granted).Should(Equal([]string{late}))
		for _, name := range []string{late, p.Name} {
			Eventually(notesOf).WithArguments(name).Should(ContainElement(HavePrefix("DeadlinePassed: node " + late + " will be rebooted outside the windows, because its deadline ended ")))
		}
		Expect(f.reason(early)).To(Equal("False WindowClosed"))
		Expect(policyStatus(p).Grants).To(ConsistOf(HaveField("NeedSince.Time", BeTemporally("~", now.Now().Add(-5*time.Hour), 5*time.Minute))))
	})
})
