package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/history"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

// hostile sets a title, clears the screen, changes colors, moves the cursor up, reverses the text
// direction and starts a new line.
const hostile = "failed\x1b]0;owned\x07\x1b[2J\x1b[32mfine\x1b[0m\u009b1A\u202e\x7f\r\nn9 is next"

// shown is hostile as people see it.
const shown = "failed\uFFFD]0;owned\uFFFD\uFFFD[2J\uFFFD[32mfine\uFFFD[0m\uFFFD1A\uFFFD\uFFFD"

// inColour runs the command in a wide terminal with colors.
func inColour(c *call) {
	c.screen = terminal.Live(c.out, terminal.Theme{Color: true}, func() (int, int) { return 500, 50 })
}

var (
	themes   = regexp.MustCompile(`\x1b\[(?:0|1|2|3[2356]|1;31)m`)
	controls = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]|(?m)^ *n9 is next`)
)

// harmless runs the command in a pipe and in a terminal, and expects the hostile text without any
// effect in both.
func harmless(args ...string) {
	GinkgoHelper()
	piped := ok(args...)
	Expect(piped).To(ContainSubstring(shown))
	Expect(controls.FindAllString(piped, -1)).To(BeEmpty(), "%q", piped)

	painted, stderr, err := run(args, inColour)
	Expect(err).NotTo(HaveOccurred(), stderr)
	Expect(painted).To(And(ContainSubstring(shown), MatchRegexp(themes.String())))
	Expect(controls.FindAllString(themes.ReplaceAllString(painted, ""), -1)).To(BeEmpty(), "%q", painted)
}

// needsHostilely makes the agent report a need with a hostile message.
func (p *pool) needsHostilely(name string) {
	GinkgoHelper()
	c := testenv.Condition(v1alpha1.NodeRebootRequired, "True", "UpdateStaged")
	c["message"] = hostile
	p.patch(name, map[string]any{"status": map[string]any{"conditions": []any{c}}})
}

func (p *pool) annotates(name, key, value string) {
	GinkgoHelper()
	p.patch(name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

var _ = Describe("What a node reports is harmless to a terminal", func() {
	It("in explain", func() {
		p := newPool(1, paused)
		p.needsHostilely(p.nodes[0])
		harmless("explain", p.nodes[0])
		Expect(explained(p.nodes[0]).Need.Message).To(Equal(hostile), "a program receives what the node reports")
		Expect(controls.FindAllString(ok("explain", p.nodes[0], "-o", "json"), -1)).To(BeEmpty())
		var e explanation.Explanation
		Expect(yaml.Unmarshal([]byte(ok("explain", p.nodes[0], "-o", "yaml")), &e)).To(Succeed())
		Expect(e.Need.Message).To(Equal(hostile))

		By("having it for a reason in the headline, too")
		p.patch(p.nodes[0], map[string]any{"status": map[string]any{"conditions": []any{testenv.Condition(v1alpha1.NodeRebootRequired, "False", hostile)}}})
		harmless("explain", p.nodes[0])
	})

	It("in history", func() {
		p := newPool(1)
		p.needsHostilely(p.nodes[0])
		expectPermitted(p.nodes[0], "True Granted")
		p.starts(p.nodes[0])
		p.plays(p.nodes[0], agents.Abort(v1alpha1.ReasonDrainTimedOut, hostile, time.Now()))
		Eventually(func() []v1alpha1.PastReboot { return p.get().Status.History }).Should(HaveLen(1))
		harmless("history", p.nodes[0])
		harmless("explain", p.nodes[0])
		var attempts []history.Attempt
		Expect(json.Unmarshal([]byte(ok("history", p.nodes[0], "-o", "json")), &attempts)).To(Succeed())
		Expect(attempts).To(HaveExactElements(HaveField("Message", shown+"  n9 is next")), "the manager writes harmless lines")
	})

	It("in status, watched or not", func() {
		const check = "example.com/check"
		p := newPool(1, fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) { s.Hooks = &v1alpha1.Hooks{After: []v1alpha1.AnnotationKey{check}} }))
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "True Granted")
		p.starts(p.nodes[0])
		p.commits(p.nodes[0])
		p.boots(p.nodes[0])
		Eventually(func() map[string]string { return node(p.nodes[0]).Annotations }).Should(HaveKey(v1alpha1.AnnotationHooks))
		p.annotates(p.nodes[0], check, hostile)
		harmless("status", p.policy)

		var out, drawn output
		watch(&out, terminal.Pipe(&out), func(*http.Request) {}, p.policy)
		Eventually(out.String).Should(ContainSubstring(shown))
		Expect(controls.FindAllString(out.String(), -1)).To(BeEmpty(), "%q", out.String())
		watch(&drawn, terminal.Live(&drawn, terminal.Theme{Color: true}, func() (int, int) { return 500, 50 }), func(*http.Request) {}, p.policy)
		Eventually(drawn.String).Should(And(ContainSubstring(shown), ContainSubstring("\x1b[1m"+p.policy)))
		Expect(drawn.String()).NotTo(Or(ContainSubstring("\x1b[2J"), ContainSubstring("\u009b"), ContainSubstring("\x1b[32mfine")))
	})

	It("in what its drain waits for", func() {
		p := newPool(1)
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "True Granted")
		p.starts(p.nodes[0])
		p.waitsFor(p.nodes[0], hostile)
		harmless("explain", p.nodes[0])
		harmless("status", p.policy)
		Expect(explained(p.nodes[0]).Reboot.Drain).To(Equal(hostile), "programs get it as it is")
	})

	It("in what request quotes", func() {
		p := newPool(1, paused)
		p.annotates(p.nodes[0], v1alpha1.AnnotationRebootRequested, hostile)
		output := stays(v1alpha1.ReasonPaused, "request", p.nodes[0], "--reason=why")
		Expect(output).To(ContainSubstring("reboot already requested (" + shown))
		Expect(controls.FindAllString(output, -1)).To(BeEmpty(), "%q", output)
	})

	It("in errors", func() {
		_, stderr, err := run([]string{"status"}, func(c *call) {
			c.wire.Meddle(nil, func(*http.Request, http.RoundTripper) (*http.Response, error) {
				return nil, errors.New("\x1b[2J\u009b1A")
			})
		})
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(And(HavePrefix("error: "), HaveSuffix("\uFFFD[2J\uFFFD1A\n")))
	})
})

var _ = Describe("A clock that shows the year 9999", func() {
	It("keeps neither status nor forecast from being printed", func() {
		last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		p := newPool(1)
		p.needs(p.nodes[0])
		p.plays(p.nodes[0], agents.Start(last))
		p.plays(p.nodes[0], agents.Commit(last))
		until := `{"spec":{"pause":{"until":"9999-12-31T23:59:59-12:00"}}}`
		Expect(api.Patch(context.Background(), p.get(), client.RawPatch(types.MergePatchType, []byte(until)))).To(Succeed())
		Expect(statusOf(p.policy).InProgress).To(HaveLen(1))
		var tables []timetable.Timetable
		Expect(json.Unmarshal([]byte(ok("forecast", p.policy, "-o", "json")), &tables)).To(Succeed())
		Expect(tables).To(HaveLen(1))
	})
})
