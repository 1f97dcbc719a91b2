package command_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
)

// paused keeps the manager from granting reboots.
var paused = fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{Reason: "test"} })

// halted returns a pool whose policy has halted, because its only node has failed too often.
func halted() *pool {
	GinkgoHelper()
	p := newPool(1, fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = new(int32(1)) }))
	p.needs(p.nodes[0])
	p.starts(p.nodes[0])
	p.plays(p.nodes[0], agents.Abort(v1alpha1.ReasonDrainTimedOut, "", time.Now()))
	Eventually(func() bool { return meta.IsStatusConditionTrue(p.get().Status.Conditions, v1alpha1.ConditionHalted) }).Should(BeTrue())
	return p
}

var _ = Describe("request", func() {
	It("writes the annotation, in its own name, and leaves one that is there", func() {
		p := newPool(2, paused)
		Expect(stays(v1alpha1.ReasonPaused, "request", "nodes/"+p.nodes[0], "node/"+p.nodes[1], "--reason=firmware")).
			To(Equal("node/" + p.nodes[0] + " reboot requested\nnode/" + p.nodes[1] + " reboot requested\n"))
		for _, name := range p.nodes {
			Expect(node(name).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRebootRequested, "firmware"))
		}
		Expect(node(p.nodes[0]).ManagedFields).To(ContainElement(HaveField("Manager", "kubectl-reboot")))

		Expect(stays(v1alpha1.ReasonPaused, "request", p.nodes[0], "--reason=other")).To(Equal("node/" + p.nodes[0] + " reboot already requested (firmware)\n"))
		Expect(node(p.nodes[0]).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRebootRequested, "firmware"))
	})

	It("writes nothing in a dry run, and shows what it would", func() {
		p := newPool(1, paused)
		for _, where := range []string{"client", "server"} {
			Expect(ok("request", p.nodes[0], "--reason=why", "--dry-run="+where)).
				To(Equal("node/" + p.nodes[0] + " reboot requested (" + where + " dry run)\n"))
			Expect(ok("request", p.nodes[0], "--reason=why", "--dry-run="+where, "-o", "yaml")).
				To(And(ContainSubstring("reboot-operator.io/reboot-requested: why"), ContainSubstring("kind: Node")))
		}
		Expect(node(p.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
		Expect(fails("request", p.nodes[0], "--reason=why", "--dry-run=maybe")).To(Equal("error: --dry-run \"maybe\" must be none, server or client\n"))
	})

	It("shows each object as a separate document", func() {
		p := newPool(2, paused)
		text := ok("request", p.nodes[0], p.nodes[1], "--reason=why", "--dry-run=server", "-o", "yaml")
		var names []string
		for document := range strings.SplitSeq(text, "\n---\n") {
			var n corev1.Node
			Expect(yaml.UnmarshalStrict([]byte(document), &n)).To(Succeed(), document)
			names = append(names, n.Name)
		}
		Expect(names).To(Equal(p.nodes))
	})

	It("writes nothing if it cannot show what it wrote", func() {
		p := newPool(1, paused)
		Expect(fails("request", p.nodes[0], "--reason=why", "-o", "wide")).To(HavePrefix("error: --output: unable to match a printer"))
		Expect(node(p.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
	})

	It("wants a reason, and goes on after a node that is not there", func() {
		p := newPool(1, paused)
		Expect(fails("request", p.nodes[0])).To(Equal("error: --reason is missing: it is shown wherever the request is reported\n"))
		Expect(fails("request")).To(HavePrefix("error: request requires at least one node, -l or --all: kubectl reboot request (NODE... | -l SELECTOR | --all) (--reason WHY | --cancel)"))
		Expect(fails("request", p.nodes[0], "--reason=urgent: why")).To(HavePrefix("error: --reason begins with urgent:, which makes a request urgent: use --urgent, "))
		Expect(fails("request", p.nodes[0], "--reason=false")).To(Equal("error: --reason \"false\" would not request a reboot: give the reason in other words\n"))
		stdout, stderr, err := run([]string{"request", "nowhere", p.nodes[0], "nobody", "--reason=why"})
		Expect(err).To(HaveOccurred())
		Expect(stdout).To(Equal("node/" + p.nodes[0] + " reboot requested\n"))
		Expect(stderr).To(HaveSuffix("\nerror: reading node nowhere: nodes \"nowhere\" not found\nerror: reading node nobody: nodes \"nobody\" not found\n"))
	})

	It("loses no race: what another client wrote in between stays", func() {
		p := newPool(1, paused)
		raced := sync.OnceFunc(func() {
			p.patch(p.nodes[0], map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.com/other": "writer"}}})
		})
		patches := 0
		_, stderr, err := run([]string{"request", p.nodes[0], "--reason=why"}, wrapped(func(r *http.Request) {
			if r.Method == http.MethodPatch {
				patches++
				raced()
			}
		}))
		Expect(err).NotTo(HaveOccurred(), stderr)
		Expect(patches).To(Equal(2), "the first lost, the second knew better")
		Expect(node(p.nodes[0]).Annotations).To(And(HaveKeyWithValue("example.com/other", "writer"), HaveKeyWithValue(v1alpha1.AnnotationRebootRequested, "why")))
	})
})

var _ = Describe("retry", func() {
	It("ends the back-off of the last attempt, and leaves a node that waits for something else", func() {
		p := newPool(2, fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = new(int32(5)) }))
		Expect(ok("retry", p.nodes[0])).To(HavePrefix("node/" + p.nodes[0] + " does not back off; to see what it waits for, run: kubectl reboot explain " + p.nodes[0]))
		p.needs(p.nodes[0])
		p.starts(p.nodes[0])
		p.plays(p.nodes[0], agents.Abort(v1alpha1.ReasonDrainTimedOut, "", time.Now()))
		Eventually(func() string { return ok("explain", p.nodes[0]) }).Should(ContainSubstring("kubectl reboot retry " + p.nodes[0]))
		Expect(ok("status", p.policy)).To(ContainSubstring("kubectl reboot retry " + p.nodes[0]))
		Expect(ok("retry", "--all", "--dry-run=client")).To(ContainSubstring("node/" + p.nodes[0] + " retried (client dry run)\n"))
		Expect(ok("retry", p.nodes[1], p.nodes[0])).To(MatchRegexp("^node/" + p.nodes[1] + " does not back off; .*\nnode/" + p.nodes[0] + " retried\n$"))
		Eventually(func() int64 { return protocol.RecordOf(node(p.nodes[0])).GrantSeq() }).Should(Equal(int64(2)))
		Expect(ok("retry", p.nodes[0])).To(HavePrefix("node/" + p.nodes[0] + " does not back off; "))
	})
})

var _ = Describe("pause and resume", func() {
	It("of a policy are spec.pause, whole", func() {
		p := newPool(1)
		until := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
		stdout, stderr, err := run([]string{"pause", "rbp/" + p.policy, "--reason=Black Friday", "--until=" + until.Format(time.RFC3339)}, func(c *call) { c.zone = fleettest.Berlin })
		Expect(err).NotTo(HaveOccurred(), stderr)
		Expect(stdout).To(Equal("rebootpolicy.reboot-operator.io/" + p.policy + " paused until " + until.In(fleettest.Berlin).Format("Mon 2006-01-02 15:04:05 MST") + "\n"))
		Expect(p.get().Spec.Pause.Reason).To(Equal("Black Friday"))
		Expect(p.get().Spec.Pause.Until.Time).To(BeTemporally("==", until))

		Expect(ok("pause", p.policy, "--reason=for good")).To(HaveSuffix(" paused\n"))
		Expect(p.get().Spec.Pause).To(Equal(&v1alpha1.Pause{Reason: "for good"}), "the end of the old pause is not the new one's")
		Expect(ok("pause", p.policy, "--reason=for good")).To(HaveSuffix(" already paused\n"))

		Expect(ok("resume", p.policy)).To(HaveSuffix(" resumed: no longer paused (for good)\n"))
		Expect(p.get().Spec.Pause).To(BeNil())
		Expect(ok("resume", p.policy)).To(HaveSuffix(" is neither paused nor halted\n"))
	})

	It("of a node are the annotation", func() {
		p := newPool(1)
		Expect(ok("pause", "node/"+p.nodes[0])).To(Equal("node/" + p.nodes[0] + " paused\n"))
		Expect(v1alpha1.NodeIsPaused(node(p.nodes[0]).Annotations, time.Now())).To(BeTrue())
		Expect(ok("pause", p.nodes[0])).To(Equal("node/" + p.nodes[0] + " already paused\n"))
		Expect(ok("resume", p.nodes[0])).To(Equal("node/" + p.nodes[0] + " resumed\n"))
		Expect(node(p.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationPaused))
		Expect(ok("resume", p.nodes[0])).To(Equal("node/" + p.nodes[0] + " is not paused\n"))
	})

	It("of a node end by themselves", func() {
		p := newPool(1, paused)
		Expect(ok("pause", p.nodes[0], "--until=2d", "--reason=disk swap")).To(MatchRegexp(`^node/` + p.nodes[0] + ` paused until \w+ \S+ \S+ UTC\n$`))
		value := node(p.nodes[0]).Annotations[v1alpha1.AnnotationPaused]
		Expect(value).To(MatchRegexp(`^until=\S+Z disk swap$`))
		until, _ := v1alpha1.NodePause(node(p.nodes[0]).Annotations)
		Expect(until).To(BeTemporally("~", time.Now().Add(48*time.Hour), time.Minute))
		Expect(ok("pause", p.nodes[0], "--until="+until.Format(time.RFC3339))).To(ContainSubstring(" already paused until "))
		Expect(ok("pause", p.nodes[0])).To(HaveSuffix(" paused\n"), "without an end")
		Expect(fails("pause", p.nodes[0], "--reason=until=tomorrow")).To(ContainSubstring("use --until"))
	})

	It("of a node that are over pause nothing", func() {
		p := newPool(1, paused)
		p.patch(p.nodes[0], map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationPaused: "until=2020-01-01T00:00:00Z"}}})
		Expect(ok("pause", p.nodes[0])).To(HaveSuffix(" paused\n"))
	})

	It("that are over are removed by resume", func() {
		p := newPool(1, paused)
		p.patch(p.nodes[0], map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationPaused: "until=2020-01-01T00:00:00Z"}}})
		Expect(stays(v1alpha1.ReasonPaused, "resume", p.nodes[0])).To(HaveSuffix(" is not paused; removed its pause, which ended Wed 2020-01-01 00:00:00 UTC\n"))
		Expect(node(p.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationPaused))
		Expect(stays(v1alpha1.ReasonPaused, "resume", p.nodes[0])).To(HaveSuffix(" is not paused\n"))

		policy := p.get()
		policy.Spec.Pause = &v1alpha1.Pause{Until: &metav1.Time{Time: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}}
		Expect(api.Update(context.Background(), policy)).To(Succeed())
		Expect(ok("resume", p.policy, "--halt")).To(HaveSuffix(" is not halted\n"))
		Expect(p.get().Spec.Pause).NotTo(BeNil(), "--halt ends no pause")
		Expect(ok("resume", p.policy)).To(HaveSuffix(" is neither paused nor halted; removed its pause, which ended Wed 2020-01-01 00:00:00 UTC\n"))
		Expect(p.get().Spec.Pause).To(BeNil())
		Expect(ok("resume", p.policy)).To(HaveSuffix(" is neither paused nor halted\n"))
	})

	It("of a node carry the reason (behaviour 23)", func() {
		p := newPool(1)
		Expect(ok("pause", p.nodes[0])).To(HaveSuffix(" paused\n"))
		Expect(ok("pause", p.nodes[0], "--reason=disk swap")).To(HaveSuffix(" paused\n"), "another reason is news")
		Expect(node(p.nodes[0]).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationPaused, "disk swap"))
		Expect(ok("pause", p.nodes[0], "--reason=disk swap")).To(HaveSuffix(" already paused\n"))
		Expect(ok("pause", p.nodes[0])).To(HaveSuffix(" already paused\n"), "the reason stays")
		p.needs(p.nodes[0])
		Expect(ok("explain", p.nodes[0])).To(ContainSubstring("the node is paused: disk swap; "))
		Expect(ok("resume", p.nodes[0])).To(HaveSuffix(" resumed\n"))
		Expect(fails("pause", p.nodes[0], "--reason=false")).To(ContainSubstring(`--reason "false" does not pause a node`))
	})

	It("do not end a pause that does not exist", func() {
		p := newPool(1)
		n := node(p.nodes[0])
		n.Annotations = map[string]string{v1alpha1.AnnotationPaused: "false"}
		Expect(api.Update(context.Background(), n)).To(Succeed())
		Expect(ok("resume", p.nodes[0])).To(HaveSuffix(" is not paused\n"))
	})

	It("distinguishes a node from a policy", func() {
		p := newPool(1)
		twin := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.policy}}
		Expect(api.Create(context.Background(), twin)).To(Succeed())
		DeferCleanup(func() { Expect(api.Delete(context.Background(), twin)).To(Succeed()) })
		Expect(fails("pause", p.policy)).
			To(Equal("error: both a node and a policy are named \"" + p.policy + "\": use node/" + p.policy + " or rbp/" + p.policy + "\n"))
		Expect(fails("pause", "nowhere")).To(Equal("error: no node and no policy is named \"nowhere\"\n"))
		Expect(fails("pause", "pod/x")).To(Equal("error: \"pod/x\" must be node/NAME or rbp/NAME\n"))
		Expect(ok("pause", "node/"+p.policy)).To(Equal("node/" + p.policy + " paused\n"))
		Expect(ok("pause", "rebootpolicy/"+p.policy)).To(HavePrefix("rebootpolicy.reboot-operator.io/" + p.policy + " paused"))
	})

	It("end a halt with the annotation, which the manager handles", func() {
		p := halted()
		Expect(ok("status", p.policy)).To(And(ContainSubstring("halted"), ContainSubstring(`kubectl reboot resume rbp/`+p.policy+` --halt --reason=`)))
		Expect(ok("resume", p.policy, "--reason=disk replaced")).To(MatchRegexp(` resumed: no longer halted \(1 nodes? failed.*\)\n$`))
		Eventually(func() string {
			c := meta.FindStatusCondition(p.get().Status.Conditions, v1alpha1.ConditionHalted)
			return string(c.Status) + " " + c.Message
		}).Should(Equal("False resumed: disk replaced"))
	})

	It("say if a reason is not stored", func() {
		p := newPool(1, paused)
		Expect(ok("resume", p.policy, "--reason=why")).To(HaveSuffix(" resumed: no longer paused (test), but the reason was not stored, because only the end of a halt stores one\n"))
	})

	It("end the pause or the halt, never both unasked", func() {
		p := halted()
		Expect(ok("resume", p.policy, "--pause")).To(MatchRegexp(` is not paused; still halted \(1 nodes? failed.*\)\n$`))
		Expect(ok("pause", p.policy, "--reason=Black Friday")).To(HaveSuffix(" paused\n"))
		before := p.get()

		By("asking which where both are in force")
		Expect(fails("resume", p.policy)).To(And(ContainSubstring("paused (Black Friday)"), MatchRegexp(`halted \(1 nodes? failed`),
			HaveSuffix("; end one of them with kubectl reboot resume rbp/"+p.policy+" --pause --kubeconfig="+admin+", or kubectl reboot resume rbp/"+p.policy+" --halt --kubeconfig="+admin+"\n")))
		Expect(p.get().Spec).To(Equal(before.Spec))
		Expect(p.get().Annotations).To(Equal(before.Annotations))
		Expect(ok("status", p.policy)).To(And(ContainSubstring("is paused: Black Friday"), ContainSubstring("has halted: "),
			ContainSubstring("kubectl reboot resume rbp/"+p.policy+" --pause"), ContainSubstring("kubectl reboot resume rbp/"+p.policy+" --halt")))

		By("ending the one that is named")
		Expect(ok("resume", p.policy, "--halt", "--reason=disk replaced")).
			To(MatchRegexp(` no longer halted \(1 nodes? failed.*\); still paused \(Black Friday\)\n$`))
		Eventually(func() bool { return meta.IsStatusConditionTrue(p.get().Status.Conditions, v1alpha1.ConditionHalted) }).Should(BeFalse())
		Expect(p.get().Spec.Pause).NotTo(BeNil())
		Expect(ok("resume", p.policy, "--halt")).To(HaveSuffix(" is not halted; still paused (Black Friday)\n"))
		Expect(ok("resume", p.policy)).To(HaveSuffix(" resumed: no longer paused (Black Friday)\n"))
		Expect(fails("resume", p.nodes[0], "--halt")).To(ContainSubstring("a node cannot be halted: leave out --halt, or resume its policy"))
	})

	It("end both where both are named", func() {
		p := halted()
		Expect(ok("pause", p.policy)).To(HaveSuffix(" paused\n"))
		Expect(ok("resume", p.policy, "--halt", "--pause")).To(MatchRegexp(` resumed: no longer paused; no longer halted \(1 nodes? failed.*\)\n$`))
		Expect(p.get().Spec.Pause).To(BeNil())
	})

	It("refuse an invalid end", func() {
		p := newPool(1)
		Expect(fails("pause", p.policy, "--until=tomorrow")).
			To(Equal("error: --until \"tomorrow\" must be an instant such as 2026-12-01T06:00:00+01:00, or a duration such as 2h or 2d\n"))
		Expect(fails("pause", p.policy, "--until=2020-01-01T00:00:00Z")).To(Equal("error: --until \"2020-01-01T00:00:00Z\" is past\n"))
		Expect(ok("pause", p.policy, "--until=2d")).To(ContainSubstring(" paused until "))
		Expect(p.get().Spec.Pause.Until.Time).To(BeTemporally("~", time.Now().Add(48*time.Hour), time.Minute))
		Expect(ok("pause", p.policy, "--until=90m")).To(ContainSubstring(" paused until "))
		Expect(p.get().Spec.Pause.Until.Time).To(BeTemporally("~", time.Now().Add(90*time.Minute), time.Minute))
	})
})
