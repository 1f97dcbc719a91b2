package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/wire"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/report"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

func explained(name string) explanation.Explanation {
	GinkgoHelper()
	var e explanation.Explanation
	Expect(json.Unmarshal([]byte(ok("explain", name, "-o", "json")), &e)).To(Succeed())
	return e
}

func statusOf(policy string) status.Policy {
	GinkgoHelper()
	var s status.Status
	Expect(json.Unmarshal([]byte(ok("status", policy, "-o", "json")), &s)).To(Succeed())
	Expect(s.Policies).To(HaveLen(1))
	return s.Policies[0]
}

var _ = Describe("explain and status", func() {
	It("show what the manager reports, through the life of a reboot", func() {
		p := newPool(2, paused)
		first, second := p.nodes[0], p.nodes[1]
		Expect(explained(first).Verdict).To(Equal(explanation.NoNeed))

		p.needs(first)
		expectPermitted(first, "False Paused")
		e := explained(first)
		Expect([]any{e.Verdict, e.Reason, e.Manager, e.Policy.Name}).To(Equal([]any{explanation.Waiting, v1alpha1.ReasonPaused, (*explanation.Condition)(nil), p.policy}))
		Expect(statusOf(p.policy).Window.State).To(Equal(v1alpha1.WindowPaused))

		ok("resume", p.policy)
		expectPermitted(first, "True Granted")
		e = explained(first)
		Expect([]any{e.Verdict, e.Reboot.Phase, e.Manager}).To(HaveExactElements(explanation.InProgress, BeEquivalentTo("Granted"), BeNil()))
		p.needs(second)
		expectPermitted(second, "False BudgetExhausted")
		e = explained(second)
		Expect(e.Reason).To(Equal(v1alpha1.ReasonBudgetExhausted))
		Expect(e.Slots).To(Equal(first + " (holds a grant)"))

		p.starts(first)
		Expect(explained(first).Reboot.Phase).To(BeEquivalentTo("Draining"))
		p.commits(first)
		current := statusOf(p.policy)
		Expect(current.InProgress).To(HaveExactElements(And(HaveField("Node", first), HaveField("Phase", BeEquivalentTo("Rebooting")))))
		Expect(current.Waiting).To(HaveExactElements(status.Waiting{Reason: v1alpha1.ReasonBudgetExhausted, Nodes: []string{second}}))
		Expect(current.Nodes).To(Equal(status.Nodes{Selected: 2, Reporting: 2, Pending: 2, InProgress: 1, Waiting: 1}))

		p.boots(first)
		expectPermitted(second, "True Granted")
		Expect(explained(first).Verdict).To(Equal(explanation.NoNeed))
		Expect(statusOf(p.policy).Nodes.UpToDate).To(Equal(1))
	})

	It("show what a drain waits for, and both its deadlines", func() {
		const report = "The drain waits for default/db-0 (PodDisruptionBudget db)."
		p := newPool(1)
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "True Granted")
		p.starts(p.nodes[0])
		p.waitsFor(p.nodes[0], report)

		reboot := explained(p.nodes[0]).Reboot
		Expect(reboot.Drain).To(Equal(report))
		Expect(reboot.DrainUntil).To(BeTemporally("==", reboot.Since.Add(20*time.Minute)))
		Expect(reboot.Until).To(BeTemporally("==", reboot.Since.Add(30*time.Minute)))
		Expect(ok("explain", p.nodes[0])).To(And(
			ContainSubstring("\nDrain     "+report+"\n"), MatchRegexp(`(?m)^Times out .*, in (19m|20m)$`), MatchRegexp(`(?m)^Overdue   .*, in (29m|30m)$`)))
		const note = `Draining +\d+s  times out in \w+, overdue in \w+: waits for default/db-0 \(PodDisruptionBudget db\)\.`
		Expect(ok("status", p.policy)).To(MatchRegexp(note))
		var drawn output
		watch(&drawn, terminal.Live(&drawn, terminal.Theme{}, func() (int, int) { return 500, 50 }), func(*http.Request) {}, p.policy)
		Eventually(drawn.String).Should(MatchRegexp(note), "watched, too")
	})

	It("show text, and YAML", func() {
		p := newPool(1, paused)
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "False Paused")
		Expect(ok("explain", "node/"+p.nodes[0])).To(And(
			HavePrefix(p.nodes[0]+" waits: Paused\n  policy "+p.policy+" is paused: test\n"),
			ContainSubstring("  ✗ Paused "), ContainSubstring("  · Halted "), Not(ContainSubstring("\x1b"))))
		Expect(ok("explain", "nodes/"+p.nodes[0], "-o", "yaml")).To(ContainSubstring("\nverdict: Waiting\n"))
		Expect(ok("status")).To(MatchRegexp(`(?m)^` + p.policy + ` +1 +1 +\? +1 +0 +0 +\?  paused$`))
		Expect(ok("status", "-o", "wide")).To(ContainSubstring("  UNAVAILABLE\n"))
		Expect(fails("explain", "nowhere")).To(Equal("error: node \"nowhere\" not found\n"))
		Expect(fails("explain")).To(HavePrefix("error: explain requires exactly 1 argument, the node: kubectl reboot explain NODE"))
		Expect(fails("status", "nowhere")).To(HavePrefix("error: policy \"nowhere\" not found; the policies are: "))
		Expect(fails("status", "-o", "xml")).To(Equal("error: --output \"xml\" must be one of json, yaml, wide\n"))
	})

	It("look at the pods of a node that no agent looks at yet, with the rights of the user", func() {
		applyUserRoles()
		p := newPool(2, paused)
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "False Paused")
		bare := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: p.nodes[0] + "-bare"},
			Spec:       corev1.PodSpec{NodeName: p.nodes[0], Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
		}
		Expect(api.Create(context.Background(), bare)).To(Succeed())
		DeferCleanup(func() { Expect(api.Delete(context.Background(), bare, client.GracePeriodSeconds(0))).To(Succeed()) })
		Expect(explained(p.nodes[0]).Pods).To(HavePrefix("default/" + bare.Name + " ("))
		Expect(ok("explain", p.nodes[0])).To(MatchRegexp(`(?m)^Pods      default/` + bare.Name + ` \(`))
		Expect(explained(p.nodes[1]).Pods).To(BeEmpty(), "it needs no reboot")

		stdout, stderr, err := run([]string{"explain", p.nodes[0]}, as("explains", "reboot-operator-fleet-viewer"))
		Expect(err).NotTo(HaveOccurred(), stderr)
		Expect(stdout).To(MatchRegexp(`(?m)^Pods      not known, because they cannot be read: .*forbidden`))
	})

	It("show that a request was made, when, and that no agent has answered it", func() {
		p := newPool(1)
		ok("request", p.nodes[0], "--reason=firmware")
		e := explained(p.nodes[0])
		Expect(e.Verdict).To(Equal(explanation.Unanswered))
		Expect(e.Request.Reason).To(Equal("firmware"))
		Expect(e.Request.At).To(BeTemporally("~", time.Now(), time.Minute))
	})

	It("report when the manager lags behind, or is down", Serial, func() {
		p := newPool(1, paused)
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "False Paused")
		var piped output
		watch(&piped, terminal.Pipe(&piped), func(*http.Request) {}, p.policy)
		Eventually(piped.String).Should(ContainSubstring("paused\n"))
		stopManager()
		DeferCleanup(func() {
			stopManager = startManager()
			Eventually(piped.String).Should(ContainSubstring("  no longer needs you: no manager has run since "))
		})
		Eventually(piped.String).Should(ContainSubstring("  needs you: no manager has run since "), "nothing else changes")
		warned := func(args ...string) string {
			stdout, stderr, err := run(args)
			Expect(err).NotTo(HaveOccurred())
			Expect(stderr).To(HavePrefix("warning: no manager has run since "), "%v", args)
			return stdout
		}
		warned("resume", p.policy)

		var e explanation.Explanation
		Expect(json.Unmarshal([]byte(warned("explain", p.nodes[0], "-o", "json")), &e)).To(Succeed())
		Expect(e.Verdict).To(Equal(explanation.Due))
		Expect(e.Manager).To(HaveField("Reason", "Paused"))
		for _, screen := range [][]string{{"status"}, {"explain", p.nodes[0]}, {"forecast", p.policy}, {"windows", p.policy}, {"history"}, {"report"}} {
			Expect(ok(screen...)).To(MatchRegexp(`^! no manager has run since .*\n  kubectl get pods -A -l `), screen[0])
		}
		for _, export := range []string{"status yaml", "forecast json", "forecast svg", "forecast html", "windows json", "history json", "report json", "report csv"} {
			command, format, _ := strings.Cut(export, " ")
			args := []string{command, "-o", format}
			if command == "forecast" {
				args = append(args, p.policy)
			}
			Expect(warned(args...)).NotTo(ContainSubstring("warning: "), "programs read it")
		}
		warned("request", p.nodes[0], "--reason=why")
		Expect(json.Unmarshal([]byte(warned("explain", p.nodes[0], "-o", "json")), &e)).To(Succeed())
		Expect(e.Advice.Text).To(Equal("start the manager: nothing happens without one"))
		Expect(ok("forecast", p.policy)).To(ContainSubstring("The completion time is unknown. No manager runs"))
		var drawn output
		watch(&drawn, terminal.Live(&drawn, terminal.Theme{}, func() (int, int) { return 500, 50 }), func(*http.Request) {}, p.policy)
		Eventually(drawn.String).Should(ContainSubstring("! no manager has run since "), "watched, too")
		Expect(ok("explain", p.nodes[0])).To(ContainSubstring("! the manager last reported something else on this node: RebootPermitted=False, Paused: "))
		Expect(ok("status", p.policy)).To(And(
			ContainSubstring(`kubectl get pods -A -l app.kubernetes.io/name=reboot-operator`)))
	})
})

