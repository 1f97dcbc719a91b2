package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

var _ = Describe("Engines that are found", func() {
	message := messageOf(v1alpha1.NodeRebootRequired)

	It("are used as they appear, and shown in the condition and a metric (behaviour 7)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.Engine.Stop()
		m.start(ctx)
		m.shows(ctx, needOf, Equal("Unknown EngineUnreachable"))
		Expect(message(m.node(ctx))).To(And(
			ContainSubstring("looked for update-engine, cos-update-engine, rpm-ostree, bootc, sentinel."), ContainSubstring("--engines")))
		Expect(m.node(ctx).Labels).NotTo(HaveKey(v1alpha1.LabelRebootRequired))
		Expect(m.up()).To(BeEmpty())

		By("hearing one that comes later")
		Expect(m.Engine.Start()).To(Succeed())
		m.shows(ctx, needOf, Equal("False UpToDate"))
		Expect(message(m.node(ctx))).To(HaveSuffix("by update-engine."))
		Expect(m.up()).To(Equal(map[string]float64{"update-engine": 1}))
		_, err := hosttest.StartCOSUpdateEngine(m.Bus, hosttest.COSCurrent)
		Expect(err).NotTo(HaveOccurred())
		m.shows(ctx, message, HaveSuffix("by update-engine, cos-update-engine."))
		Expect(m.up()).To(Equal(map[string]float64{"update-engine": 1, "cos-update-engine": 1}))
	})

	It("give one need for update_engine and the file, and report both (behaviour 12)", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		run := filepath.Join(m.Root, "run")
		Expect(os.Mkdir(run, 0o755)).To(Succeed())
		file := filepath.Join(run, "reboot-required")
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		// Flatcar's postinst does this slightly before update_engine reports the update.
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		m.shows(ctx, needOf, Equal("True SentinelPresent"))
		Expect(m.Engine.Emit(hosttest.NeedReboot("4593.1.0"))).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(message(m.node(ctx))).To(And(
			ContainSubstring("update_engine has installed version 4593.1.0"), ContainSubstring("/run/reboot-required exists")))

		By("needing it as long as one of them does")
		Expect(m.Engine.Emit(hosttest.Idle())).To(Succeed())
		m.shows(ctx, needOf, Equal("True SentinelPresent"))
		Expect(os.Remove(file)).To(Succeed())
		m.shows(ctx, needOf, Equal("False UpToDate"))
	})

	DescribeTable("leave the agent running if everything has the wrong kind (behaviour 7)", func(ctx SpecContext, bus func(path string)) {
		m := newMachine(ctx, patient)
		for _, folder := range []string{"run", "boot", "usr"} {
			Expect(os.WriteFile(filepath.Join(m.Root, folder), nil, 0o600)).To(Succeed())
		}
		path := filepath.Join(GinkgoT().TempDir(), "bus")
		bus(path)
		m.start(ctx, "--dbus-address=unix:path="+path, "--engines=auto,kernel")
		m.shows(ctx, needOf, Equal("Unknown EngineUnreachable"))
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "a request")
		m.shows(ctx, needOf, Equal("True Requested"))
		Expect(m.up()).To(Equal(map[string]float64{"kernel": 0}))
	},
		Entry("a file instead of a bus", func(path string) { Expect(os.WriteFile(path, nil, 0o600)).To(Succeed()) }),
		Entry("a socket that hangs up", func(path string) {
			listener, err := net.Listen("unix", path)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(listener.Close)
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_ = conn.Close()
				}
			}()
		}),
	)
})

var _ = Describe("Engines by name", func() {
	message := messageOf(v1alpha1.NodeRebootRequired)

	It("detect SUSE's file, and files that are named instead (behaviour 12)", func(ctx SpecContext) {
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

	It("compare kernels if --engines names them", func(ctx SpecContext) {
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

var _ = Describe("Driving rpm-ostree", func() {
	// drives returns a host with rpm-ostree, whose transactions are served in a folder of the host.
	drives := func(ctx context.Context) (*machine, *hosttest.RPMOSTree) {
		GinkgoHelper()
		m := newMachine(ctx, patient)
		m.Engine.Stop()
		ostree, err := hosttest.InstallRPMOSTree(m.Bus, hosttest.Deployment{Version: "40.1", Booted: true})
		Expect(err).NotTo(HaveOccurred())
		folder := filepath.Dir(strings.TrimPrefix(m.Bus.Address(), "unix:path="))
		Expect(os.MkdirAll(filepath.Join(m.Root, filepath.Dir(folder)), 0o755)).To(Succeed())
		Expect(os.Symlink(folder, filepath.Join(m.Root, folder))).To(Succeed())
		return m, ostree
	}
	flags := []string{"--rpm-ostree-drive", "--rpm-ostree-drive-period=20ms", "--rpm-ostree-drive-timeout=1h"}

	It("stages an upgrade through the host's transaction socket, and the need is detected (behaviour 11)", func(ctx SpecContext) {
		m, ostree := drives(ctx)
		ostree.OnUpgrade(func(tx *hosttest.Transaction) error {
			tx.Percent("Receiving objects", 50)
			return ostree.Stage("40.2")
		})
		m.start(ctx, flags...)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Expect(messageOf(v1alpha1.NodeRebootRequired)(m.node(ctx))).To(And(
			ContainSubstring("rpm-ostree has staged version 40.2 ("+hosttest.Commit("40.2")[:12]+")"), HaveSuffix("by rpm-ostree (asks for version 40.2).")))
	})

	It("does nothing while the node is paused", func(ctx SpecContext) {
		m, ostree := drives(ctx)
		m.annotate(ctx, v1alpha1.AnnotationPaused, "true")
		m.start(ctx, flags...)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		// Ten rounds would have begun by now.
		Consistently(ostree.Calls).WithTimeout(200 * time.Millisecond).Should(BeEmpty())
		m.annotate(ctx, v1alpha1.AnnotationPaused, "false")
		Eventually(ostree.Calls).Should(ContainElement("Upgrade"))
	})

	It("leaves it to the host's own timer if that stages updates, and reports that once", func(ctx SpecContext) {
		m, ostree := drives(ctx)
		Expect(ostree.SetAutomaticUpdatePolicy("stage")).To(Succeed())
		m.start(ctx, flags...)
		notes := func() []string { return m.notesOf(ctx, v1alpha1.EventUpgradesLeftToHost) }
		Eventually(notes).Should(ConsistOf(ContainSubstring(`AutomaticUpdatePolicy is "stage"`)))
		// Events with the same reason about one version of a Node become a series with the text of
		// the first.
		m.looksAgain(ctx)
		reads := ostree.Reads()
		Eventually(ostree.Reads).Should(BeNumerically(">", reads+20), "several more rounds")
		Expect(ostree.SetAutomaticUpdatePolicy("apply")).To(Succeed())
		Eventually(notes).Should(ConsistOf(ContainSubstring(`"stage"`), ContainSubstring(`"apply"`)))
		Expect(ostree.Calls()).To(BeEmpty())
	})
})
