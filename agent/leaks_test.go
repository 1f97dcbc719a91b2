package main

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
)

// measured returns a machine whose agent runs in this process without logs, a list of its requests,
// or pauses between requests.
func measured(ctx context.Context, spec v1alpha1.RebootPolicySpec) *machine {
	GinkgoHelper()
	logs.Quiet.Store(true)
	DeferCleanup(func() { logs.Quiet.Store(false) })
	m := newMachine(ctx, spec)
	m.tune = func(config *rest.Config) {
		config.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
		m.requests.Forget(true)
	}
	return m
}

// attempts makes one process of the agent go through all phases: the need, an inhibitor that comes
// and goes, and a drain that a budget blocks and whose grant is cancelled. After that come a
// complete drain, the point of no return, and a boot. The boot does not end the process, as if the
// host had been frozen while it was down.
type attempts struct {
	*machine

	seq int64
}

func (a *attempts) cycle(ctx context.Context) {
	GinkgoHelper()
	a.pod(ctx, "protected", a.owner("ReplicaSet"))
	a.setBudget(ctx, 0)
	version := fmt.Sprintf("5000.%d.0", a.Boots())
	Expect(a.Engine.Emit(hosttest.NeedReboot(version))).To(Succeed())
	a.shows(ctx, needOf, Equal("True UpdateStaged"))
	a.Logind.SetInhibitors(hosttest.BlockShutdown("backup", "not now"))
	a.shows(ctx, blockerOf, HavePrefix(string(v1alpha1.ReasonInhibited)))
	a.Logind.SetInhibitors()
	a.shows(ctx, blockerOf, BeEmpty())

	a.seq++
	a.grant(ctx, a.seq, protocol.GrantActive)
	a.shows(ctx, phaseOf, Equal(fmt.Sprintf("%d Draining cordoned", a.seq)))
	a.grant(ctx, a.seq, protocol.GrantCancelled)
	a.shows(ctx, phaseOf, Equal(fmt.Sprintf("%d Aborted Cancelled", a.seq)))

	a.allowEvictions(ctx)
	a.seq++
	reboots := a.Logind.Reboots()
	a.grant(ctx, a.seq, protocol.GrantActive)
	a.shows(ctx, phaseOf, Equal(fmt.Sprintf("%d Rebooting cordoned", a.seq)))
	Eventually(a.Logind.Reboots).Should(Equal(reboots + 1))

	Expect(a.Install(version)).To(Succeed())
	Expect(a.Freeze()).To(Succeed())
	Expect(a.Engine.Emit(hosttest.Idle())).To(Succeed())
	a.shows(ctx, needOf, Equal("False UpToDate"))
	a.shows(ctx, conditionOf(corev1.NodeMaintenanceInProgress), Equal("False RebootSucceeded"))
	a.finish(ctx)
}

// finish does the part of the manager and the kubelet.
func (a *attempts) finish(ctx context.Context) {
	GinkgoHelper()
	a.heartbeat(ctx)
	a.change(ctx, func(node *corev1.Node) { node.Spec.Unschedulable = false })
}

var _ = Describe("An agent that goes through many reboots", func() {
	It("leaks no goroutines, connections, watches or memory", func(ctx SpecContext) {
		m := measured(ctx, v1alpha1.RebootPolicySpec{})
		m.Logind.AcceptAndDoNothing(true)
		m.start(ctx)
		m.tightBudget(ctx)
		a := &attempts{machine: m}
		footprint.Cycles(GinkgoT(), "agent", 10, func() { a.cycle(ctx) })
	})
})
