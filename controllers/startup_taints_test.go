package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A taint that comes with the reboot", func() {
	var f *fleet
	taint := func(name string, keys ...string) {
		GinkgoHelper()
		node := f.get(name)
		node.Spec.Taints = nil
		for _, key := range keys {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		Expect(api.Update(context.Background(), node)).To(Succeed())
	}

	It("keeps the slot until it is removed, while a permanent taint of the pool does not", func() {
		f = makeFleet(2)
		for _, name := range f.nodes {
			taint(name, "pool")
		}
		f.policy("workers")
		f.need(f.nodes...)
		first := f.next()
		f.start(first)
		f.commit(first)
		taint(first, "pool", "node.cilium.io/agent-not-ready")
		f.boot(first, 2)
		Eventually(hookPhase).WithArguments(f, first).Should(HaveField("TakesPods", HaveValue(BeFalse())))
		Consistently(f.granted).Should(Equal([]string{first}), "the other node waits, although the first one is Ready")

		taint(first, "pool")
		f.finishes(first)
		Expect(f.get(first).Annotations).NotTo(HaveKey(v1alpha1.AnnotationHooks))
		Expect(f.get(first).Spec.Unschedulable).To(BeFalse())
		Expect(f.next()).NotTo(Equal(first))
	})

	It("fails the reboot after reboot.timeout, until somebody puts the node back in service", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		f.policy("workers")
		f.need(name)
		Expect(f.next()).To(Equal(name))
		f.start(name)
		f.commit(name)
		taint(name, "broken")
		f.boot(name, 2)
		Eventually(hookPhase).WithArguments(f, name).Should(HaveField("TakesPods", HaveValue(BeFalse())))
		f.passes(name, 31*time.Minute)
		f.show("True StartupTaint", name)
		Expect(f.condition(name, v1alpha1.NodeRebootPermitted).Message).To(ContainSubstring("taint broken:NoSchedule has kept pods off"))
		Eventually(reasonsOf).WithArguments(name).Should(ContainElement("StartupTaint"))
		Expect(f.condition(name, v1alpha1.NodeRebootFailed)).To(BeNil(), "the machine is up")

		f.patch(name, map[string]any{"spec": map[string]any{"unschedulable": false}})
		f.finishes(name)
	})
})
