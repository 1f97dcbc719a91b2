package command_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/kured"
)

var _ = Describe("convert kured", func() {
	file := filepath.Join(testenv.Root(), "kubectl-reboot", "kured", "testdata", "default.yaml")

	It("makes the same policy from a file, from standard input and from the running kured", func(ctx SpecContext) {
		manifest, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		fromFile, report, err := run([]string{"convert", "kured", "-f", file})
		Expect(err).NotTo(HaveOccurred(), report)
		Expect(fromFile).To(ContainSubstring("kind: RebootPolicy"))
		Expect(report).To(ContainSubstring("Carried over"))

		fromInput, _, err := run([]string{"convert", "kured", "-f", "-"}, func(c *call) { c.in = bytes.NewReader(manifest) })
		Expect(err).NotTo(HaveOccurred())
		Expect(fromInput).To(Equal(fromFile))

		_, stderr, err := run([]string{"convert", "kured"})
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(HavePrefix("error: found no DaemonSet; "))

		daemonSets, err := kured.DaemonSets(manifest)
		Expect(err).NotTo(HaveOccurred())
		Expect(api.Create(ctx, &daemonSets[0])).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, &daemonSets[0])).To(Succeed()) })
		fromCluster, _, err := run([]string{"convert", "kured"})
		Expect(err).NotTo(HaveOccurred())
		Expect(fromCluster).To(Equal(fromFile))
	})

	It("ends at an interrupt, even while it waits for standard input", func() {
		ctx, interrupt := context.WithCancel(context.Background())
		in, terminal := io.Pipe() // an input without an end
		DeferCleanup(terminal.Close)
		done := make(chan error, 1)
		go func() {
			_, _, err := run([]string{"convert", "kured", "-f", "-"}, until(ctx), func(c *call) { c.in = in })
			done <- err
		}()
		interrupt()
		Eventually(done).WithTimeout(10 * time.Second).Should(Receive(MatchError("reading standard input: context canceled")))
	})

	It("writes no policy if it cannot convert", func() {
		Expect(fails("convert", "fluo")).To(Equal("error: unknown command \"fluo\" for \"kubectl reboot convert\"\n"))
		Expect(fails("convert", "kured", "-f", "no-such-file.yaml")).To(Equal("error: open no-such-file.yaml: no such file or directory\n"))
		Expect(fails("convert", "kured", "file.yaml")).To(HavePrefix("error: unknown command"))
	})
})
