package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Hooks", func() {
	const before, after = "example.com/backup-done", "example.com/health-ok"
	hooks := func(s *v1alpha1.RebootPolicySpec) {
		s.Hooks = &v1alpha1.Hooks{
			Before: []v1alpha1.AnnotationKey{before}, After: []v1alpha1.AnnotationKey{after}, Timeout: &v1alpha1.Duration{Duration: time.Hour},
		}
	}
	var f *fleet
	labels := func() map[string]string { return f.get(f.nodes[0]).Labels }
	annotations := func() map[string]string { return f.get(f.nodes[0]).Annotations }
	// asked returns a node whose before-hook runs, and its policy.
	asked := func() (name string, p *v1alpha1.RebootPolicy) {
		f = makeFleet(1)
		p = f.policy("workers", hooks)
		f.need(f.nodes[0])
		Eventually(labels).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		return f.nodes[0], p
	}

	It("run before the drain and after the boot, and accept no stale answer (behaviours 49, 51, 52)", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		f.annotate(name, before, "true")
		f.annotate(name, after, "true")
		p := f.policy("workers", hooks)
		f.need(name)
		Eventually(labels).Should(HaveKeyWithValue(v1alpha1.LabelBeforeReboot, "true"))
		Expect(annotations()).NotTo(HaveKey(before), "the stale answer goes in the write that begins the phase")
		Eventually(f.reason).WithArguments(name).Should(Equal("False WaitingForHook"))
		Expect(f.granted()).To(BeEmpty())
		Expect(policyStatus(p).Grants).To(HaveLen(1), "a node in its hooks uses up the limit")
		Eventually(reasonsOf).WithArguments(name).Should(ContainElement("WaitingForHook"))

		f.annotate(name, before, "true")
		Eventually(f.granted).Should(HaveLen(1))
		Expect(labels()).NotTo(HaveKey(v1alpha1.LabelBeforeReboot))
		Expect(annotations()).NotTo(HaveKey(before), "an answer that was taken")
		f.reboot(name)
		Eventually(labels).Should(HaveKeyWithValue(v1alpha1.LabelAfterReboot, "true"))
		Expect(annotations()).NotTo(HaveKey(after))
		Expect(f.get(name).Spec.Unschedulable).To(BeTrue(), "still cordoned")
		Eventually(f.reason).WithArguments(name).Should(Equal("True WaitingForHook"))

		f.annotate(name, after, "true")
		f.finishes(name)
		Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
		Expect(labels()).NotTo(HaveKey(v1alpha1.LabelAfterReboot))
		Expect(annotations()).NotTo(HaveKey(v1alpha1.AnnotationHooks))
		Expect(annotations()).NotTo(HaveKey(after), "an answer that was taken")
	})

	It("run again for another policy to which the node has moved (behaviour 51)", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		f.policy("old", hooks)
		f.need(name)
		Eventually(labels).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		f.annotate(name, after, "true")
		f.policy("new", hooks, func(s *v1alpha1.RebootPolicySpec) {
			s.Priority, s.Hooks.Before = 1, []v1alpha1.AnnotationKey{after}
		})
		Eventually(hookPhase).WithArguments(f, name).Should(HaveField("Policy", f.pool+"-new"))
		Expect(annotations()).NotTo(HaveKey(after))
		Expect(labels()).To(HaveKey(v1alpha1.LabelBeforeReboot))
		f.annotate(name, before, "true")
		Consistently(f.granted).Should(BeEmpty(), "approval for the old policy")
		f.annotate(name, after, "true")
		Eventually(f.granted).Should(HaveLen(1))
		Expect(labels()).NotTo(HaveKey(v1alpha1.LabelBeforeReboot))
	})

	It("remove answers and nothing else, and report invalid answers (behaviour 51)", func() {
		f = makeFleet(1)
		name, others := f.nodes[0], `{"csi.example.com":"volumes of n1"}`
		f.annotate(name, before, others)
		f.policy("workers", hooks)
		f.need(name)
		Eventually(labels).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		Eventually(f.condition).WithArguments(name, v1alpha1.NodeRebootPermitted).Should(And(Not(BeNil()), HaveField("Message",
			ContainSubstring(before+` (is "{\"csi.example.com\":\"volumes of n1\"}"; valid answers are "true"`))))
		Expect(annotations()).To(HaveKeyWithValue(before, others), "the manager has not asked for it")
		f.annotate(name, v1alpha1.AnnotationPaused, "true")
		Eventually(labels).ShouldNot(HaveKey(v1alpha1.LabelBeforeReboot))
		Expect(annotations()).To(HaveKeyWithValue(before, others), "it is not removed at the end of the phase either")

		By("going on with an answer in its place")
		f.annotate(name, v1alpha1.AnnotationPaused, nil)
		Eventually(labels).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		f.annotate(name, before, "true")
		Eventually(f.granted).Should(HaveLen(1))
		Expect(annotations()).NotTo(HaveKey(before))
	})

	It("give the slot back when a before-hook refuses", func() {
		name, p := asked()
		f.annotate(name, before, "failed: no space left")
		Eventually(f.reason).WithArguments(name).Should(Equal("False BackingOff"))
		Expect(f.condition(name, v1alpha1.NodeRebootPermitted).Message).To(
			HavePrefix("the last attempt failed (HookFailed): a hook refused: " + before + ": failed: no space left; the next attempt is due "))
		Expect(policyStatus(p).Grants).To(BeEmpty())
		Eventually(failures).WithArguments(p.Name).Should(Equal(map[string]float64{"UpdateStaged hook_failed": 1}))
		Expect(labels()).NotTo(HaveKey(v1alpha1.LabelBeforeReboot))
		Eventually(reasonsOf).WithArguments(name).Should(ContainElements("HookFailed", "GrantCancelled"))
	})

	It("leave nothing on a node whose grant could never be written", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		p := f.policy("workers", hooks)
		Eventually(func() int32 { return policyStatus(p).Nodes.Selected }).Should(BeEquivalentTo(1))
		withdrawn := protocol.HookPhase{Seq: 1, Policy: "gone", BootID: f.get(name).Status.NodeInfo.BootID, Stage: v1alpha1.HooksBefore, At: metav1.Now(), Hooks: []v1alpha1.AnnotationKey{before}}
		f.patch(name, map[string]any{"metadata": map[string]any{
			"labels":      map[string]any{v1alpha1.LabelBeforeReboot: "true"},
			"annotations": map[string]any{v1alpha1.AnnotationHooks: withdrawn.String(), before: "true"},
		}})
		Eventually(labels).ShouldNot(HaveKey(v1alpha1.LabelBeforeReboot))
		Expect(annotations()).NotTo(Or(HaveKey(v1alpha1.AnnotationHooks), HaveKey(before)))
	})

	It("keep the node cordoned, and its slot, when an after-hook does not answer in time (behaviour 52)", func() {
		name, p := asked()
		f.annotate(name, before, "true")
		Eventually(f.granted).Should(HaveLen(1))
		f.reboot(name)
		Eventually(labels).Should(HaveKey(v1alpha1.LabelAfterReboot))
		f.passes(name, 2*time.Hour)
		Eventually(f.reason).WithArguments(name).Should(Equal("True HookTimedOut"))
		Eventually(reasonsOf).WithArguments(name).Should(ContainElement("HookTimedOut"))
		Eventually(failures).WithArguments(p.Name).Should(Equal(map[string]float64{"UpdateStaged hook_failed": 1}))
		Expect(f.get(name).Spec.Unschedulable).To(BeTrue())
		Expect(policyStatus(p).Grants).To(HaveLen(1))
		f.annotate(name, after, "true")
		f.finishes(name)
	})
})

// hookPhase returns the current phase of hooks of the node.
func hookPhase(f *fleet, name string) protocol.HookPhase {
	h, err := protocol.ParseHookPhase(f.get(name).Annotations)
	Expect(err).NotTo(HaveOccurred())
	if h == nil {
		return protocol.HookPhase{}
	}
	return *h
}
