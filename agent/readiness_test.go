package main

import (
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// probe is what the kubelet gets to hear: the status and the text of the answer; without one, the error.
func probe(ctx SpecContext, address, path string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%d %s", response.StatusCode, text)
}

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
		Eventually(probe).WithArguments(ctx, at, "/healthz").Should(Equal("200 ok"))
		Expect(probe(ctx, at, "/readyz")).To(HavePrefix("500 [-]node-listed failed"))
		Expect(probe(ctx, at, "/readyz/node-listed")).To(And(HavePrefix("500"), ContainSubstring(errNotListed.Error())))

		By("being ready as soon as it may read it")
		m.requests.forbid("", 0)
		Eventually(probe).WithArguments(ctx, at, "/readyz").Should(Equal("200 ok"))
		m.shows(ctx, needOf, Equal("False UpToDate"))

		By("staying so, whatever becomes of its rights")
		m.requests.forbid(nodes, 0)
		asked := m.requests.len()
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "a mark")
		Eventually(m.requests.len).Should(BeNumerically(">", asked))
		Expect(probe(ctx, at, "/readyz")).To(Equal("200 ok"))
		Expect(probe(ctx, at, "/healthz")).To(Equal("200 ok"))
	})
})
