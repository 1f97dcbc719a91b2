package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
)

// What one node's record reports costs that node its turn, and the policy neither its status nor a slot.
var _ = Describe("A record with impossible content", func() {
	forged := func(policy, node string, seq int64, at string) string {
		return fmt.Sprintf(`{"policy":%q,"seq":%d,"bootID":%q,"state":"Active"%s}`, policy, seq, bootID(node, 1), at)
	}

	It("keeps no other node of the policy from its reboot: grants and progress without a time", func() {
		f := makeFleet(3)
		f.annotate(f.nodes[0], v1alpha1.AnnotationGrant, forged(f.pool+"-workers", f.nodes[0], 1, ""))
		f.annotate(f.nodes[1], v1alpha1.AnnotationProgress, fmt.Sprintf(`{"seq":1,"phase":"Rebooting","bootID":%q}`, bootID(f.nodes[1], 1)))
		p := f.policy("workers")
		f.need(f.nodes[1:]...)
		Eventually(f.reason).WithArguments(f.nodes[2]).Should(Equal("True Granted"))
		Eventually(f.reason).WithArguments(f.nodes[1]).Should(Equal("False RecordUnreadable"))
		f.reboot(f.nodes[2])
		Eventually(func() int { return len(policyStatus(p).History) }).Should(Equal(1))
	})

	It("ends nothing in 2099, and gives its slot to the next", func() {
		f := makeFleet(2)
		p := f.policy("workers")
		f.need(f.nodes...)
		Eventually(f.granted).Should(HaveLen(1))
		ahead := f.granted()[0]
		f.start(ahead)
		value := f.progress(ahead, protocol.PhaseAborted, func(p *protocol.Progress) {
			p.Failures, p.Reason, p.At = 1, v1alpha1.ReasonDrainTimedOut, metav1.NewTime(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
		})
		f.patch(ahead, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationProgress: value}}, "spec": map[string]any{"unschedulable": nil},
		})
		Eventually(f.granted).Should(ContainElement(Not(Equal(ahead))))
		Eventually(func() []v1alpha1.PastReboot { return policyStatus(p).History }).Should(HaveLen(1))
		Expect(policyStatus(p).History[0].EndedAt.Time).To(BeTemporally("~", time.Now(), time.Minute))
	})

	DescribeTable("is overdue when the manager's clock reports it", func(year int) {
		minute := &metav1.Duration{Duration: time.Minute}
		f := makeFleet(3)
		p := f.policy("workers", limit(2), func(s *v1alpha1.RebootPolicySpec) {
			s.Drain, s.Reboot = &v1alpha1.Drain{Timeout: minute}, &v1alpha1.Reboot{Timeout: minute}
		})
		drains, reboots, waits := f.nodes[0], f.nodes[1], f.nodes[2]
		f.need(drains, reboots)
		Eventually(f.granted).Should(HaveLen(2))
		odd := func(p *protocol.Progress) { p.At = metav1.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
		f.start(reboots)
		f.commit(reboots, odd)
		f.annotate(drains, v1alpha1.AnnotationProgress, f.progress(drains, protocol.PhaseDraining, odd))
		f.need(waits)
		Eventually(f.reason).WithArguments(waits).Should(Equal("False BudgetExhausted"), "decided with what the other two show")
		Expect([]string{f.reason(drains), f.reason(reboots)}).To(HaveEach("True Granted"), "not at once")

		now.forward(time.Hour)
		f.annotate(waits, v1alpha1.AnnotationPaused, "true") // wakes the manager
		Eventually(f.reason).WithArguments(drains).Should(Equal("True DrainTimedOut"))
		Eventually(f.reason).WithArguments(reboots).Should(Equal("True RebootTimedOut"))
		Eventually(func() int32 { return policyStatus(p).Nodes.Failed }).Should(BeEquivalentTo(2))
		Expect(policyStatus(p).Grants).To(HaveLen(2), "the slots are kept")
	}, Entry("by a clock that is years ahead", 2099), Entry("by a clock that is years behind", 2001))

	DescribeTable("moves no estimate beyond what a status takes", func(hold func(f *fleet, p *v1alpha1.RebootPolicy), shows func(s v1alpha1.RebootPolicyStatus) bool) {
		f := makeFleet(2)
		p := f.policy("workers", limit(2), func(s *v1alpha1.RebootPolicySpec) { s.Failures = &v1alpha1.Failures{Max: new(int32(1))} })
		f.need(f.nodes...)
		Eventually(f.granted).Should(HaveLen(2))
		last := metav1.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		f.start(f.nodes[0])
		f.commit(f.nodes[0], func(p *protocol.Progress) { p.At, p.DrainStartedAt = last, &last })
		hold(f, p)
		Eventually(func() bool { return shows(policyStatus(p)) }).Should(BeTrue(), "the status is written")
		Expect(policyStatus(p).EstimatedCompletionAt).To(HaveValue(HaveField("Time", BeTemporally("<", time.Now().Add(48*time.Hour)))))
	},
		Entry("of a paused policy", func(_ *fleet, p *v1alpha1.RebootPolicy) {
			patch := `{"spec":{"pause":{"until":"9999-12-31T23:59:59-12:00"}}}`
			Expect(api.Patch(context.Background(), p, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}, func(s v1alpha1.RebootPolicyStatus) bool { return s.Window.State == v1alpha1.WindowPaused }),
		Entry("of a halted policy", func(f *fleet, _ *v1alpha1.RebootPolicy) {
			f.annotate(f.nodes[1], v1alpha1.AnnotationProgress, f.progress(f.nodes[1], protocol.PhaseAborted, func(p *protocol.Progress) {
				p.Failures, p.Reason, p.Cordoned = 1, v1alpha1.ReasonDrainTimedOut, false
			}))
		}, func(s v1alpha1.RebootPolicyStatus) bool {
			return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionHalted)
		}),
	)

	It("takes no slot of a policy that does not select the node, and is taken back", func() {
		other, f := makeFleet(1), makeFleet(1)
		p := f.policy("workers")
		at := fmt.Sprintf(`,"at":%q`, metav1.Now().UTC().Format(time.RFC3339))
		other.annotate(other.nodes[0], v1alpha1.AnnotationGrant, forged(p.Name, other.nodes[0], 7, at))
		Eventually(func() protocol.GrantState { return other.grant(other.nodes[0]).State }).Should(Equal(protocol.GrantCancelled))
		Expect(policyStatus(p).Seq).To(BeZero(), "the ledger has learned nothing of it")
		f.need(f.nodes...)
		Eventually(f.granted).Should(Equal(f.nodes))
	})

	It("does not keep a policy that is applied again from the nodes it left behind", func() {
		const far = 1 << 40
		f := makeFleet(3)
		at := fmt.Sprintf(`,"at":%q`, metav1.Now().UTC().Format(time.RFC3339))
		for i, name := range f.nodes[:2] {
			g := protocol.Grant{Policy: f.pool + "-workers", Seq: far + int64(i), BootID: "before", State: protocol.GrantFinished, At: metav1.Now()}
			f.annotate(name, v1alpha1.AnnotationGrant, g.String())
		}
		f.annotate(f.nodes[2], v1alpha1.AnnotationGrant, forged(f.pool+"-workers", f.nodes[2], 1<<60, at))
		f.policy("workers", limit(3))
		f.need(f.nodes...)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("True Granted"))
		Eventually(f.reason).WithArguments(f.nodes[1]).Should(Equal("True Granted"))
		Eventually(f.reason).WithArguments(f.nodes[2]).Should(Equal("False RecordUnreadable"))
	})

	DescribeTable("leaves seven of ten nodes to their reboots, whatever the other three show", func(seed int) {
		f := makeFleet(10)
		p := f.policy("workers", limit(4), func(s *v1alpha1.RebootPolicySpec) { s.Failures = &v1alpha1.Failures{Max: new(int32(4))} })
		odd, others := f.nodes[:3], f.nodes[3:]
		drawn := make([]corev1.Node, len(odd))
		for i, name := range odd {
			drawn[i] = controllers.OddNode.Example(len(odd)*seed + i)
			becomes(f, name, drawn[i], p.Name)
		}
		f.need(others...)
		Eventually(func() (left []string) {
			for _, name := range others {
				switch g := f.grant(name); {
				case g != nil && g.State == protocol.GrantFinished:
					continue
				case g != nil && g.State == protocol.GrantActive && g.BootID == f.get(name).Status.NodeInfo.BootID:
					f.reboot(name)
				}
				left = append(left, name)
			}
			return left
		}).Should(BeEmpty(), "all seven are rebooted")
		for i, name := range odd {
			if isPatchable(drawn[i]) {
				Eventually(f.reason).WithArguments(name).ShouldNot(BeEmpty(), "%s is reported", name)
				continue
			}
			Eventually(func() bool { return isNamed(policyStatus(p), name) }).Should(BeTrue(), "%s is reported where it can be", name)
		}
	}, Entry(nil, 1), Entry(nil, 4), Entry(nil, 7), Entry(nil, 10))
})

