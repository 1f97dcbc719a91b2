package controllers_test

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
)

// question returns the manager's request to the node's agent, or nil without a readable one.
func (f *fleet) question(name string) *protocol.Preflight {
	q, err := protocol.ParsePreflight(f.get(name).Annotations)
	if err != nil {
		return nil
	}
	return q
}

// reply answers the request as the agent does, in the current boot.
func (f *fleet) reply(name string, edit ...func(*protocol.PreflightReport)) {
	GinkgoHelper()
	Eventually(f.question).WithArguments(name).ShouldNot(BeNil())
	node, q := f.get(name), f.question(name)
	r := protocol.PreflightReport{Policy: q.Policy, Revision: q.Revision, BootID: node.Status.NodeInfo.BootID}
	for _, e := range edit {
		e(&r)
	}
	f.annotate(name, v1alpha1.AnnotationReport, protocol.AgentReport{Preflight: &r}.String())
}

func onePod(name string) *protocol.NamedPods {
	return &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: name}}}
}

func blocks(r *protocol.PreflightReport) { r.Blocking = onePod("default/migrate-1") }

func waitsForPods(s *v1alpha1.RebootPolicySpec) {
	s.Gates = &v1alpha1.Gates{BlockingPods: []v1alpha1.BlockingPod{{
		PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "migration"}},
	}}}
}

var _ = Describe("Pods that keep their node", func() {
	It("let other nodes go first, with the same reason everywhere", func() {
		f := makeFleet(2)
		p := f.policy("workers", waitsForPods)
		Eventually(acceptedReason).WithArguments(p).Should(Equal("Accepted"))
		f.need(f.nodes...)
		f.show("False GateUnreachable", f.nodes...)
		f.reply(f.nodes[0], blocks)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False BlockingPod"))
		f.reply(f.nodes[1])
		Eventually(f.granted).Should(Equal(f.nodes[1:]))
		Expect(f.condition(f.nodes[0], v1alpha1.NodeRebootPermitted).Message).To(ContainSubstring("default/migrate-1"))
		for _, name := range []string{f.nodes[0], p.Name} {
			Eventually(reasonsOf).WithArguments(name).Should(ContainElement("BlockingPod"))
		}
		Eventually(blocked).WithArguments(p.Name).Should(Equal(map[string]float64{"BlockingPod": 1}))
		f.reboot(f.nodes[1])
		Eventually(f.granted).Should(BeEmpty())
		Expect(f.question(f.nodes[1])).To(BeNil(), "the question goes with the grant")

		By("the pod going")
		f.reply(f.nodes[0])
		Eventually(f.granted).Should(Equal(f.nodes[:1]))
	})

	It("are requested without extra writes, and not while the node's turn cannot come", func() {
		f := makeFleet(1)
		p := f.policy("workers", limit(0))
		writes := func() int { return len(requests.Matching(http.MethodPatch, "/nodes/"+f.nodes[0]+"/status")) }
		before := writes()
		f.need(f.nodes...)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False BudgetExhausted"))
		Expect(f.question(f.nodes[0])).NotTo(BeNil())
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = &v1alpha1.Pause{Reason: "holidays"} })
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False Paused"))
		Expect(f.question(f.nodes[0])).To(BeNil())
		Expect(writes() - before).To(Equal(2))
	})

	It("are reported even if somebody overwrites the records of agents", func() {
		f := makeFleet(2)
		p := f.policy("workers", limit(0))
		f.need(f.nodes...)
		f.annotate(f.nodes[0], v1alpha1.AnnotationReport, `{"preflight":{"policy":"`+strings.Repeat("x", 40_000))
		f.annotate(f.nodes[1], v1alpha1.AnnotationPreflight, "\"\x01")
		Eventually(f.question).WithArguments(f.nodes[1]).Should(HaveField("Policy", p.Name))
		f.reply(f.nodes[1], func(r *protocol.PreflightReport) {
			r.Kept = onePod(strings.Repeat("\x01ß", 900))
			r.Kept.Count = 1 << 30
		})
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False RecordUnreadable"))
		Eventually(f.reason).WithArguments(f.nodes[1]).Should(Equal("False UndrainablePod"))
	})

	It("go last if a budget is closed, are tried, and do not count for maxFailures", func() {
		f := makeFleet(2)
		p := f.policy("workers", limit(0), func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = new(int32(1)) })
		f.need(f.nodes...)
		f.reply(f.nodes[0], func(r *protocol.PreflightReport) { r.Closed = onePod("default/db-0") })
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { limit(1)(&p.Spec) })
		Eventually(f.granted).Should(Equal(f.nodes[1:]))
		f.reboot(f.nodes[1])
		Eventually(f.granted).Should(Equal(f.nodes[:1]))
		Expect(grantsOf(p)).To(ConsistOf(HaveField("Try", true)))

		By("the budget staying closed until the time-out")
		f.start(f.nodes[0])
		progress := f.get(f.nodes[0]).Annotations[v1alpha1.AnnotationProgress]
		f.annotate(f.nodes[0], v1alpha1.AnnotationProgress, strings.Replace(progress, "{", `{"try":true,`, 1))
		f.plays(f.nodes[0], agents.Abort(v1alpha1.ReasonUndrainablePod, "db-0 stays", time.Now()))
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False UndrainablePod"))
		Expect(f.condition(f.nodes[0], v1alpha1.NodeRebootPermitted).Message).To(
			MatchRegexp(`^cannot be drained: default/db-0; the last try failed, and the next is due \w+ \S+ \d\d:\d\d:\d\d UTC; to retry now: kubectl annotate node \S+ reboot-operator.io/retry=2 --overwrite$`))
		Expect(conditionOf(p, v1alpha1.ConditionHalted).Status).To(Equal(metav1.ConditionFalse))

		By("the budget opening")
		tried := f.grant(f.nodes[0]).Seq
		f.reply(f.nodes[0])
		Eventually(grantsOf).WithArguments(p).Should(ConsistOf(And(HaveField("Seq", BeNumerically(">", tried)), HaveField("Try", false))))
		Eventually(f.grant).WithArguments(f.nodes[0]).Should(And(HaveField("Seq", BeNumerically(">", tried)), HaveField("State", protocol.GrantActive)))
	})
})
