package controllers_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

var _ = Describe("Manager", func() {
	ctx := context.Background()

	It("reboots three nodes strictly in turn, and reports why the others wait (behaviours 14, 49, 59)", func() {
		f := makeFleet(3)
		p := f.policy("workers")
		f.need(f.nodes...)
		for range f.nodes {
			name := f.next()
			for _, other := range f.nodes {
				if other != name && f.condition(other, v1alpha1.NodeRebootRequired).Status == corev1.ConditionTrue {
					Eventually(f.reason).WithArguments(other).Should(Equal("False BudgetExhausted"))
				}
			}
			Expect(f.reason(name)).To(Equal("True Granted"), "grant and condition are one write")
			f.reboot(name)
			f.finishes(name)
			Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
			Eventually(f.reason).WithArguments(name).Should(BeEmpty())
		}
		Eventually(policyStatus).WithArguments(p).Should(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
			"Grants": BeEmpty(), "Seq": Equal(int64(3)), "Limit": Equal(int32(1)), "LastRebootAt": Not(BeNil()),
			"History": HaveLen(3),
		}))
		for i, past := range policyStatus(p).History {
			Expect(past).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
				"Seq": Equal(int64(i + 1)), "Result": Equal(v1alpha1.RebootSucceeded), "Reason": Equal(v1alpha1.ReasonUpdateStaged),
				"Reboot": Not(BeNil()), "Settle": Not(BeNil()),
			}))
		}
		Eventually(reasonsOf).WithArguments(f.nodes[0]).Should(ContainElements("RebootGranted", "RebootSucceeded", "Uncordoned"))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElements("RebootGranted", "RebootSucceeded"))
		Expect(countOf("reboot_operator_reboots_total", p.Name, "succeeded")).To(BeEquivalentTo(3))
	})

	It("leaves nodes cordoned that an administrator cordoned before or during the reboot (behaviours 43, 44)", func() {
		f := makeFleet(2)
		before, anew := f.nodes[0], f.nodes[1]
		f.patch(before, map[string]any{"spec": map[string]any{"unschedulable": true}})
		f.policy("workers", limit(2))
		f.need(f.nodes...)
		Eventually(f.granted).Should(HaveLen(2))
		f.start(anew)
		f.commit(anew)
		for _, cordon := range []bool{false, true} {
			node := f.get(anew)
			unchanged := node.DeepCopy()
			node.Spec.Unschedulable = cordon
			Expect(api.Patch(ctx, node, client.MergeFrom(unchanged), client.FieldOwner("kubectl"))).To(Succeed())
		}
		f.boot(anew, 2)
		f.reboot(before)
		for _, name := range f.nodes {
			f.finishes(name)
			Expect(f.get(name).Spec.Unschedulable).To(BeTrue())
		}
	})

	It("frees the slot of a node that is deleted during its reboot (behaviour 25)", func() {
		f := makeFleet(2)
		f.policy("workers")
		f.need(f.nodes...)
		gone := f.next()
		f.start(gone)
		Expect(api.Delete(ctx, f.get(gone))).To(Succeed())
		f.nodes = slices.DeleteFunc(f.nodes, func(name string) bool { return name == gone })
		Eventually(f.granted).Should(Equal(f.nodes))
	})

	It("writes on each node how long it may be up under maxUptime, while a policy limits it", func() {
		f := makeFleet(2)
		maximum := func(name string) string { return f.get(name).Annotations[v1alpha1.AnnotationMaxUptime] }
		p := f.policy("workers", func(s *v1alpha1.RebootPolicySpec) {
			s.MaxUptime = &v1alpha1.Duration{Duration: 720 * time.Hour}
		})
		for _, name := range f.nodes {
			Eventually(maximum).WithArguments(name).Should(Equal(record.MaxUptime(&p.Spec, name).String()))
		}
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.MaxUptime = nil })
		for _, name := range f.nodes {
			Eventually(maximum).WithArguments(name).Should(BeEmpty())
		}
	})

	It("writes on each node which conditions ask for a reboot, while a policy names any", func() {
		f := makeFleet(2)
		named := func(name string) string { return f.get(name).Annotations[v1alpha1.AnnotationNodeConditions] }
		p := f.policy("workers", func(s *v1alpha1.RebootPolicySpec) {
			s.NodeConditions = []v1alpha1.NodeConditionNeed{{Type: "KernelDeadlock", For: v1alpha1.Duration{Duration: 10 * time.Minute}}}
		})
		for _, name := range f.nodes {
			Eventually(named).WithArguments(name).Should(Equal(`[{"type":"KernelDeadlock","for":"10m0s"}]`))
		}
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.NodeConditions = nil })
		for _, name := range f.nodes {
			Eventually(named).WithArguments(name).Should(BeEmpty())
		}
	})

	It("adopts the grants it finds when the policy's status is lost (behaviours 16, 61)", func() {
		f := makeFleet(2)
		p := f.policy("workers")
		f.need(f.nodes...)
		name := f.next()
		f.start(name)
		// The manager keeps its finalizer on a policy. The spec removes it once the policy is being
		// deleted, because then nothing adds it again.
		Expect(api.Delete(ctx, p.DeepCopy())).To(Succeed())
		loses := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(api.Patch(ctx, p.DeepCopy(), loses)).To(Succeed())
		again := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: p.Spec}
		Expect(api.Create(ctx, again)).To(Succeed())
		Eventually(grantsOf).WithArguments(p).Should(HaveLen(1))
		Expect(policyStatus(p).Grants[0].Node).To(Equal(name))
		Consistently(f.granted, "300ms").Should(Equal([]string{name}))
		f.comeBack(name)
		f.finishes(name)
	})

	It("does not reboot a node that two policies of one priority select, and reports it (behaviour 21)", func() {
		f := makeFleet(1)
		a, b := f.policy("a"), f.policy("b")
		f.need(f.nodes[0])
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False PolicyConflict"))
		for _, p := range []*v1alpha1.RebootPolicy{a, b} {
			Eventually(acceptedReason).WithArguments(p).Should(Equal("PolicyConflict"))
		}
		editPolicy(b, func(p *v1alpha1.RebootPolicy) { p.Spec.Priority = 1 })
		Eventually(f.granted).Should(HaveLen(1))
		Expect(f.grant(f.nodes[0]).Policy).To(Equal(b.Name))
		Eventually(acceptedReason).WithArguments(a).Should(Equal("Accepted"))
	})

	It("counts a node as down if one of two Ready conditions says so", func() {
		f := makeFleet(2)
		node := f.get(f.nodes[0])
		node.Status.Conditions = append([]corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", LastTransitionTime: metav1.Now(),
		}}, node.Status.Conditions...)
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		f.policy("workers", limit(1))
		f.need(f.nodes[1])
		f.show("False BudgetExhausted", f.nodes[1])
	})

	It("does not take an unreadable grant for a permission, reports it, and repairs it (behaviour 54)", func() {
		f := makeFleet(1)
		f.annotate(f.nodes[0], v1alpha1.AnnotationGrant, "{not json")
		f.policy("workers")
		f.need(f.nodes[0])
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("True Granted"))
	})

	It("reboots the other nodes even if an agent or an administrator writes values that a status may not hold", func() {
		f := makeFleet(2)
		f.need(f.nodes...)
		f.annotate(f.nodes[0], v1alpha1.AnnotationReport, `{"blockedBy":[{"reason":"`+strings.Repeat("x", 65)+`","message":"`+strings.Repeat("y", 2000)+`"}]}`)
		editPolicy(f.policy("workers", limit(2)), func(p *v1alpha1.RebootPolicy) {
			p.Annotations = map[string]string{v1alpha1.AnnotationResume: strings.Repeat("z", 40_000)}
		})
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False RecordUnreadable"))
		Eventually(f.granted).Should(Equal(f.nodes[1:]))
	})

	It("frees the slot of a node whose grant an admission policy refuses, and cancels the grant if it is published late", func() {
		f := makeFleet(4)
		refusing := f.nodes[0]
		admit := refuseGrants(refusing)
		p := f.policy("workers")
		f.need(refusing)
		Eventually(grantsOf).WithArguments(p).Should(HaveLen(1))
		withdrawn := policyStatus(p).Grants[0]
		f.need(f.nodes[1:3]...)
		Eventually(func() string { return conditionOf(p, v1alpha1.ConditionProgressing).Message }).Should(And(HavePrefix("node "+refusing+" has held a slot"), MatchRegexp(`the grant will be withdrawn [^;]* UTC, which frees the slot`)))
		Consistently(f.granted, "300ms").Should(BeEmpty())

		now.forward(6 * time.Minute)
		f.need(f.nodes[3])
		for range f.nodes[1:] {
			name := f.next()
			Expect(name).NotTo(Equal(refusing))
			f.reboot(name)
			f.finishes(name)
		}
		Eventually(grantsOf).WithArguments(p).Should(BeEmpty())
		Expect(policyStatus(p).History).To(ContainElement(And(HaveField("Node", refusing), HaveField("Result", v1alpha1.RebootWithdrawn),
			HaveField("Reason", v1alpha1.ReasonNodeWriteRefused), HaveField("Message", ContainSubstring("not this node")))))
		Eventually(func() []v1alpha1.BlockedNodes { return policyStatus(p).Blocked }).Should(ConsistOf(
			And(HaveField("Reason", v1alpha1.ReasonBackingOff), HaveField("Nodes", []string{refusing}))))

		By("a leader that was stopped, and goes on")
		admit()
		f.annotate(refusing, v1alpha1.AnnotationGrant, protocol.Grant{
			Policy: p.Name, Seq: withdrawn.Seq, BootID: withdrawn.BootID, State: protocol.GrantActive, At: withdrawn.At,
		}.String())
		Eventually(func() *protocol.Grant { return f.grant(refusing) }).Should(And(
			HaveField("Seq", withdrawn.Seq), HaveField("State", protocol.GrantCancelled), HaveField("Reason", v1alpha1.ReasonGrantWithdrawn)))
		Eventually(grantsOf).WithArguments(p).Should(BeEmpty())
	})

	It("does not give the nodes of an invalid policy to one of lower priority, which names them", func() {
		f := makeFleet(1)
		f.need(f.nodes[0])
		first := f.policy("first", func(s *v1alpha1.RebootPolicySpec) {
			s.Priority = 1
			diskGate("none", func(g *v1alpha1.ObjectGate) { g.Expression = "object.health = 'good'" })(s)
		})
		second := f.policy("second")
		Eventually(acceptedReason).WithArguments(first).Should(Equal("Invalid"))
		Eventually(func() string { return conditionOf(second, v1alpha1.ConditionAccepted).Message }).Should(And(
			HavePrefix("1 node is not rebooted: policy "+first.Name), ContainSubstring(f.nodes[0])))
		Eventually(func() string { return f.condition(f.nodes[0], v1alpha1.NodeRebootPermitted).Message }).Should(
			ContainSubstring("policy " + second.Name + " selects the node too"))
		Consistently(f.granted, "300ms").Should(BeEmpty())
		editPolicy(first, func(p *v1alpha1.RebootPolicy) { p.Spec.Gates, p.Spec.Priority = nil, -1 })
		Eventually(f.granted).Should(HaveLen(1))
		Eventually(acceptedReason).WithArguments(second).Should(Equal("Accepted"))
	})

	It("frees the slot of a node whose grant a mutating admission policy drops", func() {
		f := makeFleet(2)
		dropping := f.nodes[0]
		dropGrants(dropping)
		p := f.policy("workers")
		f.need(dropping)
		Eventually(func() string { return conditionOf(p, v1alpha1.ConditionProgressing).Message }).Should(And(
			HavePrefix("node "+dropping+" has held a slot"), ContainSubstring("did not keep annotation "+v1alpha1.AnnotationGrant)))
		now.forward(6 * time.Minute)
		f.need(f.nodes[1])
		Expect(f.next()).To(Equal(f.nodes[1]))
		Expect(policyStatus(p).History).To(ContainElement(And(HaveField("Node", dropping), HaveField("Result", v1alpha1.RebootWithdrawn),
			HaveField("Reason", v1alpha1.ReasonNodeWriteRefused))))
	})

	It("never passes the limit with two managers that both act (behaviour 17)", func() {
		DeferCleanup(startManager(&requestLog{}))
		f := makeFleet(6)
		p := f.policy("workers", limit(2))
		f.need(f.nodes...)
		for done := 0; done < len(f.nodes); {
			Expect(len(f.granted())).To(BeNumerically("<=", 2))
			Expect(len(policyStatus(p).Grants)).To(BeNumerically("<=", 2))
			for _, name := range f.granted() {
				f.reboot(name)
				f.finishes(name)
				done++
			}
		}
		for _, name := range f.nodes {
			Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
		}
	})

	It("decides again if another manager has written the ledger first (behaviour 17)", func() {
		f := makeFleet(2)
		p := f.policy("workers", func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{} })
		f.need(f.nodes...)
		f.show("False Paused", f.nodes...)
		atRest()
		theirs := f.get(f.nodes[1]) // the manager itself would choose the other node
		var first sync.Once
		requests.meddleWith(func(r *http.Request) bool {
			if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+p.Name+"/status") {
				first.Do(func() {
					defer GinkgoRecover()
					ledger := &v1alpha1.RebootPolicy{}
					Expect(api.Get(ctx, client.ObjectKeyFromObject(p), ledger)).To(Succeed())
					e := protocol.Enter(ledger.Status.Seq, protocol.RecordOf(theirs), theirs.Name, theirs.Status.NodeInfo.BootID, time.Now())
					ledger.Status.Limit, ledger.Status.Seq, ledger.Status.Grants = 1, e.Seq, []v1alpha1.LedgerEntry{e}
					Expect(api.Status().Update(ctx, ledger)).To(Succeed())
				})
			}
			return false
		})
		editPolicy(p.DeepCopy(), func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = nil })
		Eventually(f.granted).Should(Equal([]string{theirs.Name}))
		Expect(grantsOf(p)).To(HaveExactElements(HaveField("Node", theirs.Name)))
		Consistently(f.granted, "300ms").Should(HaveLen(1))
	})

	It("sends no requests at rest, not even because of heartbeats (behaviours 4, 56)", func() {
		f := makeFleet(3)
		f.need(f.nodes...)
		f.show("False NoPolicy", f.nodes...)
		p := f.policy("workers", func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{Reason: "quiet"} })
		Eventually(func() int32 { return policyStatus(p).Nodes.Blocked }).Should(Equal(int32(3)))
		f.show("False Paused", f.nodes...)
		atRest()
		before := requests.Len()
		Consistently(func() int {
			for _, name := range f.nodes {
				f.heartbeat(name, time.Now())
			}
			return requests.Len()
		}, "1s", "100ms").Should(Equal(before))
		Expect(requests.Matching(methodGet, "/api/v1/pods")).To(BeEmpty(), "the manager never touches pods")
	})
})

