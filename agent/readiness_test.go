package main

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("The agent's probes", func() {
	It("say that it lives, and is not ready before it has read its Node", func(ctx SpecContext) {
		const nodes = "/api/v1/nodes"
		m := newMachine(ctx, v1alpha1.RebootPolicySpec{})
		port, err := embedded.FreePort(ctx)
		Expect(err).NotTo(HaveOccurred())
		at := fmt.Sprintf("127.0.0.1:%d", port)
		m.requests.forbid(nodes, 0)
		DeferCleanup(m.requests.forbid, "", 0) // it does not end before it has read its Node
		m.start(ctx, "--health-probe-bind-address="+at)
		Eventually(m.requests.len).Should(BeNumerically(">", 1), "lists that were refused")
		Eventually(testenv.Probe).WithArguments(ctx, at, "/healthz").Should(Equal("200 ok"))
		Expect(testenv.Probe(ctx, at, "/readyz")).To(HavePrefix("500 [-]node-listed failed"))
		Expect(testenv.Probe(ctx, at, "/readyz/node-listed")).To(And(HavePrefix("500"), ContainSubstring(errNotListed.Error())))

		By("being ready as soon as it may read it")
		m.requests.forbid("", 0)
		Eventually(testenv.Probe).WithArguments(ctx, at, "/readyz").Should(Equal("200 ok"))
		m.shows(ctx, needOf, Equal("False UpToDate"))

		By("staying so, whatever becomes of its rights")
		m.requests.forbid(nodes, 0)
		asked := m.requests.len()
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "a mark")
		Eventually(m.requests.len).Should(BeNumerically(">", asked))
		Expect(testenv.Probe(ctx, at, "/readyz")).To(Equal("200 ok"))
		Expect(testenv.Probe(ctx, at, "/healthz")).To(Equal("200 ok"))
	})
})
