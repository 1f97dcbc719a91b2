package main

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Engines by name", func() {
	message := messageOf(v1alpha1.NodeRebootRequired)

	It("detect SUSE's file too, and those that are named in place of both (behaviour 12)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		run := filepath.Join(m.Root, "run")
		Expect(os.Mkdir(run, 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(run, "reboot-needed"), []byte("reboot"), 0o600)).To(Succeed())
		m.start(ctx)
		m.shows(ctx, message, ContainSubstring("/run/reboot-needed exists on the host."))
		m.kill()
		m.start(ctx, "--sentinel-file=/run/please")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(os.WriteFile(filepath.Join(run, "please"), nil, 0o600)).To(Succeed())
		m.shows(ctx, message, ContainSubstring("/run/please exists on the host."))
	})

	It("detect an update from rpm-ostree's daemon that comes back after it left as idle (behaviour 11)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		ostree, err := hosttest.InstallRPMOSTree(m.Bus, hosttest.Deployment{Version: "40.1", Booted: true})
		Expect(err).NotTo(HaveOccurred())
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Eventually(ostree.Exit).Should(BeTrue())
		Expect(ostree.Start()).To(Succeed())
		Expect(ostree.Stage("40.2")).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(message(m.node(ctx))).To(ContainSubstring("version 40.2"))
	})

	It("compare kernels where that is asked for", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		boot := filepath.Join(m.Root, "boot")
		Expect(os.Mkdir(boot, 0o755)).To(Succeed())
		running, err := os.ReadFile(kernelRelease)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(boot, "vmlinuz-"+strings.TrimSpace(string(running))), nil, 0o600)).To(Succeed())
		m.start(ctx, "--engines=auto,kernel")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(message(m.node(ctx))).To(And(ContainSubstring("no newer one"), HaveSuffix("by update-engine, kernel.")))
	})
})
