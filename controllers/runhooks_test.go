package controllers_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Hooks of a run", func() {
	const set, unset = "example.com/noout-set", "example.com/noout-unset"
	hooks := func(s *v1alpha1.RebootPolicySpec) {
		s.Hooks = &v1alpha1.Hooks{
			RunBefore: []v1alpha1.AnnotationKey{set}, RunAfter: []v1alpha1.AnnotationKey{unset}, Timeout: &v1alpha1.Duration{Duration: time.Hour},
		}
	}
	stage := func(p *v1alpha1.RebootPolicy) v1alpha1.RunStage {
		if run := policyStatus(p).Run; run != nil && run.Hooks != nil {
			return run.Hooks.Stage
		}
		return ""
	}
	answer := func(p *v1alpha1.RebootPolicy, key, value string) {
		GinkgoHelper()
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
		Expect(api.Patch(context.Background(), p.DeepCopy(), patch)).To(Succeed())
	}
	approve := func(p *v1alpha1.RebootPolicy, key string) {
		GinkgoHelper()
		answer(p, key, fmt.Sprintf("%d: true", policyStatus(p).Run.Hooks.Number))
	}

	It("run before the first node and after the last one, and accept no answer of an earlier run", func() {
		f := makeFleet(2)
		p := f.policy("workers", hooks)
		f.need(f.nodes[0])
		Eventually(stage).WithArguments(p).Should(Equal(v1alpha1.RunBefore))
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False RunHookWaits"))
		f.need(f.nodes[1])
		answer(p, set, fmt.Sprintf("%d: true", policyStatus(p).Run.Hooks.Number-1))
		Consistently(f.granted).Should(BeEmpty(), "an answer of an earlier run")
		approve(p, set)
		for range f.nodes {
			Eventually(f.granted).Should(HaveLen(1))
			Eventually(stage).WithArguments(p).Should(Equal(v1alpha1.RunRunning))
			name := f.granted()[0]
			f.reboot(name)
			f.finishes(name)
		}
		Eventually(stage).WithArguments(p).Should(Equal(v1alpha1.RunAfter))
		Expect(policyStatus(p).Grants).To(BeEmpty())
		f.need(f.nodes[0])
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False RunHookWaits"))
		approve(p, unset)
		Eventually(stage).WithArguments(p).Should(Equal(v1alpha1.RunBefore), "the next run asks again")
		Expect(f.granted()).To(BeEmpty())
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("WaitingForHook"))

		answer(p, set, fmt.Sprintf("%d: failed: no quorum", policyStatus(p).Run.Hooks.Number))
		Eventually(stage).WithArguments(p).Should(Equal(v1alpha1.RunAfter))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("HookFailed"))
		approve(p, unset)
		Expect(f.granted()).To(BeEmpty())
	})

	It("run after the run of a deleted policy, which goes once they have approved or timed out", func() {
		f := makeFleet(2)
		p := f.policy("workers", hooks)
		f.need(f.nodes...)
		Eventually(stage).WithArguments(p).Should(Equal(v1alpha1.RunBefore))
		approve(p, set)
		name := f.next()
		f.start(name)
		Expect(api.Delete(context.Background(), p.DeepCopy())).To(Succeed())
		f.comeBack(name)
		Eventually(stage).WithArguments(p).Should(Equal(v1alpha1.RunAfter))
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.Hooks.Timeout.Duration = time.Second })
		Eventually(isGone).WithArguments(p).Should(BeTrue())
	})
})
