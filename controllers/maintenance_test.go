package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A planned maintenance", func() {
	var f *fleet
	planned := func(name string) string {
		if c := f.condition(name, corev1.NodeMaintenancePlanned); c != nil {
			return string(c.Status) + " " + c.Reason
		}
		return ""
	}
	begin := func(edit ...func(*v1alpha1.RebootPolicySpec)) (name string) {
		f = makeFleet(1)
		f.policy("workers", edit...)
		f.need(f.nodes[0])
		return f.nodes[0]
	}
	hooked := func(s *v1alpha1.RebootPolicySpec) {
		s.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/ok"}}
	}

	It("is announced with the grant, in the same write", func() {
		name := begin()
		Eventually(f.granted).Should(HaveLen(1))
		Expect(planned(name)).To(Equal("True RebootGranted"))
		f.start(name)
		f.commit(name)
		Expect(planned(name)).To(Equal("True RebootGranted"))
		f.boot(name, 2)
		Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
		Eventually(planned).WithArguments(name).Should(BeEmpty())
	})

	It("is announced before hooks are asked, and over when one refuses", func() {
		name := begin(hooked)
		Eventually(func() map[string]string { return f.get(name).Labels }).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		Expect(planned(name)).To(Equal("True RebootGranted"), "label and condition are one write")
		f.annotate(name, "example.com/ok", "false")
		Eventually(planned).WithArguments(name).Should(BeEmpty())
	})

	It("is over when the agent has given up", func() {
		name := begin()
		Eventually(f.granted).Should(HaveLen(1))
		f.start(name)
		f.patch(name, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationProgress: f.progress(name, protocol.PhaseAborted,
				func(p *protocol.Progress) { p.Failures, p.Reason = 1, v1alpha1.ReasonDrainTimedOut })}},
			"spec": map[string]any{"unschedulable": nil},
		})
		Eventually(planned).WithArguments(name).Should(BeEmpty())
		Eventually(f.reason).WithArguments(name).Should(Equal("False BackingOff"))
	})

	It("of another program stays as it is", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		f.status(name, map[string]any{"conditions": []any{cond(corev1.NodeMaintenancePlanned, "True", "Firmware")}})
		f.policy("workers")
		f.need(name)
		Eventually(f.granted).Should(HaveLen(1))
		Expect(planned(name)).To(Equal("True Firmware"))
		f.annotate(name, v1alpha1.AnnotationPaused, "true")
		Eventually(f.granted).Should(BeEmpty())
		Eventually(f.reason).WithArguments(name).Should(Equal("False NodePaused"))
		Expect(planned(name)).To(Equal("True Firmware"))
	})
})
