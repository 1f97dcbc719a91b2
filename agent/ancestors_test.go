package main

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("What other operators left on the Node", func() {
	// foreign returns the annotations, labels and taints that do not belong to this operator, in
	// one map.
	foreign := func(ctx context.Context, m *machine) map[string]string {
		node := m.node(ctx)
		all := map[string]string{}
		for kind, keys := range map[string]map[string]string{"annotation ": node.Annotations, "label ": node.Labels} {
			for key, value := range keys {
				if !strings.HasPrefix(key, "reboot-operator.io/") {
					all[kind+key] = value
				}
			}
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key != corev1.TaintNodeUnschedulable { // added by every cordon
				all["taint "+taint.Key] = string(taint.Effect)
			}
		}
		return all
	}

	It("neither causes, permits nor blocks a reboot, and is left alone (behaviour 60)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.change(ctx, testenv.MarkByAncestors)
		found := foreign(ctx, m)
		Expect(len(found)).To(BeNumerically(">", 50))

		By("the agent reports that the host is up to date")
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "a request")
		m.shows(ctx, needOf, Equal("True Requested"))
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		Expect(m.Logind.Reboots()).To(BeZero())
		Expect(foreign(ctx, m)).To(Equal(found))

		By("rebooting once the engine asks for it and the manager grants it")
		Expect(m.Engine.Emit(hosttest.NeedReboot("4593.1.0"))).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.rebootsByLogind(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Rebooting cordoned"))
		Expect(m.Logind.Reboots()).To(Equal(1))
		Expect(foreign(ctx, m)).To(Equal(found))
	})
})
