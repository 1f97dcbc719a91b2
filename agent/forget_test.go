package main

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("An administrator's word against a need", func() {
	message := messageOf(v1alpha1.NodeRebootRequired)
	gone := func(node *corev1.Node) bool {
		_, found := node.Annotations[v1alpha1.AnnotationForgetNeed]
		return !found
	}
	// told waits until the agent has removed the word.
	told := func(ctx SpecContext, m *machine, reason, note string) {
		GinkgoHelper()
		Eventually(func() bool { return gone(m.node(ctx)) }).Should(BeTrue())
		Eventually(func() []string { return m.notesOf(ctx, reason) }).Should(ContainElement(note))
	}

	It("drops one that was only heard by broadcast, in the write that removes the word", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(m.bus.SendNeedReboot()).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		written := len(m.requests.writes())
		m.annotate(ctx, v1alpha1.AnnotationForgetNeed, "it was a test")
		told(ctx, m, v1alpha1.EventNeedForgotten, `forgot the need that update-engine had heard by broadcast alone: "it was a test"`)
		Expect(needOf(m.node(ctx))).To(Equal("False UpToDate"))
		Expect(m.node(ctx).Labels).NotTo(HaveKey(v1alpha1.LabelRebootRequired))
		Expect(m.requests.writes()).To(HaveLen(written + 1))

		By("staying dropped for the next process, and hearing the next broadcast")
		m.restart(ctx)
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "a mark")
		m.shows(ctx, needOf, Equal("True Requested"))
		Expect(m.bus.SendNeedReboot()).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
	})

	It("drops one of before the agent's restart, while no engine can be asked", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(m.bus.SendNeedReboot()).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.kill()
		m.engine.Stop()
		m.annotate(ctx, v1alpha1.AnnotationForgetNeed, "")
		m.start(ctx)
		told(ctx, m, v1alpha1.EventNeedForgotten, `forgot the need that update-engine had heard by broadcast alone: ""`)
		Expect(needOf(m.node(ctx))).To(Equal("Unknown EngineUnreachable"))
	})

	It("leaves one that the engine confirms, and says so", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		m.engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		before := message(m.node(ctx))
		m.annotate(ctx, v1alpha1.AnnotationForgetNeed, "not tonight")
		told(ctx, m, v1alpha1.EventNeedConfirmed,
			`the need stays, because update-engine tells it not by broadcast alone; the word against it was "not tonight"`)
		Expect(message(m.node(ctx))).To(Equal(before))
	})

	It("drops the one of two needs that was only heard by broadcast", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		run := filepath.Join(m.root, "run")
		Expect(os.Mkdir(run, 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(run, "reboot-required"), nil, 0o600)).To(Succeed())
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True SentinelPresent"))
		Expect(m.bus.SendNeedReboot()).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.annotate(ctx, v1alpha1.AnnotationForgetNeed, "a test")
		told(ctx, m, v1alpha1.EventNeedForgotten, `forgot the need that update-engine had heard by broadcast alone: "a test"`)
		told(ctx, m, v1alpha1.EventNeedConfirmed, `the need stays, because sentinel tells it not by broadcast alone; the word against it was "a test"`)
		Expect(needOf(m.node(ctx))).To(Equal("True SentinelPresent"))
	})

	It("is removed where there is no need", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.annotate(ctx, v1alpha1.AnnotationForgetNeed, "just in case")
		told(ctx, m, v1alpha1.EventNeedForgotten, `there was no need to forget: "just in case"`)
	})
})
