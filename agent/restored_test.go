package main

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A machine that is restored to a snapshot of the boot before its reboot", func() {
	grantIs := func(state string) func(*corev1.Node) {
		return func(node *corev1.Node) {
			node.Annotations[v1alpha1.AnnotationGrant] = strings.Replace(node.Annotations[v1alpha1.AnnotationGrant], "Active", state, 1)
		}
	}
	DescribeTable("is not rebooted because of the old progress", func(ctx SpecContext, since func(*corev1.Node)) {
		m := needing(ctx, patient)
		snapshot := m.BootID()
		m.rebootsByLogind(ctx)
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
		m.kill()
		m.change(ctx, func(node *corev1.Node) {
			node.Spec.Unschedulable = false
			since(node)
		})

		Expect(m.Restore(m.node(ctx))).To(Equal(snapshot))
		m.start(ctx)
		m.looksAgain(ctx)
		m.passes(ctx, time.Minute)
		Expect(m.Logind.Reboots()).To(Equal(1))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
	},
		Entry("under a grant that is finished", grantIs("Finished")),
		Entry("under a grant that was cancelled", grantIs("Cancelled")),
		Entry("under a grant of a later number", func(node *corev1.Node) {
			node.Annotations[v1alpha1.AnnotationGrant] = strings.Replace(node.Annotations[v1alpha1.AnnotationGrant], `"seq":1`, `"seq":2`, 1)
		}),
		Entry("without a grant", func(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationGrant) }),
	)

	It("is not rebooted while its kubelet still reports the boot after it", func(ctx SpecContext) {
		m := needing(ctx, patient)
		snapshot := m.BootID()
		m.rebootsByLogind(ctx)
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
		m.kill()
		Expect(m.Restore(m.node(ctx))).To(Equal(snapshot))
		reads := func() int { return len(m.requests.Matching(http.MethodGet, "/nodes/"+m.Name)) }
		before := reads()
		m.start(ctx)
		Eventually(reads).Should(BeNumerically(">", before+2), "it asks the API server before it calls")
		Expect(m.Logind.Reboots()).To(Equal(1))
	})
})
