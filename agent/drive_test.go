package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Driving rpm-ostree", func() {
	// drives is a host with rpm-ostree, whose transactions are served in a folder of the host.
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

	It("stages an upgrade through the host's folder of transactions, and the need is detected (behaviour 11)", func(ctx SpecContext) {
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

	It("begins nothing while the node is paused", func(ctx SpecContext) {
		m, ostree := drives(ctx)
		m.annotate(ctx, v1alpha1.AnnotationPaused, "true")
		m.start(ctx, flags...)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		// Ten rounds would have begun by now.
		Consistently(ostree.Calls).WithTimeout(200 * time.Millisecond).Should(BeEmpty())
		m.annotate(ctx, v1alpha1.AnnotationPaused, "false")
		Eventually(ostree.Calls).Should(ContainElement("Upgrade"))
	})

	It("leaves it to the host's own timer where that stages updates, and reports it once", func(ctx SpecContext) {
		m, ostree := drives(ctx)
		Expect(ostree.SetAutomaticUpdatePolicy("stage")).To(Succeed())
		m.start(ctx, flags...)
		notes := func() []string { return m.notesOf(ctx, v1alpha1.EventUpgradesLeftToHost) }
		Eventually(notes).Should(ConsistOf(ContainSubstring(`AutomaticUpdatePolicy is "stage"`)))
		// Events of one kind about one version of a Node are a series, of which the first text is kept.
		m.looksAgain(ctx)
		reads := ostree.Reads()
		Eventually(ostree.Reads).Should(BeNumerically(">", reads+20), "several more rounds")
		Expect(ostree.SetAutomaticUpdatePolicy("apply")).To(Succeed())
		Eventually(notes).Should(ConsistOf(ContainSubstring(`"stage"`), ContainSubstring(`"apply"`)))
		Expect(ostree.Calls()).To(BeEmpty())
	})
})
