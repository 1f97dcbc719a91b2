package command_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// begin starts a long-running command, and returns its output and its end.
func begin(args ...string) (*output, chan error) {
	out, done := &output{}, make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	go func() {
		_, _, err := run(args, until(ctx), func(c *call) { c.out, c.screen = out, terminal.Pipe(out) })
		done <- err
	}()
	return out, done
}

var _ = Describe("A command for many", func() {
	It("writes to the nodes of a selector, or to all", func() {
		p, other := newPool(2, paused), newPool(1, paused)
		byLabel := fleettest.PoolLabel + "=" + p.policy
		Expect(ok("request", "-l", byLabel, "--reason=why", "--dry-run=server")).
			To(Equal("node/" + p.nodes[0] + " reboot requested (server dry run)\nnode/" + p.nodes[1] + " reboot requested (server dry run)\n"))
		Expect(node(p.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))

		Expect(stays(v1alpha1.ReasonPaused, "request", "-l", byLabel, "--reason=why", "--yes")).
			To(Equal("node/" + p.nodes[0] + " reboot requested\nnode/" + p.nodes[1] + " reboot requested\n"))
		Expect(node(other.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
		Expect(stays(v1alpha1.ReasonPaused, "request", "--all", "--reason=all", "--yes")).To(And(
			ContainSubstring("node/"+p.nodes[1]+" reboot already requested (why)\n"), ContainSubstring("node/"+other.nodes[0]+" reboot requested\n")))

		Expect(ok("pause", "-l", byLabel, "--reason=disk swap")).To(Equal("node/" + p.nodes[0] + " paused\nnode/" + p.nodes[1] + " paused\n"))
		Expect(node(p.nodes[1]).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationPaused, "disk swap"))
		Expect(stays(v1alpha1.ReasonPaused, "resume", "-l", byLabel, "--yes")).To(Equal("node/" + p.nodes[0] + " resumed\nnode/" + p.nodes[1] + " resumed\n"))
	})

	It("says how many nodes it changes, and asks first", func() {
		p := newPool(2, paused)
		request := []string{"request", "-l", fleettest.PoolLabel + "=" + p.policy, "--reason=why"}
		answer := func(text string) func(*call) { return func(c *call) { c.in = strings.NewReader(text) } }
		for _, no := range []string{"", "n\n", "\n"} {
			stdout, stderr, err := run(request, answer(no))
			Expect(err).To(HaveOccurred())
			Expect(stdout).To(BeEmpty())
			Expect(stderr).To(Equal("This requests a reboot of 2 nodes. Continue? [y/N] error: nothing was written: answer y, or use --yes\n"))
			Expect(node(p.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
		}
		stdout, _, err := run(request, answer("y\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(stdout).To(Equal("node/" + p.nodes[0] + " reboot requested\nnode/" + p.nodes[1] + " reboot requested\n"))
	})

	It("removes requests by annotation and by label, and says what has begun", func() {
		p := newPool(3, paused)
		stays(v1alpha1.ReasonPaused, "request", p.nodes[0], "--reason=why")
		p.patch(p.nodes[1], map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelRebootRequested: "firmware"}}})
		Expect(ok("request", "--cancel", p.nodes[0], p.nodes[1], p.nodes[2])).To(Equal("node/" + p.nodes[0] + " request cancelled (why)\nnode/" +
			p.nodes[1] + " request cancelled (firmware)\nnode/" + p.nodes[2] + " no reboot was requested\n"))
		Expect(node(p.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
		Expect(node(p.nodes[1]).Labels).NotTo(HaveKey(v1alpha1.LabelRebootRequested))
		Expect(fails("request", "--cancel", p.nodes[0], "--reason=why")).To(HavePrefix("error: --cancel removes requests"))

		busy := newPool(1)
		ok("request", busy.nodes[0], "--reason=why")
		busy.needs(busy.nodes[0])
		expectPermitted(busy.nodes[0], "True Granted")
		busy.starts(busy.nodes[0])
		Expect(ok("request", "--cancel", busy.nodes[0])).To(ContainSubstring("request cancelled (why); its drain goes on; to stop it, run: kubectl reboot abort " + busy.nodes[0]))
	})

	It("stops at an interrupt, and reports once how many are left", func() {
		p := newPool(4, paused)
		for _, args := range [][]string{append([]string{"request", "--reason=why"}, p.nodes...), {"request", "-l", fleettest.PoolLabel + "=" + p.policy, "--reason=why", "--yes"}} {
			ctx, interrupt := context.WithCancel(context.Background())
			_, stderr, err := run(append(args, "--dry-run=server"), until(ctx), wrapped(func(r *http.Request) {
				if r.Method == http.MethodPatch {
					interrupt()
				}
			}))
			Expect(err).To(HaveOccurred())
			Expect(stderr).To(MatchRegexp(`^error: writing node ` + p.nodes[0] + `: .*context canceled\nerror: interrupted: 3 of 4 are unchanged\n$`))
		}
	})

	It("refuses an empty selection, and two selections", func() {
		p := newPool(1, paused)
		Expect(fails("pause")).To(HavePrefix("error: pause requires a policy or a node, -l or --all: "))
		for _, args := range [][]string{{"-l", "a=b", "--all"}, {p.nodes[0], "--all"}, {p.nodes[0], "-l", "a=b"}} {
			Expect(fails(append([]string{"pause"}, args...)...)).To(Equal("error: names, --selector and --all exclude each other\n"))
		}
		Expect(fails("pause", "-l", "example.com/pool=nobody")).To(Equal("error: nothing matches the selector\n"))
		Expect(fails("pause", "-l", "a in")).To(HavePrefix("error: --selector \""))
		q := newPool(2)
		byLabel := fleettest.PoolLabel + "=" + q.policy
		Expect(fails("pause", "-l", byLabel, "--reason=false")).To(HavePrefix("error: --reason \"false\" does not pause a node"))
		Expect(fails("resume", "-l", byLabel, "--halt")).To(Equal("error: a node cannot be halted: leave out --halt, or resume its policy\n"))
		Expect(p.get().Spec.Pause.Reason).To(Equal("test"))
		Expect(fails("pause", "--all", "--timeout=1m")).To(Equal("error: --timeout is for --wait\n"))
		Expect(fails("pause", "--all", "--wait", "--dry-run=client")).To(HavePrefix("error: --wait and --dry-run exclude each other"))
		Expect(fails("pause", "--all", "--wait", "-o", "json")).To(Equal("error: --wait shows text only: leave out --output\n"))
	})
})

var _ = Describe("request", func() {
	It("refuses a node that runs Windows, which cannot have an agent", func() {
		p := newPool(2, paused)
		p.patch(p.nodes[1], map[string]any{"metadata": map[string]any{"labels": map[string]any{corev1.LabelOSStable: "windows"}}})
		stdout, stderr, err := run([]string{"request", "--all", "--reason=why", "--yes"})
		Expect(err).To(HaveOccurred())
		Expect(stdout).To(Equal("node/" + p.nodes[0] + " reboot requested\n"))
		Expect(stderr).To(HaveSuffix("\nerror: writing node " + p.nodes[1] + ": the node runs Windows, on which agents cannot run, so the operator ignores it\n"))
		Expect(node(p.nodes[1]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
	})
})

var _ = Describe("request --urgent", func() {
	It("makes the request of nodes urgent whose policy allows it, and refuses others", func() {
		allows := func(p *v1alpha1.RebootPolicy) {
			p.Spec.Urgent = &v1alpha1.Urgent{Requested: &v1alpha1.UrgentNodes{Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows}}}
		}
		p, other := newPool(2, paused, allows), newPool(1, paused)
		Expect(stays(v1alpha1.ReasonPaused, "request", p.nodes[0], "--reason=firmware")).To(Equal("node/" + p.nodes[0] + " reboot requested\n"))
		byLabel := fleettest.PoolLabel + "=" + p.policy
		Expect(stays(v1alpha1.ReasonPaused, "request", "-l", byLabel, "--yes", "--urgent", "--reason=CVE-2026-12345")).
			To(Equal("node/" + p.nodes[0] + " reboot requested urgently\nnode/" + p.nodes[1] + " reboot requested urgently\n"))
		Expect(node(p.nodes[0]).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRebootRequested, "urgent: CVE-2026-12345"))
		Expect(stays(v1alpha1.ReasonPaused, "request", p.nodes[0], "--urgent", "--reason=again")).
			To(Equal("node/" + p.nodes[0] + " reboot already requested (urgent: CVE-2026-12345)\n"))

		Expect(fails("request", other.nodes[0], "--urgent", "--reason=why")).To(ContainSubstring("policy " + other.policy + " does not allow urgent requests: kubectl patch rbp " + other.policy + " "))
		Expect(node(other.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
		Expect(fails("request", p.nodes[0], "--urgent")).To(HavePrefix("error: --reason is missing"))
	})
})

var _ = Describe("pause --all", func() {
	It("stops every policy, and keeps a pause that lasts as long; resume --all ends them", func() {
		open, held := newPool(0), newPool(0, paused)
		short := newPool(0)
		ok("pause", short.policy, "--until=5m", "--reason=short")
		out := ok("pause", "--all", "--reason=incident")
		const rbp = "rebootpolicy.reboot-operator.io/"
		Expect(out).To(And(ContainSubstring(rbp+open.policy+" paused\n"), ContainSubstring(rbp+short.policy+" paused\n"),
			ContainSubstring(rbp+held.policy+" already paused (test)\n")))
		Expect(open.get().Spec.Pause).To(Equal(&v1alpha1.Pause{Reason: "incident"}))
		Expect(short.get().Spec.Pause).To(Equal(&v1alpha1.Pause{Reason: "incident"}), "it would have ended")
		Expect(held.get().Spec.Pause).To(Equal(&v1alpha1.Pause{Reason: "test"}))
		Expect(ok("pause", "--all", "--until=2h")).To(ContainSubstring(rbp + open.policy + " already paused (incident)\n"))

		Expect(ok("resume", "--all", "--yes")).To(ContainSubstring(rbp + open.policy + " resumed: no longer paused (incident)\n"))
		Expect(open.get().Spec.Pause).To(BeNil())
		Expect(held.get().Spec.Pause).To(BeNil())
	})

	It("ends spec.urgent.all if that would ignore the pause", func() {
		urgent := func(ignore v1alpha1.UrgentIgnore) func(*v1alpha1.RebootPolicy) {
			return fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: metav1.NewTime(time.Now().Add(time.Hour)), Reason: "CVE", Ignore: []v1alpha1.UrgentIgnore{ignore}}}
			})
		}
		pauses, windows := newPool(0, urgent(v1alpha1.UrgentIgnoresPause)), newPool(0, urgent(v1alpha1.UrgentIgnoresWindows))
		held := newPool(0, paused, urgent(v1alpha1.UrgentIgnoresPause))
		Expect(ok("status", pauses.policy)).To(ContainSubstring("! policy " + pauses.policy + " is urgent until "))
		Expect(ok("pause", "--all", "--reason=incident", "--until=2h")).To(And(MatchRegexp(pauses.policy+" paused until .*, no longer urgent\n"),
			ContainSubstring(held.policy+" already paused (test), no longer urgent\n")))
		Expect(pauses.get().Spec.Urgent.All).To(BeNil())
		Expect(held.get().Spec.Urgent.All).To(BeNil())
		Expect(held.get().Spec.Pause).To(Equal(&v1alpha1.Pause{Reason: "test"}), "it lasts longer")
		Expect(windows.get().Spec.Urgent.All).NotTo(BeNil(), "the pause counts")
	})

	It("waits until no node is disrupted any more", func() {
		p := newPool(2)
		p.needs(p.nodes[0])
		p.needs(p.nodes[1])
		expectPermitted(p.nodes[0], "True Granted")
		p.starts(p.nodes[0])
		p.commits(p.nodes[0])
		out, done := begin("pause", "--all", "--wait")
		Eventually(out.String).Should(And(ContainSubstring("  "+p.nodes[0]+": Rebooting\n"), ContainSubstring("  1 of 2 done, 1 in progress, 1 Paused\n")))
		Expect(done).NotTo(Receive())
		p.boots(p.nodes[0])
		Eventually(done).Should(Receive(BeNil()))
		Expect(out.String()).To(And(ContainSubstring("  "+p.nodes[0]+": back in service\n"), HaveSuffix("  2 of 2 done, 1 Paused\n")))
	})
})

var _ = Describe("pause --wait", func() {
	It("waits for a node that has left its policy in the middle of its reboot", func() {
		p := newPool(1)
		name := p.nodes[0]
		p.needs(name)
		expectPermitted(name, "True Granted")
		p.starts(name)
		p.commits(name)
		p.patch(name, map[string]any{"metadata": map[string]any{"labels": map[string]any{fleettest.PoolLabel: "left"}}})
		out, done := begin("pause", "rbp/"+p.policy, "--wait")
		Eventually(out.String).Should(ContainSubstring("  0 of 1 done, 1 in progress\n"))
		Expect(done).NotTo(Receive())
		p.boots(name)
		Eventually(done).Should(Receive(BeNil()))
	})
})

var _ = Describe("resume --all", func() {
	It("ends no halt", func() {
		p := halted()
		ok("pause", "--all")
		Expect(ok("resume", "--all", "--yes")).To(MatchRegexp(p.policy + ` no longer paused; still halted \(1 nodes? failed.*\)\n`))
	})
})

var _ = Describe("request --wait", func() {
	It("reports progress until the nodes are back", func() {
		p := newPool(2)
		out, done := begin("request", "--all", "--yes", "--reason=why", "--wait")
		Eventually(out.String).Should(ContainSubstring("  0 of 2 done, 2 requested\n"), "the agents have not answered")
		p.needs(p.nodes[0])
		expectPermitted(p.nodes[0], "True Granted")
		p.needs(p.nodes[1])
		Eventually(out.String).Should(And(ContainSubstring("  "+p.nodes[0]+": Granted\n"), ContainSubstring("  0 of 2 done, 1 in progress, 1 BudgetExhausted\n")))
		for i, name := range p.nodes {
			Eventually(out.String).Should(ContainSubstring("  " + name + ": Granted\n"))
			expectPermitted(name, "True Granted")
			p.starts(name)
			Eventually(out.String).Should(ContainSubstring("  " + name + ": Granted → Draining\n"))
			p.commits(name)
			Expect(done).NotTo(Receive())
			p.boots(name)
			Eventually(out.String).Should(ContainSubstring("  " + name + ": back in service\n"))
			Eventually(out.String).Should(ContainSubstring([]string{"  1 of 2 done", "  2 of 2 done\n"}[i]))
		}
		Eventually(done).Should(Receive(BeNil()))
	})

	It("waits until the nodes are in service, and reports what keeps them out", func() {
		p := newPool(1, paused)
		name := p.nodes[0]
		p.patch(name, map[string]any{"spec": map[string]any{"unschedulable": true}, "metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationRebootRequested: "why"}}})
		p.patch(name, map[string]any{"status": map[string]any{"conditions": []any{testenv.Condition(corev1.NodeReady, "False", "KubeletNotReady"), testenv.Condition(v1alpha1.NodeRebootRequired, "Unknown", "NoEngine")}}})
		out, done := begin("request", name, "--reason=why", "--wait")
		Eventually(out.String).Should(HaveSuffix("  0 of 1 done, 1 requested\n"))
		p.patch(name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationRebootRequested: nil}}})
		Eventually(out.String).Should(HaveSuffix("  0 of 1 done, 1 of unknown need\n"))
		p.boots(name)
		Eventually(out.String).Should(HaveSuffix("  0 of 1 done, 1 not Ready\n"))
		p.patch(name, map[string]any{"status": map[string]any{"conditions": []any{testenv.Condition(corev1.NodeReady, "True", "KubeletReady")}}})
		Eventually(out.String).Should(HaveSuffix("  0 of 1 done, 1 cordoned\n"))
		Expect(done).NotTo(Receive())
		p.patch(name, map[string]any{"spec": map[string]any{"unschedulable": nil}})
		Eventually(done).Should(Receive(BeNil()))
		Expect(out.String()).To(HaveSuffix("  1 of 1 done\n"))
	})

	It("waits for a node whose agent has never reported", func() {
		p := newPool(1, paused)
		silent := node(p.nodes[0])
		silent.Status.Conditions = silent.Status.Conditions[:1]
		Expect(api.Status().Update(context.Background(), silent)).To(Succeed())
		_, stderr, err := run([]string{"resume", "rbp/" + p.policy, "--wait", "--timeout=2s"})
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(Equal("error: --wait ended before all nodes were done: 0 of 1 done, 1 of unknown need\n"))
	})

	It("fails when its time is over, or a node is deleted", func() {
		p := newPool(1, paused)
		_, stderr, err := run([]string{"request", p.nodes[0], "--reason=why", "--wait", "--timeout=2s"})
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(HavePrefix("error: --wait ended before "))

		out, done := begin("request", p.nodes[0], "--reason=why", "--wait")
		Eventually(out.String).Should(ContainSubstring("  0 of 1 done, 1 requested\n"))
		Expect(api.Delete(context.Background(), node(p.nodes[0]))).To(Succeed())
		Eventually(done).Should(Receive(MatchError("--wait ended before all nodes were done: deleted: node " + p.nodes[0])))
	})
})

var _ = Describe("abort", func() {
	cordon := map[string]any{"spec": map[string]any{"unschedulable": true}}
	It("stops a drain, and nothing else", func() {
		p := newPool(1)
		name := p.nodes[0]
		Expect(ok("abort", name)).To(Equal("node/" + name + " is not draining\n"))
		p.needs(name)
		expectPermitted(name, "True Granted")
		Expect(fails("abort", name)).To(ContainSubstring("has not begun to drain; to cancel the grant, run: kubectl reboot pause node/" + name + " --kubeconfig=" + admin))

		p.starts(name)
		Expect(ok("pause", name, "--dry-run=client")).To(ContainSubstring(" paused; its drain goes on; to stop it, run: kubectl reboot abort " + name + " --kubeconfig=" + admin))
		Expect(ok("abort", "node/"+name, "--dry-run=server")).To(Equal("node/" + name + " drain stopped (server dry run)\n"))
		Expect(node(name).Spec.Unschedulable).To(BeTrue())
		Expect(ok("abort", name)).To(Equal("node/" + name + " drain stopped\n"))
		Expect(node(name).Spec.Unschedulable).To(BeFalse(), "that is what its agent stops at")
		Expect(ok("abort", name)).To(Equal("node/" + name + " drain already being stopped\n"))

		p.patch(name, cordon)
		p.commits(name)
		Expect(ok("pause", name, "--dry-run=client")).To(ContainSubstring(" paused; its reboot has begun and cannot be stopped"))
		Expect(ok("pause", p.policy, "--dry-run=client")).To(ContainSubstring(" paused; reboots that have begun go on (1 granted)"))
		Expect(fails("abort", name)).To(ContainSubstring("the drain is over and the node is rebooting, which cannot be stopped"))
		Expect(node(name).Spec.Unschedulable).To(BeTrue())

		By("naming no way back once the machine is")
		p.patch(name, map[string]any{"status": map[string]any{"nodeInfo": map[string]any{"bootID": "another"}}})
		Expect(ok("abort", name)).To(Equal("node/" + name + " is not draining\n"))
		Expect(ok("pause", name, "--dry-run=client")).To(HaveSuffix(" paused (client dry run)\n"))

		By("leaving a cordon whose owner is not known")
		p.annotates(name, v1alpha1.AnnotationProgress, "{")
		Expect(fails("abort", name)).To(And(ContainSubstring("the agent ends its drain when it reads this"), ContainSubstring("kubectl reboot explain "+name)))
		Expect(node(name).Spec.Unschedulable).To(BeTrue())
	})

	It("names the way back if before-hooks run", func() {
		p := newPool(1, fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/backup-done"}}
		}))
		name := p.nodes[0]
		p.needs(name)
		Eventually(func() map[string]string { return node(name).Annotations }).Should(HaveKey(v1alpha1.AnnotationHooks))
		Expect(fails("abort", name)).To(ContainSubstring("has not begun to drain; to cancel the grant, run: kubectl reboot pause node/" + name + " --kubeconfig=" + admin))
	})

	It("leaves a cordon that was there before the drain", func() {
		p := newPool(1)
		name := p.nodes[0]
		p.needs(name)
		expectPermitted(name, "True Granted")
		p.patch(name, cordon)
		p.starts(name)
		Expect(fails("abort", name)).To(ContainSubstring("the node was cordoned before the drain began; to stop the drain and remove that cordon, run: kubectl uncordon " + name + " --kubeconfig=" + admin))
		Expect(node(name).Spec.Unschedulable).To(BeTrue())
	})
})
