package main

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Engines by name", func() {
	message := messageOf(v1alpha1.NodeRebootRequired)

	It("hear the host's reboot-required file, and lose the need with it (behaviour 12)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		run := filepath.Join(m.root, "run")
		Expect(os.Mkdir(run, 0o755)).To(Succeed())
		m.start(ctx, "--engines=sentinel")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		file := filepath.Join(run, "reboot-required")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		m.shows(ctx, needOf, Equal("True SentinelPresent"))
		Expect(os.Remove(file)).To(Succeed())
		m.shows(ctx, needOf, Equal("False UpToDate"))
	})

	It("hear COS' update_engine (behaviour 9)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		cos, err := m.bus.StartCOSUpdateEngine(hosttest.COSCurrent)
		Expect(err).NotTo(HaveOccurred())
		m.start(ctx, "--engines=cos-update-engine")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(cos.Emit(hosttest.COSNeedReboot("17800.147.54"))).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(message(m.node(ctx))).To(ContainSubstring("17800.147.54"))
	})

	It("make one need of two reasons on one host, both told", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		run := filepath.Join(m.root, "run")
		Expect(os.Mkdir(run, 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(run, "reboot-required"), nil, 0o600)).To(Succeed())
		m.engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx, "--engines=update-engine,sentinel")
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(message(m.node(ctx))).To(And(ContainSubstring("4593.1.0"), ContainSubstring("reboot-required")))
	})

	It("say so where rpm-ostree is not on the host, and ask for nothing (behaviour 25)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		m.start(ctx, "--engines=rpm-ostree")
		m.shows(ctx, needOf, Equal("Unknown EngineUnreachable"))
	})
})
