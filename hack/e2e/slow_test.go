package e2e_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// slowPod is a pod that takes a quarter of an hour to end, unless it gets a second signal.
const slowPod = `
apiVersion: v1
kind: Namespace
metadata: {name: slow}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: slow, namespace: slow}
spec:
  selector: {matchLabels: {app: slow}}
  template:
    metadata: {labels: {app: slow}}
    spec:
      nodeSelector: {kubernetes.io/hostname: %s}
      terminationGracePeriodSeconds: 900
      containers: [{name: slow, image: "localhost/idle:1", args: [15m]}]
`

// drainsSlowly stages an update on a machine, and waits until its drain waits only for such a pod.
// A soft reboot ends pods regardless of their budgets, so all pods with one must be gone by then.
func drainsSlowly(ctx context.Context, s *site, node string) (*witness, protocol.Progress) {
	GinkgoHelper()
	Expect(s.cluster.ApplyManifest(ctx, fmt.Appendf(nil, slowPod, node))).To(Succeed())
	s.eventually(ctx, "a slow pod runs on "+node, func(g Gomega) {
		g.Expect(s.pods(ctx, g, "slow")).To(And(HaveLen(1), HaveEach(Satisfy(isReady))))
	})
	w := witnessed(s)
	s.logf("update_engine installs an update on %s", node)
	s.installUpdate(ctx, s.machine(node))
	s.eventually(ctx, "the drain waits for nothing but a pod that takes its time", func(g Gomega) {
		g.Expect(s.pods(ctx, g, "slow")).To(ContainElement(HaveField("DeletionTimestamp", Not(BeNil()))))
		g.Expect(s.pods(ctx, g, "shop")).To(HaveEach(HaveField("Spec.NodeName", Not(Equal(node)))))
	})
	return w, draining(ctx, s, node)
}

// draining returns the progress of an agent that is draining.
func draining(ctx context.Context, s *site, name string) protocol.Progress {
	GinkgoHelper()
	node := s.node(ctx, name)
	Expect(node.Spec.Unschedulable).To(BeTrue())
	progress, err := protocol.ParseProgress(node.Annotations)
	Expect(err).NotTo(HaveOccurred())
	Expect(progress).NotTo(BeNil())
	Expect(progress.Phase).To(Equal(protocol.PhaseDraining))
	Expect(protocol.ParseGrant(node.Annotations)).To(And(HaveField("Seq", progress.Seq), HaveField("State", protocol.GrantActive)))
	Expect(s.policyStatus(ctx, Default).Grants).To(ConsistOf(And(HaveField("Node", name), HaveField("Seq", progress.Seq))))
	return *progress
}
