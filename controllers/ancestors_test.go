package controllers_test

import (
	"context"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("What other operators left on a node", func() {
	// marked marks a node of the fleet and returns how to see what of the marks is there.
	marked := func(ctx context.Context, f *fleet, name string) (left func() ancestorMarks, all ancestorMarks) {
		node := f.get(name)
		before := node.DeepCopy()
		testenv.MarkByAncestors(node)
		Expect(api.Patch(ctx, node, client.MergeFrom(before), client.FieldOwner("update-agent"))).To(Succeed())
		left = func() ancestorMarks { return marksOf(f.get(name)) }
		Expect(left().annotations).To(HaveLen(34))
		return left, left()
	}

	It("is no need for a reboot, and none is granted (behaviour 60)", func(ctx SpecContext) {
		f := makeFleet(2)
		left, all := marked(ctx, f, f.nodes[0])
		p := f.policy("workers", limit(2))
		f.need(f.nodes[1])
		Eventually(f.granted).Should(Equal(f.nodes[1:]), "there was room for both")
		f.reboot(f.nodes[1])
		Eventually(func() int64 { return policyStatus(p).Seq }).Should(Equal(int64(1)))
		Eventually(func() []v1alpha1.LedgerEntry { return policyStatus(p).Grants }).Should(BeEmpty())
		Expect(f.reason(f.nodes[0])).To(BeEmpty())
		Expect(f.condition(f.nodes[0], v1alpha1.NodeRebootRequired)).To(BeNil())
		Expect(f.get(f.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationGrant))
		Expect(left()).To(Equal(all))
	})

	It("does not hold up a reboot that is needed, and outlives it (behaviour 60)", func(ctx SpecContext) {
		f := makeFleet(1)
		left, all := marked(ctx, f, f.nodes[0])
		f.policy("workers", noGrace) // what the grant has set goes with the uncordon
		f.need(f.nodes[0])
		Eventually(f.granted).Should(Equal(f.nodes))
		f.reboot(f.nodes[0])
		Eventually(func() protocol.GrantState { return f.grant(f.nodes[0]).State }).Should(Equal(protocol.GrantFinished))
		Expect(f.get(f.nodes[0]).Spec.Unschedulable).To(BeFalse())
		Expect(left()).To(Equal(all))
	})

	It("does not use up the limit of others (behaviour 60)", func(ctx SpecContext) {
		f := makeFleet(2)
		left, all := marked(ctx, f, f.nodes[0])
		f.policy("workers")
		f.need(f.nodes[1])
		Eventually(f.granted).Should(Equal(f.nodes[1:]), "the marked node is not being rebooted")
		Expect(left()).To(Equal(all))
	})
})

// ancestorMarks are the annotations, labels and taints of a Node that are not this operator's.
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
