package main

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Volumes", func() {
	inUse := func(ctx SpecContext, m *machine, volumes ...corev1.UniqueVolumeName) {
		GinkgoHelper()
		node := m.node(ctx)
		before := node.DeepCopy()
		node.Status.VolumesInUse = volumes
		Expect(api.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	}

	It("are waited for after the drain, until the kubelet has let go (behaviour 42)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{Drain: &v1alpha1.Drain{
			VolumeDetachTimeout: &metav1.Duration{Duration: time.Hour},
		}})
		inUse(ctx, m, "kubernetes.io/csi/disk^1")
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(m.bus.SendNeedReboot()).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.grant(ctx, 1, v1alpha1.GrantActive)
		m.shows(ctx, phaseOf, Equal("1 Draining cordoned"))
		Consistently(func() string { return phaseOf(m.node(ctx)) }, "1s").Should(Equal("1 Draining cordoned"))
		Expect(m.logind.Reboots()).To(BeZero())
		inUse(ctx, m)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
	})

	It("hold the reboot up for volumeDetachTimeout at most (behaviour 42)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{Drain: &v1alpha1.Drain{
			VolumeDetachTimeout: &metav1.Duration{Duration: time.Second},
		}})
		inUse(ctx, m, "kubernetes.io/csi/disk^1")
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(m.bus.SendNeedReboot()).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.grant(ctx, 1, v1alpha1.GrantActive)
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
	})
})