// becomes makes the node an odd one that needs a reboot, with records about this policy and this node's boot.
func becomes(f *fleet, name string, odd corev1.Node, policy string) {
	actual := strings.NewReplacer("workers", policy, "boot-", "boot-"+name+"-")
	annotations := map[string]any{}
	for key, value := range odd.Annotations {
		annotations[key] = actual.Replace(value)
	}
	var conditions []any
	for _, c := range odd.Status.Conditions {
		if c.Type == v1alpha1.NodeRebootRequired {
			c.Status = corev1.ConditionTrue
		}
		conditions = append(conditions, map[string]any{
			"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message, "lastTransitionTime": c.LastTransitionTime.Format(time.RFC3339),
		})
	}
	f.patch(name, map[string]any{
		"metadata": map[string]any{"annotations": annotations, "labels": odd.Labels}, "spec": map[string]any{"unschedulable": odd.Spec.Unschedulable},
	})
	f.status(name, map[string]any{"nodeInfo": map[string]any{"bootID": actual.Replace(odd.Status.NodeInfo.BootID)}, "conditions": conditions})
}

// isPatchable reports whether the API server can write the Node as JSON, which it has to for every patch: it stores times that
// RFC 3339 cannot write.
func isPatchable(n corev1.Node) bool {
	return !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		year := c.LastTransitionTime.UTC().Year()
		return year < 0 || year > 9999
	})
}

// isNamed reports whether the status reports of the node that it is held up, or that the manager cannot write to it.
func isNamed(s v1alpha1.RebootPolicyStatus, node string) bool {
	progressing := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing)
	return slices.ContainsFunc(s.Blocked, func(b v1alpha1.BlockedNodes) bool { return slices.Contains(b.Nodes, node) }) ||
		progressing.Reason == string(v1alpha1.ReasonNodeWriteRefused) && strings.Contains(progressing.Message, node)
}