var _ = Describe("forecast", func() {
	It("shows who goes when, and who stays", func() {
		p := newPool(3, func(p *v1alpha1.RebootPolicy) {
			fleettest.Weeknights(p)
			w := &p.Spec.Windows[0] // does not open while the test runs
			w.Days, w.Start, w.TimeZone = nil, time.Now().UTC().Add(12*time.Hour).Format("15:04"), ""
		})
		for _, name := range p.nodes {
			p.needs(name)
		}
		ok("pause", "node/"+p.nodes[1])
		text := ok("forecast", p.policy)
		Expect(text).To(And(HavePrefix("policy "+p.policy+"\nNODE "), ContainSubstring("  weeknights\n"),
			MatchRegexp(`(?m)^`+p.nodes[1]+` +NodePaused +the node is paused`),
			ContainSubstring("\nDone "), ContainSubstring("but for 1 node that stays"), ContainSubstring("assumed, because no reboot has been measured")))
		Expect(strings.Index(text, p.nodes[0])).To(BeNumerically("<", strings.Index(text, p.nodes[2])))
		var tables []timetable.Timetable
		Expect(json.Unmarshal([]byte(ok("forecast", "rbp/"+p.policy, "-o", "json")), &tables)).To(Succeed())
		Expect(tables).To(HaveExactElements(And(
			HaveField("Policy", p.policy), HaveField("Reboots", HaveLen(2)), HaveField("Stays", HaveExactElements(HaveField("Node", p.nodes[1]))))))
		Expect(tables[0].CompletionAt).To(BeTemporally("==", tables[0].Reboots[1].EndsAt))
		Eventually(func() time.Time {
			t := p.get().Status.EstimatedCompletionAt
			if t == nil {
				return time.Time{}
			}
			return t.Time
		}).Should(BeTemporally("~", tables[0].CompletionAt, 2*time.Minute), "the manager reports the same")
		Expect(statusOf(p.policy).CompletionAt).To(BeTemporally("==", tables[0].CompletionAt))
		Expect(ok("forecast", p.policy, "-o", "yaml")).To(ContainSubstring("\n    drain: 2m0s\n"))
		Expect(ok("forecast", p.policy, "-o", "wide")).To(ContainSubstring("  WAITS FOR "))
		Expect(ok("forecast", p.policy, "-o", "svg")).To(And(HavePrefix("<svg "), ContainSubstring(p.nodes[0])))
		Expect(ok("forecast", "-o", "html")).To(And(HavePrefix("<!doctype html>"), ContainSubstring(p.nodes[0])))
		newPool(0)
		Expect(fails("forecast", "-o", "svg")).To(HavePrefix("error: -o svg draws one policy: name it; the policies are: "))
		Expect(fails("forecast", "nowhere")).To(HavePrefix("error: policy \"nowhere\" not found"))
	})
})