const methodGet = "GET"

func acceptedReason(p *v1alpha1.RebootPolicy) string {
	return conditionOf(p, v1alpha1.ConditionAccepted).Reason
}

// refuseGrants makes the API server refuse every write of a Node with a grant, until the returned
// function is called.
func refuseGrants(node string) (admit func()) {
	ctx, name := context.Background(), "refuse-"+node
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes", "nodes/status"}},
		},
	}}}
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: fmt.Sprintf("object.metadata.name != %q || !object.metadata.?annotations[?%q].hasValue()", node, v1alpha1.AnnotationGrant),
		Message:    "not this node",
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = name, []admissionv1.ValidationAction{admissionv1.Deny}
	Expect(api.Create(ctx, policy)).To(Succeed())
	Expect(api.Create(ctx, binding)).To(Succeed())
	// The API server applies both only after a while.
	probe := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"{}"}}}`, v1alpha1.AnnotationGrant))
	try := func() error {
		err := api.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, probe, client.DryRunAll)
		return client.IgnoreNotFound(err)
	}
	admit = func() {
		Expect(client.IgnoreNotFound(api.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(api.Delete(ctx, policy))).To(Succeed())
		Eventually(try).Should(Succeed())
	}
	DeferCleanup(func() { admit() })
	Eventually(try).Should(MatchError(ContainSubstring("not this node")))
	return admit
}

// dropGrants installs a mutating admission policy that drops the grant from each write of a node,
// until the end of the spec.
func dropGrants(node string) {
	ctx, name := context.Background(), "drop-"+node
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes", "nodes/status"}},
		},
	}}}
	policy.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "granted", Expression: fmt.Sprintf(
		"object.metadata.name == %q && object.metadata.?annotations[?%q].hasValue()", node, v1alpha1.AnnotationGrant)}}
	policy.Spec.ReinvocationPolicy = admissionv1.NeverReinvocationPolicy
	policy.Spec.Mutations = []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
		Expression: fmt.Sprintf(`[JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey(%q)}]`, v1alpha1.AnnotationGrant),
	}}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName = name
	Expect(api.Create(ctx, policy)).To(Succeed())
	Expect(api.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func() {
		Expect(client.IgnoreNotFound(api.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(api.Delete(ctx, policy))).To(Succeed())
	})
	// The API server applies it only after a while.
	probe := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"{}"}}}`, v1alpha1.AnnotationGrant))
	Eventually(func() map[string]string {
		answer := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		Expect(api.Patch(ctx, answer, probe, client.DryRunAll)).To(Succeed())
		return answer.Annotations
	}).ShouldNot(HaveKey(v1alpha1.AnnotationGrant))
}

// reasonsOf returns the reasons of the events about an object.
func reasonsOf(name string) []string {
	var reasons []string
	for _, note := range notesOf(name) {
		reason, _, _ := strings.Cut(note, ": ")
		reasons = append(reasons, reason)
	}
	return reasons
}
