package main

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("The lead time of a drain", func() {
	// leading is a machine with a pod, cordoned, whose clock is stopped within a lead time of ten minutes.
	leading := func(ctx SpecContext) *machine {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{Drain: &v1alpha1.Drain{LeadTime: &metav1.Duration{Duration: 10 * time.Minute}}})
		m.held = newHeldClock()
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.pod(ctx, "db", m.owner("ReplicaSet"))
		m.start(ctx)
		m.grant(ctx, 1, protocol.GrantActive)
		m.shows(ctx, messageOf(corev1.NodeDrainInProgress), ContainSubstring("Its pods are asked to leave from "))
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Draining cordoned"))
		return m
	}

	It("is waited for to its end, also by an agent that was killed meanwhile", func(ctx SpecContext) {
		m := leading(ctx)
		m.kill()
		m.held.pass(9 * time.Minute)
		m.start(ctx)
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Draining cordoned"))
		Expect(m.requests.of("/eviction")).To(BeEmpty(), "one minute is left")

		m.held.pass(time.Minute)
		looks(ctx, m)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
		Expect(m.requests.of("/eviction")).NotTo(BeEmpty())
	})

	It("ends with a grant that is taken back, and no pod has left", func(ctx SpecContext) {
		m := leading(ctx)
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.shows(ctx, phaseOf, Equal("1 Aborted Cancelled"))
		m.shows(ctx, conditionOf(corev1.NodeDrainInProgress), Equal("False DrainAborted"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		Expect(m.requests.of("/eviction")).To(BeEmpty())
	})
})
