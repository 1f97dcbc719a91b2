package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A window", func() {
	// closesSoon sets a window that stays open for eleven to twelve minutes.
	closesSoon := func(s *v1alpha1.RebootPolicySpec) {
		start := time.Now().UTC().Add(-time.Hour)
		s.Windows = []v1alpha1.Window{{Name: "now", Start: start.Format("15:04"), Duration: v1alpha1.Duration{Duration: 72 * time.Minute}}}
	}

	It("that closes lets a drain in progress finish, and cancels grants that have not begun (behaviours 35, 36)", func() {
		f := makeFleet(3)
		p := f.policy("workers", limit(2), closesSoon)
		f.need(f.nodes[:2]...)
		Eventually(f.granted).Should(HaveLen(2))
		begun, idle := f.nodes[0], f.nodes[1]
		f.start(begun)
		now.forward(12*time.Minute + 30*time.Second)
		f.need(f.nodes[2]) // wakes the manager
		Eventually(f.granted).Should(Equal([]string{begun}))
		Expect(f.grant(idle).Reason).To(Equal(v1alpha1.ReasonWindowClosed))
		f.show("False WindowClosed", f.nodes[1:]...)
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("GrantCancelled"))
		Expect(f.reason(begun)).To(Equal("True Granted"))

		By("finishing behind closed windows")
		f.comeBack(begun)
		Eventually(func() bool { return f.get(begun).Spec.Unschedulable }).Should(BeFalse())
		Expect(f.grant(begun).State).To(Equal(protocol.GrantFinished))
		Eventually(grantsOf).WithArguments(p).Should(BeEmpty())
		Expect(conditionOf(p, v1alpha1.ConditionWindowOpen).Reason).To(Equal("WindowClosed"))

		By("going on when it opens again")
		now.forward(23*time.Hour + 10*time.Minute)
		f.annotate(f.nodes[2], v1alpha1.AnnotationPaused, "true") // wakes the manager
		Eventually(f.granted).Should(Equal([]string{idle}))
	})

	It("that is closed does not stop nodes while the policy is urgent, and counts again when that ends", func() {
		hook := startWebhook("notified-of-urgency")
		f := makeFleet(2)
		p := f.policy("workers", closed, notifies("notified-of-urgency", v1alpha1.NotifyUrgent))
		f.need(f.nodes...)
		f.show("False WindowClosed", f.nodes...)
		editPolicy(p, func(p *v1alpha1.RebootPolicy) {
			p.Spec.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{
				Until: metav1.NewTime(time.Now().Add(time.Hour)), Reason: "CVE-2026-12345", Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows},
			}}
		})
		Eventually(f.granted).Should(HaveLen(1))
		Eventually(func() v1alpha1.WindowState { return policyStatus(p).Window.State }).Should(Equal(v1alpha1.WindowUrgent))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("Urgent"))
		Eventually(hook.messages).Should(ConsistOf(And(HavePrefix("Policy "+p.Name+" is urgent until "), HaveSuffix(", ignoring Windows: CVE-2026-12345"))))

		By("a grant that is not used, and the end")
		first := f.granted()[0]
		now.forward(61 * time.Minute)
		f.annotate(first, "example.com/wakes", "true") // wakes the manager
		Eventually(f.granted).Should(BeEmpty())
		f.show("False WindowClosed", f.nodes...)
		Eventually(func() v1alpha1.WindowState { return policyStatus(p).Window.State }).Should(Equal(v1alpha1.WindowClosed))
	})
})

// closed sets a window that opens in half a day.
func closed(s *v1alpha1.RebootPolicySpec) {
	start := time.Now().UTC().Add(12 * time.Hour)
	s.Windows = []v1alpha1.Window{{Name: "later", Start: start.Format("15:04"), Duration: v1alpha1.Duration{Duration: time.Hour}}}
}
