package controllers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// The commands of docs/operations.md run with kubectl as written, except for the names of node and
// policy.
var _ = Describe("A command of docs/operations.md", func() {
	var commands map[string]string

	BeforeEach(func() { commands = blocksOf("sh") })

	// run runs the one command under a heading.
	run := func(ctx SpecContext, f *fleet, p *v1alpha1.RebootPolicy, heading string) {
		GinkgoHelper()
		command := commands[heading]
		Expect(strings.Count(command, "\n")).To(Equal(1), "%s: one command", heading)
		shell(ctx, f.nodes[0], p.Name, command)
	}

	// waiting returns a fleet with one node that needs a reboot and would get it without the edit.
	waiting := func(edit ...func(*v1alpha1.RebootPolicySpec)) (*fleet, *v1alpha1.RebootPolicy) {
		f := makeFleet(1)
		p := f.policy("workers", edit...)
		return f, p
	}

	It("asks for a reboot: Reboot this node", func(ctx SpecContext) {
		f, p := waiting()
		run(ctx, f, p, "Reboot this node")
		Expect(f.get(f.nodes[0]).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRebootRequested, "firmware"))
		f.plays(f.nodes[0], agents.Report(agents.UpToDate(time.Now())))
		Eventually(f.granted).Should(Equal(f.nodes))
	})

	It("asks for one that waits for no window: Reboot this node now", func(ctx SpecContext) {
		hook := startWebhook("notified-of-requests")
		f := makeFleet(2)
		p := f.policy("workers", limit(2), closed, notifies("notified-of-requests", v1alpha1.NotifyUrgent), func(s *v1alpha1.RebootPolicySpec) {
			s.Urgent = &v1alpha1.Urgent{Requested: &v1alpha1.UrgentNodes{Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts}}}
		})
		f.need(f.nodes...)
		f.show("False WindowClosed", f.nodes...)
		run(ctx, f, p, "Reboot this node now")
		Eventually(f.granted).Should(Equal(f.nodes[:1]))
		for _, name := range []string{f.nodes[0], p.Name} {
			Eventually(reasonsOf).WithArguments(name).Should(ContainElement("Urgent"))
		}
		Eventually(hook.messages).Should(ConsistOf(
			"Policy " + p.Name + ": node " + f.nodes[0] + " will be rebooted without waiting for a window, because its request is urgent: CVE-2026-12345"))
		Expect(f.reason(f.nodes[1])).To(Equal("False WindowClosed"))
	})

	It("pauses a node and resumes it: Pause this node, Go on with this node (behaviour 23)", func(ctx SpecContext) {
		f, p := waiting()
		f.need(f.nodes...)
		Eventually(f.granted).Should(Equal(f.nodes))
		run(ctx, f, p, "Pause this node")
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False NodePaused"))
		Expect(f.condition(f.nodes[0], v1alpha1.NodeRebootPermitted).Message).To(HavePrefix("the node is paused: disk swap; "))
		Eventually(reasonsOf).WithArguments(f.nodes[0]).Should(ContainElement("GrantCancelled"))
		run(ctx, f, p, "Go on with this node")
		Eventually(f.granted).Should(Equal(f.nodes))
	})

	It("is for the agent: Stop a drain", func(ctx SpecContext) {
		f, p := waiting()
		f.need(f.nodes...)
		Eventually(f.granted).Should(Equal(f.nodes))
		f.start(f.nodes[0])
		Expect(f.get(f.nodes[0]).Spec.Unschedulable).To(BeTrue())
		run(ctx, f, p, "Stop a drain")
		Expect(f.get(f.nodes[0]).Spec.Unschedulable).To(BeFalse())
	})

	It("pauses all policies: Stop everything", func(ctx SpecContext) {
		f, p := waiting(func(s *v1alpha1.RebootPolicySpec) {
			s.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: metav1.NewTime(time.Now().Add(time.Hour)), Reason: "CVE", Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresPause}}}
		})
		other := f.policy("others", func(s *v1alpha1.RebootPolicySpec) {
			s.Priority, s.Pause = -1, &v1alpha1.Pause{Until: &metav1.Time{Time: time.Now().Add(-time.Hour)}}
		})
		run(ctx, f, p, "Stop everything")
		f.need(f.nodes...)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False Paused"))
		Eventually(windowOf).WithArguments(other).Should(Equal(v1alpha1.WindowPaused))
	})

	It("pauses a policy with a reason and an end, and resumes it: Pause a policy, Go on with a policy (behaviour 22)", func(ctx SpecContext) {
		f, p := waiting()
		tomorrow := metav1.NewTime(time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second))
		commands["Pause a policy"] = regexp.MustCompile(`20\d\d-[^"]*`).ReplaceAllString(commands["Pause a policy"], tomorrow.Format(time.RFC3339))
		run(ctx, f, p, "Pause a policy")
		f.need(f.nodes...)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False Paused"))
		Expect(f.condition(f.nodes[0], v1alpha1.NodeRebootPermitted).Message).To(And(
			HaveSuffix(": Black Friday"), ContainSubstring(tomorrow.Format("until Mon 2006-01-02 15:04:05 UTC")),
		))
		Eventually(windowOf).WithArguments(p).Should(Equal(v1alpha1.WindowPaused))
		run(ctx, f, p, "Go on with a policy")
		Eventually(f.granted).Should(Equal(f.nodes))
	})

	It("ends the back-off of an attempt that failed: Retry this node now", func(ctx SpecContext) {
		f, p := waiting(func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = new(int32(5)) })
		f.need(f.nodes...)
		attempt := func() int64 { return protocol.RecordOf(f.get(f.nodes[0])).GrantSeq() }
		for number := range int64(2) { // the command of the first attempt is in force no longer
			Eventually(attempt).Should(Equal(number + 1))
			f.start(f.nodes[0])
			f.abort(f.nodes[0])
			Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False BackingOff"))
			_, command, found := strings.Cut(f.condition(f.nodes[0], v1alpha1.NodeRebootPermitted).Message, "; to retry now: ")
			Expect(found).To(BeTrue())
			shell(ctx, f.nodes[0], p.Name, command+"\n")
		}
		Eventually(attempt).Should(Equal(int64(3)))
	})

	It("ends a halt: Resume after failures", func(ctx SpecContext) {
		one := int32(1)
		f, p := waiting(func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = &one })
		f.need(f.nodes...)
		Eventually(f.granted).Should(Equal(f.nodes))
		f.start(f.nodes[0])
		f.abort(f.nodes[0])
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False Halted"))
		Eventually(haltOf).WithArguments(p).Should(Equal("True TooManyFailures"))
		Expect(windowOf(p)).To(Equal(v1alpha1.WindowHalted))
		run(ctx, f, p, "Resume after failures")
		Eventually(haltOf).WithArguments(p).Should(Equal("False Resumed"))
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False BackingOff"))
		Eventually(func() map[string]string {
			var now v1alpha1.RebootPolicy
			Expect(api.Get(ctx, client.ObjectKeyFromObject(p), &now)).To(Succeed())
			return now.Annotations
		}).ShouldNot(HaveKey(v1alpha1.AnnotationResume))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElements("Halted", "Resumed"))
	})

	It("takes a node out of all policies, and back: Take a node out for good, Take it back in", func(ctx SpecContext) {
		var line v1alpha1.RebootPolicySpec
		Expect(yaml.UnmarshalStrict([]byte(blocksOf("yaml")["Take a node out for good"]), &line)).To(Succeed())
		f, p := waiting(func(s *v1alpha1.RebootPolicySpec) {
			s.NodeSelector.MatchExpressions = line.NodeSelector.MatchExpressions
		})
		Eventually(func() int32 { return policyStatus(p).Nodes.Selected }).Should(Equal(int32(1)))
		run(ctx, f, p, "Take a node out for good")
		f.need(f.nodes...)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False NoPolicy"))
		Eventually(func() int32 { return policyStatus(p).Nodes.Selected }).Should(BeZero())
		run(ctx, f, p, "Take it back in")
		Eventually(f.granted).Should(Equal(f.nodes))
	})

	It("changes the mode: Show me first, Do it", func(ctx SpecContext) {
		f, p := waiting()
		run(ctx, f, p, "Show me first")
		f.need(f.nodes...)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False DryRun"))
		Expect(f.granted()).To(BeEmpty())
		run(ctx, f, p, "Do it")
		Eventually(f.granted).Should(Equal(f.nodes))
	})
})

