package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

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
	begin := func(annotate func(name string)) (name string, p *v1alpha1.RebootPolicy) {
		f = makeFleet(1)
		name = f.nodes[0]
		annotate(name)
		p = f.policy("workers")
		f.need(name)
		Eventually(f.granted).Should(HaveLen(1))
		return name, p
	}
	nothing := func(string) {}

	It("are kept off from the grant until the node is back, in the writes that are made anyway", func() {
		name, _ := begin(nothing)
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
		name, _ := begin(nothing)
		f.annotate(name, v1alpha1.AnnotationPaused, "true")
		Eventually(f.granted).Should(BeEmpty())
		Expect(annotations(name)).To(BeEmpty())
	})

	It("may have it back when the agent has given up", func() {
		name, p := begin(nothing)
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
