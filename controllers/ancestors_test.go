package controllers_test

import (
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("What other operators left on a node", func() {
	It("neither causes nor delays a reboot, does not count against the limit, and is left alone (behaviour 60)", func(ctx SpecContext) {
		f := makeFleet(2)
		marked, other := f.nodes[0], f.nodes[1]
		node := f.get(marked)
		before := node.DeepCopy()
		testenv.MarkByAncestors(node)
		Expect(api.Patch(ctx, node, client.MergeFrom(before), client.FieldOwner("update-agent"))).To(Succeed())
		marks := func() ancestorMarks { return marksOf(f.get(marked)) }
		all := marks()
		Expect(all.annotations).To(HaveLen(34))
		p := f.policy("workers", noGrace) // the marks of the grant are removed with the uncordon
		f.need(other)
		Eventually(f.granted).Should(Equal([]string{other}), "the marked node is not being rebooted")
		f.reboot(other)
		Eventually(grantsOf).WithArguments(p).Should(BeEmpty())
		Expect(policyStatus(p).Seq).To(Equal(int64(1)), "there was room for the marked one by then")
		Expect(f.reason(marked)).To(BeEmpty())
		Expect(f.condition(marked, v1alpha1.NodeRebootRequired)).To(BeNil())
		Expect(f.get(marked).Annotations).NotTo(HaveKey(v1alpha1.AnnotationGrant))
		Expect(marks()).To(Equal(all))

		By("needing one")
		f.need(marked)
		Eventually(f.granted).Should(Equal([]string{marked}))
		f.reboot(marked)
		f.finishes(marked)
		Expect(f.get(marked).Spec.Unschedulable).To(BeFalse())
		Expect(marks()).To(Equal(all))
	})
})

// ancestorMarks are the annotations, labels and taints of a Node that do not belong to this
// operator.
type ancestorMarks struct {
	annotations, labels map[string]string
	taints              []corev1.Taint
}

func marksOf(node *corev1.Node) ancestorMarks {
	ours := func(key, _ string) bool { return strings.HasPrefix(key, "reboot-operator.io/") || key == poolLabel }
	maps.DeleteFunc(node.Annotations, ours)
	maps.DeleteFunc(node.Labels, ours)
	return ancestorMarks{annotations: node.Annotations, labels: node.Labels, taints: node.Spec.Taints}
}