var _ = Describe("The commands", func() {
	It("are each run by a spec above, including those of the README", func() {
		commands := blocksOf("sh")
		source, err := os.ReadFile("operations_test.go")
		Expect(err).NotTo(HaveOccurred())
		for heading := range commands {
			Expect(string(source)).To(ContainSubstring(`run(ctx, f, p, "`+heading+`")`), "a command without a spec")
		}
		rows, err := document.Table(filepath.Join(testenv.Root(), "README.md"), "")
		Expect(err).NotTo(HaveOccurred())
		var shown int
		for _, row := range rows {
			if len(row) < 2 || !strings.HasPrefix(row[1], "`kubectl ") {
				continue
			}
			command, _, _ := strings.Cut(row[1][1:], "`")
			shown++
			Expect(commands).To(ContainElement(command+"\n"), "README has another command")
		}
		Expect(shown).To(BeNumerically(">=", 5))
	})
})

// blocksOf returns the code blocks of a language in docs/operations.md by heading.
func blocksOf(language string) map[string]string {
	GinkgoHelper()
	all, err := document.Blocks(filepath.Join(testenv.Root(), "docs", "operations.md"))
	Expect(err).NotTo(HaveOccurred())
	byHeading := map[string]string{}
	for _, b := range all {
		if b.Language == language {
			byHeading[b.Heading] += b.Text
		}
	}
	Expect(byHeading).NotTo(BeEmpty())
	return byHeading
}

// shell runs a command of the documentation for another node than n4 and another policy than
// workers.
func shell(ctx SpecContext, node, policy, command string) {
	GinkgoHelper()
	command = regexp.MustCompile(`\bn4\b`).ReplaceAllString(command, node)
	command = regexp.MustCompile(`\bworkers\b`).ReplaceAllString(command, policy)
	_, err := env.Shell(ctx, GinkgoT().TempDir(), command)
	Expect(err).NotTo(HaveOccurred())
}

// windowOf returns the state of the policy's window, or an empty string before the manager has
// written it.
func windowOf(p *v1alpha1.RebootPolicy) v1alpha1.WindowState {
	GinkgoHelper()
	if w := policyStatus(p).Window; w != nil {
		return w.State
	}
	return ""
}

func haltOf(p *v1alpha1.RebootPolicy) string {
	GinkgoHelper()
	c := conditionOf(p, v1alpha1.ConditionHalted)
	return string(c.Status) + " " + c.Reason
}