var _ = Describe("history", func() {
	It("shows how the last reboots of a node ended", func() {
		p := newPool(1)
		Expect(ok("history", p.nodes[0])).To(Equal("status.history has no reboot of " + p.nodes[0] + "; it holds the last 10 of each policy.\n"))
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "True Granted")
		p.starts(p.nodes[0])
		p.commits(p.nodes[0])
		p.boots(p.nodes[0])
		Eventually(func() []v1alpha1.PastReboot { return p.get().Status.History }).Should(HaveLen(1))
		Expect(ok("history", "node/"+p.nodes[0])).To(MatchRegexp(`(?m)^` + p.nodes[0] + ` .* Succeeded .* ` + p.policy + ` +UpdateStaged`))
		Expect(ok("history", p.nodes[0], "-o", "wide")).To(ContainSubstring("  NUMBER  "))
		Expect(ok("history", p.nodes[0], "-o", "json")).To(ContainSubstring(`"policy": "` + p.policy + `"`))
		Expect(ok("history")).To(ContainSubstring(p.nodes[0]))
	})
})

var _ = Describe("report", func() {
	It("has a row for each node of a policy, or of a selector", func() {
		p, other := newPool(2, paused), newPool(1, paused)
		p.needs(p.nodes[0])
		p.patch(p.nodes[0], map[string]any{"status": map[string]any{"nodeInfo": map[string]any{"osImage": "Flatcar 4459.2.0", "kernelVersion": "6.12.51"}}})
		text := ok("report", p.policy)
		Expect(text).To(And(HavePrefix("NODE "), Not(ContainSubstring(other.nodes[0])),
			MatchRegexp(`(?m)^`+p.nodes[0]+` +`+p.policy+` +Flatcar 4459.2.0 +6.12.51 +- .* 0 .* Paused$`), MatchRegexp(`(?m)^`+p.nodes[1]+` .* -$`)))
		Expect(ok("report", "rbp/"+p.policy, "-o", "table")).To(Equal(text))
		byLabel := fleettest.PoolLabel + "=" + p.policy
		Expect(ok("report", "-l", byLabel)).To(Equal(text))
		Expect(ok("report", "-l", byLabel, "-o", "csv")).To(And(HavePrefix("NODE,POLICY,OS,KERNEL,"), ContainSubstring("\n"+p.nodes[1]+","+p.policy+",,,")))
		var rows []report.Row
		Expect(json.Unmarshal([]byte(ok("report", p.policy, "-o", "json")), &rows)).To(Succeed())
		Expect(rows).To(HaveExactElements(
			And(HaveField("Node", p.nodes[0]), HaveField("OS", "Flatcar 4459.2.0"), HaveField("Reason", v1alpha1.ReasonPaused)), HaveField("Node", p.nodes[1])))
		Expect(ok("report")).To(And(ContainSubstring(p.nodes[0]), ContainSubstring(other.nodes[0])))
		Expect(fails("report", "nowhere")).To(HavePrefix("error: policy \"nowhere\" not found"))
		Expect(fails("report", "-l", "pool in")).To(ContainSubstring("write it as pool=blue, zone!=a or 'pool in (blue,green)'"))
		Expect(fails("history", "nope")).To(Equal("error: node \"nope\" not found, and status.history has no reboot of it\n"))
		stdout, stderr, err := run([]string{"report", "-l", "pool=nobody", "-o", "csv"})
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{stdout, stderr}).To(HaveExactElements(HavePrefix("NODE,POLICY,"), Equal("warning: no node matches\n")))
		Expect(fails("report", "-l", "a=b=c")).To(HavePrefix("error: --selector \""))
		Expect(fails("report", "-o", "xml")).To(Equal("error: --output \"xml\" must be one of table, csv, json\n"))
	})
})

