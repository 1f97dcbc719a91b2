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

	It("detect the host's reboot-required file, and lose the need with it (behaviour 12)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		run := filepath.Join(m.Root, "run")
		Expect(os.Mkdir(run, 0o755)).To(Succeed())
		m.start(ctx, "--engines=sentinel")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(os.WriteFile(filepath.Join(run, "reboot-required.pkgs"), []byte("libc6\nlinux-image-6.1.0-10-amd64\nlibc6\n\xff\n"), 0o600)).To(Succeed())
		file := filepath.Join(run, "reboot-required")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		m.shows(ctx, needOf, Equal("True SentinelPresent"))
		Expect(message(m.node(ctx))).To(HavePrefix("/run/reboot-required exists on the host, because of libc6, linux-image-6.1.0-10-amd64. "))
		Expect(os.Remove(file)).To(Succeed())
		m.shows(ctx, needOf, Equal("False UpToDate"))
	})

	It("detect SUSE's file too, and those that are named in place of both (behaviour 12)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
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

	It("detect what bootc has staged, whether it is locked, and when it is gone", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		deployment, err := os.ReadFile(filepath.Join("engine", "bootc", "testdata", "staged-deployment"))
		Expect(err).NotTo(HaveOccurred())
		for _, folder := range []string{"run/ostree", "usr/bin"} {
			Expect(os.MkdirAll(filepath.Join(m.Root, folder), 0o755)).To(Succeed())
		}
		for _, file := range []string{"run/ostree-booted", "usr/bin/bootc"} {
			Expect(os.WriteFile(filepath.Join(m.Root, file), nil, 0o600)).To(Succeed())
		}
		m.start(ctx)
		m.shows(ctx, message, And(ContainSubstring("bootc has staged no deployment."), HaveSuffix("by update-engine, bootc, sentinel.")))
		staged, locked := filepath.Join(m.Root, "run", "ostree", "staged-deployment"), filepath.Join(m.Root, "run", "ostree", "staged-deployment-locked")
		Expect(os.WriteFile(locked, nil, 0o600)).To(Succeed())
		Expect(os.WriteFile(staged, deployment, 0o600)).To(Succeed())
		m.shows(ctx, message, ContainSubstring("which is locked"))
		Expect(needOf(m.node(ctx))).To(Equal("False UpToDate"))
		Expect(os.Remove(locked)).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(message(m.node(ctx))).To(ContainSubstring("bootc has staged c2c2c2c2c2c2; it runs after a reboot."))
		Expect(os.Remove(staged)).To(Succeed())
		m.shows(ctx, needOf, Equal("False UpToDate"))
	})

	It("detect COS' update_engine (behaviour 9)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		cos, err := hosttest.StartCOSUpdateEngine(m.Bus, hosttest.COSCurrent)
		Expect(err).NotTo(HaveOccurred())
		m.start(ctx, "--engines=cos-update-engine")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(cos.Emit(hosttest.COSNeedReboot("17800.147.54"))).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(message(m.node(ctx))).To(ContainSubstring("17800.147.54"))
		Expect(cos.Emit(hosttest.COSStatus{Op: hosttest.COSError})).To(Succeed())
		m.shows(ctx, message, HavePrefix("COS update_engine reports an error (ERROR)"))
		Expect(cos.Emit(hosttest.COSStatus{Op: hosttest.COSUpdatedButDeferred, Version: "17800.147.54"})).To(Succeed())
		m.shows(ctx, message, HavePrefix("COS update_engine has deferred version 17800.147.54 (UPDATED_BUT_DEFERRED)"))
		Expect(needOf(m.node(ctx))).To(Equal("False UpToDate"))
		Expect(cos.DrivingCalls()).To(BeZero())
	})

	It("detect what rpm-ostree boots next: neither metadata nor a locked deployment (behaviour 11)", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		booted := hosttest.Deployment{Version: "40.1", Booted: true}
		ostree, err := hosttest.InstallRPMOSTree(m.Bus, booted)
		Expect(err).NotTo(HaveOccurred())
		m.start(ctx, "--engines=rpm-ostree")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(ostree.SetCachedUpdate("40.2")).To(Succeed())
		locked := hosttest.Deployment{Version: "40.2", Staged: true, Locked: true}
		Expect(ostree.SetDeployments(locked, booted)).To(Succeed())
		m.shows(ctx, message, ContainSubstring("which is locked"))
		Expect(needOf(m.node(ctx))).To(Equal("False UpToDate"))

		By("hearing it from the daemon that comes back after it left as idle")
		Expect(ostree.Exit()).To(BeTrue())
		locked.Locked = false
		Expect(ostree.SetDeployments(locked, booted)).To(Succeed())
		Expect(ostree.Start()).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(message(m.node(ctx))).To(ContainSubstring("version 40.2 (" + hosttest.Commit("40.2")[:12] + ")"))
	})

	It("compare kernels where that is asked for", func(ctx SpecContext) {
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
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
