package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// noGrace is a policy under which autoscalers may have a node back with its uncordon.
func noGrace(s *v1alpha1.RebootPolicySpec) {
	s.Autoscaler = &v1alpha1.Autoscaler{Grace: &metav1.Duration{}}
}

var _ = Describe("Autoscalers", func() {
	const scaleDown, disrupt = v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt
	var f *fleet
	annotations := func(name string) map[string]string {
		found := map[string]string{}
		for _, key := range []string{scaleDown, disrupt} {
			if value, there := f.get(name).Annotations[key]; there {
				found[key] = value
			}
		}
		return found
	}
	both := map[string]string{scaleDown: "true", disrupt: "true"}
	begin := func(annotate func(name string), edit ...func(*v1alpha1.RebootPolicySpec)) (name string, p *v1alpha1.RebootPolicy) {
		f = makeFleet(1)
		name = f.nodes[0]
		annotate(name)
		p = f.policy("workers", edit...)
		f.need(name)
		Eventually(f.granted).Should(HaveLen(1))
		return name, p
	}
	nothing := func(string) {}

	It("are kept off until the grace after the reboot has passed", func() {
		name, p := begin(nothing)
		f.reboot(name)
		Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
		Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
		Expect(annotations(name)).To(Equal(both))
		Expect(f.grant(name).Annotations).To(ConsistOf(scaleDown, disrupt))
		now.forward(16 * time.Minute)
		f.edit(p, func(s *v1alpha1.RebootPolicySpec) { s.Settle = &metav1.Duration{Duration: time.Second} }) // wakes the manager
		Eventually(annotations).WithArguments(name).Should(BeEmpty())
		Expect(f.grant(name).Annotations).To(BeEmpty())
	})

	It("are kept off by the next grant, which begins within the grace", func() {
		name, _ := begin(nothing)
		f.reboot(name)
		Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
		f.need(name)
		Eventually(func() int64 { return f.grant(name).Seq }).Should(BeEquivalentTo(2))
		Expect(f.grant(name).Annotations).To(ConsistOf(scaleDown, disrupt))
		Expect(annotations(name)).To(Equal(both))
	})

	It("may have the node back at once when no policy governs it any more", func() {
		name, p := begin(nothing)
		f.reboot(name)
		Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
		Expect(api.Delete(context.Background(), p)).To(Succeed())
		Eventually(annotations).WithArguments(name).Should(BeEmpty())
		Eventually(func() bool {
			return apierrors.IsNotFound(api.Get(context.Background(), client.ObjectKeyFromObject(p), p))
		}).Should(BeTrue())
	})

	It("are kept off from the grant until the node is back, in the writes that are made anyway, without a grace", func() {
		name, _ := begin(nothing, noGrace)
		Expect(annotations(name)).To(Equal(both), "grant and annotations are one write")
		f.start(name)
		f.commit(name)
		Expect(annotations(name)).To(Equal(both))
		f.boot(name, 2)
		Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
		Expect(annotations(name)).To(BeEmpty(), "the end of the grant removes them in one write")
	})

	It("find an administrator's own annotation afterwards as it was before, and one that was set meanwhile", func() {
		name, _ := begin(func(name string) { f.annotate(name, scaleDown, "true") })
		Expect(f.grant(name).Annotations).To(Equal([]string{disrupt}))
		f.start(name)
		f.annotate(name, disrupt, "because I say so")
		f.commit(name)
		f.boot(name, 2)
		Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
		Expect(annotations(name)).To(Equal(map[string]string{scaleDown: "true", disrupt: "because I say so"}))
	})

	It("may have the node back when the grant is taken back", func() {
		name, _ := begin(nothing, noGrace)
		f.annotate(name, v1alpha1.AnnotationPaused, "true")
		Eventually(f.granted).Should(BeEmpty())
		Expect(annotations(name)).To(BeEmpty())
	})

	It("may have it back when the agent has given up", func() {
		name, p := begin(nothing, noGrace)
		f.start(name)
		f.patch(name, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationProgress: f.progress(name, protocol.PhaseAborted,
				func(p *protocol.Progress) { p.Failures, p.Reason = 1, v1alpha1.ReasonDrainTimedOut })}},
			"spec": map[string]any{"unschedulable": nil},
		})
		Eventually(annotations).WithArguments(name).Should(BeEmpty())
		Expect(f.grant(name).Annotations).To(BeEmpty())
		Expect(policyStatus(p).Grants).To(BeEmpty())
	})

	It("that are deleting a node have it, and it uses up the limit", func() {
		name, p := begin(nothing)
		f.taint(name, "ToBeDeletedByClusterAutoscaler")
		Eventually(f.granted).Should(BeEmpty())
		Eventually(f.reason).WithArguments(name).Should(Equal("False NodeUnavailable"))
		Expect(f.condition(name, v1alpha1.NodeRebootPermitted).Message).To(Equal("cluster-autoscaler is deleting the node"))
		Eventually(func() int32 { return policyStatus(p).Nodes.Unavailable }).Should(BeEquivalentTo(1))
	})
})
