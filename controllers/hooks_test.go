package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Hooks", func() {
	const before, after = "example.com/backup-done", "example.com/health-ok"
	hooks := func(timeout time.Duration) func(*v1alpha1.RebootPolicySpec) {
		return func(s *v1alpha1.RebootPolicySpec) {
			s.Hooks = &v1alpha1.Hooks{
				Before: []v1alpha1.AnnotationKey{before}, After: []v1alpha1.AnnotationKey{after}, Timeout: &metav1.Duration{Duration: timeout},
			}
		}
	}
	var f *fleet
	labels := func() map[string]string { return f.get(f.nodes[0]).Labels }
	annotations := func() map[string]string { return f.get(f.nodes[0]).Annotations }

	It("run before the drain and after the boot, and take no stale answer (behaviours 49, 51, 52)", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		f.annotate(name, before, "true")
		f.annotate(name, after, "true")
		p := f.policy("workers", hooks(time.Hour))
		f.need(name)
		Eventually(labels).Should(HaveKeyWithValue(v1alpha1.LabelBeforeReboot, "true"))
		Expect(annotations()).NotTo(HaveKey(before), "the stale answer goes in the write that begins the phase")
		Eventually(f.reason).WithArguments(name).Should(Equal("False WaitingForHook"))
		Expect(f.granted()).To(BeEmpty())
		Expect(policyStatus(p).Grants).To(HaveLen(1), "a node in its hooks uses up the limit")

		f.annotate(name, before, "true")
		Eventually(f.granted).Should(HaveLen(1))
		Expect(labels()).NotTo(HaveKey(v1alpha1.LabelBeforeReboot))
		f.reboot(name)
		Eventually(labels).Should(HaveKeyWithValue(v1alpha1.LabelAfterReboot, "true"))
		Expect(annotations()).NotTo(HaveKey(after))
		Expect(f.get(name).Spec.Unschedulable).To(BeTrue(), "still cordoned")
		Eventually(f.reason).WithArguments(name).Should(Equal("True WaitingForHook"))

		f.annotate(name, after, "true")
		Eventually(func() v1alpha1.GrantState { return f.grant(name).State }).Should(Equal(v1alpha1.GrantFinished))
		Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
		Expect(labels()).NotTo(HaveKey(v1alpha1.LabelAfterReboot))
		Expect(annotations()).NotTo(HaveKey(v1alpha1.AnnotationHooks))
	})

	It("give the slot back when a before-hook says no", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		p := f.policy("workers", hooks(time.Hour))
		f.need(name)
		Eventually(labels).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		f.annotate(name, before, "failed: no space left")
		Eventually(f.reason).WithArguments(name).Should(Equal("False BackingOff"))
		Expect(policyStatus(p).Grants).To(BeEmpty())
		Expect(labels()).NotTo(HaveKey(v1alpha1.LabelBeforeReboot))
		Eventually(reasonsOf).WithArguments(name).Should(ContainElements("HookFailed", "GrantCancelled"))
	})

	It("give the slot back when a before-hook says nothing in time", func() {
		f = makeFleet(1)
		f.policy("workers", hooks(time.Second))
		f.need(f.nodes[0])
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False BackingOff"))
		Eventually(reasonsOf).WithArguments(f.nodes[0]).Should(ContainElement("HookTimedOut"))
	})

	It("keep the node cordoned, and its slot, when an after-hook says nothing in time (behaviour 52)", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		p := f.policy("workers", hooks(2*time.Second))
		f.need(name)
		Eventually(labels).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		f.annotate(name, before, "true")
		Eventually(f.granted).Should(HaveLen(1))
		f.reboot(name)
		Eventually(f.reason).WithArguments(name).Should(Equal("True HookTimedOut"))
		Expect(f.get(name).Spec.Unschedulable).To(BeTrue())
		Expect(policyStatus(p).Grants).To(HaveLen(1))
		f.annotate(name, after, "true")
		Eventually(func() v1alpha1.GrantState { return f.grant(name).State }).Should(Equal(v1alpha1.GrantFinished))
	})
})
