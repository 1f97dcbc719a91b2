package command_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// browse runs a dashboard until the test ends. It returns the address, and a function that ends the
// dashboard and waits.
func browse(args ...string) (address string, end func()) {
	GinkgoHelper()
	var out output
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, _, err := run(append([]string{"dashboard"}, args...), until(ctx), func(c *call) { c.out, c.screen = &out, terminal.Pipe(&out) })
		done <- err
	}()
	ended := false
	end = func() {
		GinkgoHelper()
		if ended {
			return
		}
		ended = true
		cancel()
		Eventually(done).Should(Receive(BeNil()), "an interrupt is not an error")
	}
	DeferCleanup(end)
	Eventually(out.String).Should(MatchRegexp(`^http://127\.0\.0\.1:\d+/[\w-]{32}/\n`))
	address, _, _ = strings.Cut(out.String(), "\n")
	return address, end
}

func get(address string) *http.Response {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(response.Body.Close)
	return response
}

var _ = Describe("dashboard", func() {
	It("is the status as a page, follows the fleet, and ends at an interrupt", func() {
		p := newPool(2, paused)
		address, end := browse(p.policy)
		page, err := io.ReadAll(get(address).Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(page)).To(And(ContainSubstring("policy "+p.policy+" is paused"), ContainSubstring(p.nodes[0]+": up to date"), ContainSubstring("it ("+env.Config().Host+")")))

		received := make(chan string, 1000)
		go func() {
			defer GinkgoRecover()
			for lines := bufio.NewScanner(get(address + "events").Body); lines.Scan(); {
				received <- lines.Text()
			}
			close(received)
		}()
		Eventually(received).Should(Receive(ContainSubstring(p.nodes[0] + ": up to date")))
		p.needs(p.nodes[0])
		Eventually(received).Should(Receive(ContainSubstring(p.nodes[0] + ": waiting, Paused")))

		end()
		Eventually(received).Should(BeClosed(), "its streams end with it")
		_, err = http.DefaultClient.Get(address)
		Expect(err).To(MatchError(ContainSubstring("connection refused")))
	})

	It("shows only the policies that are named, and those must be there", func() {
		named, other := newPool(1), newPool(1)
		address, _ := browse(named.policy)
		page, err := io.ReadAll(get(address).Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(page)).To(And(ContainSubstring(named.nodes[0]), Not(ContainSubstring(other.nodes[0])), Not(ContainSubstring(other.policy))))
		Expect(fails("dashboard", "nowhere")).To(ContainSubstring(`policy "nowhere" not found`))
	})
})
