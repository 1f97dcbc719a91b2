package command_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// install creates the plugin and its completion program, which both run this test binary, in a
// folder for the PATH.
func install() string {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	folder := GinkgoT().TempDir()
	for _, name := range []string{"kubectl-reboot", "kubectl_complete-reboot"} {
		script := "#!/bin/sh\nexec env " + asPlugin + "=" + name + " " + self + ` "$@"` + "\n"
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700)).To(Succeed())
	}
	return folder
}

// kubectl runs the real kubectl.
func kubectl(folder string, args ...string) string {
	GinkgoHelper()
	command := exec.Command(filepath.Join(testenv.Assets(), "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+admin, "PATH="+folder+":"+os.Getenv("PATH"))
	text, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(text))
	return string(text)
}

var _ = Describe("Completion", func() {
	It("knows nodes, policies, contexts and values", func() {
		p := newPool(1, paused)
		for line, want := range map[string]string{
			"explain ":           p.nodes[0] + "\n",
			"status ":            p.policy + "\n",
			"windows ":           p.policy + "\n",
			"forecast ":          p.policy + "\n",
			"history ":           p.nodes[0] + "\n",
			"request ":           p.nodes[0] + "\n",
			"pause ":             "node/" + p.nodes[0] + "\n",
			"resume rbp":         "rbp/" + p.policy + "\n",
			"resume --h":         "--halt",
			"resume --p":         "--pause",
			"status -o ":         "wide\n",
			"pause -o ":          "jsonpath\n",
			"request --dry-run ": "server\n",
			"status --context ":  "gone\n",
		} {
			Expect(completed(strings.Split("__complete "+line, " "))).To(ContainSubstring(want), line)
		}
		Expect(completed([]string{"__complete", "explain", p.nodes[0], ""})).NotTo(ContainSubstring(p.nodes[0]), "one node is all it takes")
		Expect(completed([]string{"__complete", "request", p.nodes[0], ""})).NotTo(ContainSubstring(p.nodes[0]), "it is there already")
	})

	It("by kubectl itself", func() {
		if runtime.GOOS == "windows" {
			Skip("a shell script plays the plugin")
		}
		p := newPool(1, paused)
		folder := install()
		Expect(kubectl(folder, "reboot", "version")).To(HavePrefix("kubectl reboot test ("))
		Expect(kubectl(folder, "reboot", "status", p.policy)).To(ContainSubstring(p.policy))
		Expect(kubectl(folder, "__complete", "reboot", "explain", "")).To(ContainSubstring(p.nodes[0] + "\n"))
	})
})

// completed is like ok, but allows cobra's completion messages on standard error.
func completed(args []string) string {
	GinkgoHelper()
	stdout, _, err := run(args)
	Expect(err).NotTo(HaveOccurred())
	return stdout
}

var _ = Describe("The command line", func() {
	It("knows its version", func() {
		Expect(ok("version")).To(HavePrefix("kubectl reboot v1.2.3 (go"))
		Expect(ok("--version")).To(Equal(ok("version")))
		Expect(ok("version", "-o", "json")).To(ContainSubstring(`"version": "v1.2.3"`))
	})

	It("takes kubectl's flags", func() {
		Expect(fails("status", "--context", "gone")).To(ContainSubstring("127.0.0.1:1"))
		Expect(fails("status", "--context", "nowhere")).To(ContainSubstring("context \"nowhere\" does not exist"))
		_, stderr, err := run([]string{"status", "--as", "mallory"})
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(ContainSubstring(`User "mallory" cannot list resource "rebootpolicies"`))
	})

	It("shows commands for the cluster that was asked", func() {
		p := newPool(1, paused)
		p.needs(p.nodes[0])
		for line, command := range map[string]string{
			"status " + p.policy:    "kubectl reboot resume rbp/" + p.policy + " --pause",
			"explain " + p.nodes[0]: "kubectl reboot resume rbp/" + p.policy + " --pause",
			"forecast -o html":      "kubectl reboot resume rbp/" + p.policy + " --pause",
		} {
			Expect(ok(append(strings.Fields(line), "--context=it")...)).To(MatchRegexp(regexp.QuoteMeta(command)+` --kubeconfig=\S+ --context=it\b`), line)
		}
		stdout, _, err := run([]string{"doctor", "--context=it"})
		Expect(err).To(HaveOccurred())
		Expect(stdout).To(And(MatchRegexp(`(?m)^ +kubectl reboot resume rbp/`+p.policy+` --pause --kubeconfig=\S+ --context=it$`), MatchRegexp(`(?m)^ +make deploy$`)))
	})

	It("reports that the operator is not installed if its kind does not exist", func() {
		missing := func(where string) func(*call) {
			return func(c *call) {
				asked := func(r *http.Request) bool { return strings.Contains(r.URL.Path, where) }
				c.wire.Meddle(asked, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					r = r.Clone(r.Context())
					r.URL.Path = "/apis/nowhere"
					return next.RoundTrip(r)
				})
			}
		}
		const sentence = ": this cluster does not know RebootPolicies: install reboot-operator\n"
		for _, line := range []string{"status", "doctor", "pause --all", "pause rbp/workers"} {
			_, stderr, err := run(strings.Fields(line), missing("rebootpolicies"))
			Expect(err).To(HaveOccurred())
			Expect(stderr).To(HaveSuffix(sentence), line)
		}
		Expect(fails("pause", "rbp/nowhere")).To(Equal("error: reading policy nowhere: rebootpolicies.reboot-operator.io \"nowhere\" not found\n"))
		_, stderr, err := run([]string{"status"}, missing("nodes"))
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(And(ContainSubstring("could not find the requested resource (get nodes)"), Not(HaveSuffix(sentence))))
	})

	It("reports a mistake in one sentence", func() {
		Expect(fails("status", "--bad")).To(Equal("error: unknown flag: --bad\n"))
		Expect(fails("reboot")).To(HavePrefix("error: unknown command \"reboot\" for \"kubectl reboot\""))
		Expect(fails("completion", "foo")).To(Equal("error: unknown command \"foo\" for \"kubectl reboot completion\"\n"))
		Expect(ok("completion")).To(ContainSubstring("bash"))
		_, stderr, err := run([]string{"status"}, func(c *call) { c.kubeconfig = "/nonexistent" })
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(Equal("error: reading the kubeconfig: stat /nonexistent: no such file or directory\n"))
	})

	It("names what is unknown or cannot be read, in each command, and fails", func() {
		for sentence, lines := range map[string][]string{
			`policy "nope" not found`: {"status nope", "status nope -w", "forecast nope", "windows nope", "report nope", "check nope", "dashboard nope"},
			`node "nope" not found`:   {"explain nope", "doctor nope", "history nope"},
			`nodes "nope" not found`:  {"request nope --reason=why", "request nope --cancel", "retry nope", "abort nope", "pause node/nope", "resume node/nope"},
			`"nope"`:                  {"pause nope", "resume nope"},
			`--selector "pool==="`:    {"report -l pool===", "request -l pool=== --reason=why", "retry -l pool===", "pause -l pool===", "resume -l pool==="},
			`"soon"`:                  {"pause rbp/nope --until=soon", "request nope --reason=why --wait --timeout=soon"},
			"no such file":            {"check -f /nonexistent", "convert kured -f /nonexistent"},
		} {
			for _, line := range lines {
				Expect(fails(strings.Fields(line)...)).To(And(HavePrefix("error: "), ContainSubstring(sentence), HaveSuffix("\n")), line)
			}
		}
	})

	It("says that the API server cannot be reached, and what to look at", func() {
		for _, line := range []string{"status", "explain n", "doctor", "history", "report", "check", "forecast", "windows", "dashboard", "request n --reason=why", "retry n", "pause n", "convert kured"} {
			Expect(fails(append(strings.Fields(line), "--server=https://127.0.0.1:1")...)).To(MatchRegexp(
				`connection refused; the API server cannot be reached: see whether the cluster runs, and whether kubectl config view --minify --kubeconfig=\S+ shows its address\n$`), line)
		}
	})

	It("asks for a kubeconfig if it has none", func() {
		GinkgoT().Setenv("KUBECONFIG", filepath.Join(GinkgoT().TempDir(), "none"))
		_, stderr, err := run([]string{"status"}, func(c *call) { c.kubeconfig = "" })
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(Equal("error: no kubeconfig found: set KUBECONFIG, or use --kubeconfig\n"))
	})
})