var _ = Describe("windows", func() {
	It("shows the coming windows of each policy", func() {
		p := newPool(0, fleettest.Weeknights)
		text := ok("windows", p.policy, "--next", "3")
		Expect(text).To(HavePrefix("policy " + p.policy + "\nFROM"))
		Expect(strings.Count(text, "weeknights")).To(Equal(3))
		Expect(ok("windows", "rbp/"+p.policy, "-o", "json")).To(ContainSubstring(`"timeZone": "Europe/Berlin"`))
		Expect(fails("windows", "--next", "0")).To(Equal("error: --next must be from 1 to 1000\n"))
	})
})

// output is a buffer that a watch writes and its test reads.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// watch runs status --watch until the test ends.
func watch(out *output, screen *terminal.Terminal, look func(*http.Request), args ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, _, err := run(append([]string{"status", "--watch"}, args...), wrapped(look), until(ctx), func(c *call) { c.out, c.screen = out, screen })
		done <- err
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()), "an interrupt is not an error")
	})
}

var _ = Describe("status --watch", func() {
	It("in a pipe is a line for each change, and lists nothing again", func() {
		p := newPool(1, paused)
		var out output
		var asked atomic.Int32
		watch(&out, terminal.Pipe(&out), func(r *http.Request) {
			if r.URL.Query().Get("watch") == "" && !strings.Contains(r.URL.Path, "/leases/") {
				asked.Add(1)
			}
		}, p.policy)
		Eventually(out.String).Should(ContainSubstring("policy " + p.policy + ": 1 of 1 up to date, 0 in progress, 0 waiting, 0 failed; paused\n"))
		before := asked.Load()

		ok("resume", p.policy)
		Eventually(out.String).Should(ContainSubstring("; always open\n"))
		p.needs(p.nodes[0])
		Eventually(out.String).Should(ContainSubstring(p.nodes[0] + ": Granted\n"))
		p.starts(p.nodes[0])
		Eventually(out.String).Should(ContainSubstring(p.nodes[0] + ": Granted → Draining\n"))
		p.commits(p.nodes[0])
		Eventually(out.String).Should(ContainSubstring(p.nodes[0] + ": Draining → Rebooting\n"))
		p.boots(p.nodes[0])
		Eventually(out.String).Should(ContainSubstring(p.nodes[0] + ": back in service\n"))
		Expect(asked.Load()).To(Equal(before), "only the manager's Lease is read again")
		Expect(out.String()).NotTo(ContainSubstring("\x1b"))
	})

	It("in a terminal redraws in place, within its size", func() {
		p := newPool(3, paused)
		var out output
		screen := terminal.Live(&out, terminal.Theme{Color: true}, func() (int, int) { return 60, 8 })
		watch(&out, screen, func(*http.Request) {}, p.policy)
		Eventually(out.String).Should(And(ContainSubstring("3 of 3 nodes up to date"), ContainSubstring("Ctrl-C ends")))
		for _, name := range p.nodes {
			p.needs(name)
		}
		Eventually(out.String).Should(And(ContainSubstring("0 of 3 nodes up to date"), ContainSubstring("more lines")))
		Expect(out.String()).To(MatchRegexp(`\x1b\[[0-9]+A`), "the cursor goes up")
	})

	It("reports when the API server cannot be reached any more, and goes on", func() {
		p := newPool(1, paused)
		var out output
		var line wire.Wire
		ctx, cancel := context.WithCancel(context.Background())
		DeferCleanup(cancel)
		go func() {
			defer GinkgoRecover()
			_, _, err := run([]string{"status", "--watch", p.policy}, until(ctx), func(c *call) {
				c.out, c.screen, c.wire = &out, terminal.Pipe(&out), &line
			})
			Expect(err).NotTo(HaveOccurred())
		}()
		Eventually(out.String).Should(ContainSubstring("paused\n"))
		line.Cut()
		Eventually(out.String).Should(ContainSubstring("this may be out of date, because the API server cannot be watched: "))
		line.Restore()
		Eventually(out.String).Should(ContainSubstring("\nover: this may be out of date, "))
		ok("resume", p.policy)
		Eventually(out.String).Should(ContainSubstring("always open\n"))
	})

	It("refuses what it cannot show", func() {
		Expect(fails("status", "--watch", "-o", "json")).To(Equal("error: --watch shows text only: leave out --output\n"))
		Expect(fails("status", "nowhere", "--watch")).To(HavePrefix("error: policy \"nowhere\" not found"))
	})
})
