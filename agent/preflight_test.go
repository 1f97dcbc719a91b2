package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// asks writes the manager's request about the pods of the node.
func (m *machine) asks(ctx context.Context, revision string) {
	GinkgoHelper()
	m.annotate(ctx, v1alpha1.AnnotationPreflight, protocol.Preflight{Policy: m.policy.Name, Revision: revision}.String())
}

// answerOf returns the agent's answer to that in short, or an empty string.
func answerOf(node *corev1.Node) string {
	report, err := protocol.ParseAgentReport(node.Annotations)
	r := report.Preflight
	switch {
	case err != nil:
		return err.Error()
	case r == nil:
		return ""
	}
	parts := []string{r.Revision}
	for _, kind := range []struct {
		name string
		pods *protocol.NamedPods
	}{{"blocking", r.Blocking}, {"kept", r.Kept}, {"guarded", r.Guarded}, {"closed", r.Closed}} {
		if kind.pods == nil {
			continue
		}
		for _, p := range kind.pods.Pods {
			_, pod, _ := strings.Cut(p.Pod, node.Name+"-")
			parts = append(parts, kind.name+" "+pod)
		}
	}
	if r.Problem != "" {
		parts = append(parts, "nobody knows")
	}
	return strings.Join(parts, ", ")
}

// answers waits for the agent's answer and advances the time, because findings have to settle
// before they are reported.
func (m *machine) answers(ctx context.Context, answer string) {
	GinkgoHelper()
	m.showsMeanwhile(ctx, 5*time.Second, answerOf, Equal(answer))
}

func (m *machine) podReads() int {
	return len(m.requests.Matching(http.MethodGet, "/api/v1/pods")) + len(m.requests.Matching("", "/poddisruptionbudgets"))
}

var _ = Describe("The agent's look before a reboot", func() {
	gated := v1alpha1.RebootPolicySpec{Gates: &v1alpha1.Gates{BlockingPods: []v1alpha1.BlockingPod{
		{PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "migration"}}},
	}}}

	// waiting returns a machine that needs a reboot and has no grant.
	waiting := func(ctx SpecContext, spec v1alpha1.RebootPolicySpec) *machine {
		m := newMachine(ctx, spec)
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		return m
	}
	complete := func(ctx SpecContext, pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		Expect(api.Status().Update(ctx, pod)).To(Succeed())
	}

	It("names the pods that block, and reports when they have completed", func(ctx SpecContext) {
		m := waiting(ctx, gated)
		done := m.pod(ctx, "migration", m.owner("ReplicaSet"))
		complete(ctx, done)
		m.asks(ctx, "r1")
		m.answers(ctx, "r1")

		By("while a pod comes, and goes")
		other := m.pod(ctx, "other", m.owner("ReplicaSet"))
		Expect(api.Delete(ctx, done)).To(Succeed())
		pod := m.pod(ctx, "migration", m.owner("ReplicaSet"))
		m.answers(ctx, "r1, blocking migration")
		complete(ctx, pod)
		m.answers(ctx, "r1")
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())
		Expect(api.Delete(ctx, other)).To(Succeed())
	})

	It("names the pods that no drain could remove, and reports when it can", func(ctx SpecContext) {
		m := waiting(ctx, v1alpha1.RebootPolicySpec{})
		bare := m.pod(ctx, "bare", nil)
		m.pod(ctx, "db", m.owner("ReplicaSet"))
		m.pod(ctx, "web", m.owner("ReplicaSet"))
		allowsNone := m.budget(ctx, "db", "db", 3)
		one, two := m.budget(ctx, "web-1", "web", 3), m.budget(ctx, "web-2", "web", 3)
		m.asks(ctx, "r1")
		m.answers(ctx, "r1, kept bare, guarded web, closed db")
		Expect(m.node(ctx).Annotations[v1alpha1.AnnotationReport]).To(And(
			ContainSubstring("drain.unmanagedPods is Block"), ContainSubstring("allows no eviction, even with every pod healthy"),
			ContainSubstring(fmt.Sprintf("several PodDisruptionBudgets select the pod (%s, %s)", one.Name, two.Name))))

		By("one after the other")
		Expect(api.Delete(ctx, bare, client.GracePeriodSeconds(0))).To(Succeed())
		m.answers(ctx, "r1, guarded web, closed db")
		allowsNone.Status.DesiredHealthy, allowsNone.Status.DisruptionsAllowed = 2, 1
		Expect(api.Status().Update(ctx, allowsNone)).To(Succeed())
		m.answers(ctx, "r1, guarded web")
		one.Status.DesiredHealthy, one.Status.DisruptionsAllowed = 2, 1
		Expect(api.Status().Update(ctx, one)).To(Succeed())
		Expect(api.Delete(ctx, two)).To(Succeed())
		m.answers(ctx, "")
	})

	It("names pods that a cordon does not help: those of a budget that cannot count or has no ready pod, and one that never ends", func(ctx SpecContext) {
		m := waiting(ctx, v1alpha1.RebootPolicySpec{})
		m.pod(ctx, "job", m.owner("ReplicaSet"))
		failed := m.budget(ctx, "job", "job", 3)
		failed.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
			Message: "found no controllers for pod", LastTransitionTime: metav1.Now(),
		}}
		Expect(api.Status().Update(ctx, failed)).To(Succeed())
		crashing := m.pod(ctx, "crashing", m.owner("ReplicaSet"))
		crashing.Status.Conditions[0].Status = corev1.ConditionFalse
		Expect(api.Status().Update(ctx, crashing)).To(Succeed())
		none := m.budget(ctx, "crashing", "crashing", 3)
		none.Status.DesiredHealthy, none.Status.CurrentHealthy = 0, 0
		Expect(api.Status().Update(ctx, none)).To(Succeed())
		m.asks(ctx, "r1")
		m.answers(ctx, "r1, guarded crashing, guarded job")
		Expect(m.node(ctx).Annotations[v1alpha1.AnnotationReport]).To(And(
			ContainSubstring("its pods cannot be counted: found no controllers for pod"), ContainSubstring("allows no eviction while none of its pods is ready")))

		By("a pod that a finalizer keeps long after its deletion")
		ending := m.pod(ctx, "ending", m.owner("ReplicaSet"))
		finalize := func(ctx context.Context, list string) {
			Expect(api.Patch(ctx, ending, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`)))).To(Succeed())
		}
		finalize(ctx, `["example.com/never"]`)
		Expect(api.Delete(ctx, ending)).To(Succeed())
		DeferCleanup(finalize, "null")
		m.answers(ctx, "r1, guarded crashing, guarded ending, guarded job")

		By("none of them being cordoned for")
		m.grant(ctx, 1, protocol.GrantActive)
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
	})

	It("does not begin while a pod is in the way, and reports it to the manager, even if the last look found none", func(ctx SpecContext) {
		m := waiting(ctx, gated)
		m.asks(ctx, "r1")
		m.answers(ctx, "r1")
		pod := m.pod(ctx, "migration", m.owner("ReplicaSet"))
		m.grant(ctx, 1, protocol.GrantActive)
		m.answers(ctx, "r1, blocking migration")

		By("the manager cancelling the grant, and giving the next when the pod has gone")
		m.grant(ctx, 1, protocol.GrantCancelled)
		Expect(api.Delete(ctx, pod)).To(Succeed())
		m.answers(ctx, "r1")
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())
		Expect(m.eventsOf(ctx)).NotTo(HaveKey(v1alpha1.EventCordoned))
		m.grant(ctx, 2, protocol.GrantActive)
		m.shows(ctx, phaseOf, Equal("2 Rebooting cordoned"))
	})

	It("reports without a gate, too, that the pods cannot be read, also before the next grant", func(ctx SpecContext) {
		m := waiting(ctx, v1alpha1.RebootPolicySpec{})
		m.pod(ctx, "web", m.owner("ReplicaSet"))
		m.requests.forbid("/apis/policy/v1/namespaces/default/poddisruptionbudgets", 0)
		m.asks(ctx, "r1")
		m.grant(ctx, 1, protocol.GrantActive)
		m.answers(ctx, "r1, nobody knows")
		Expect(phaseOf(m.node(ctx))).To(BeEmpty())

		By("the manager taking the grant back")
		m.grant(ctx, 1, protocol.GrantCancelled)
		m.looksAgain(ctx)
		Expect(answerOf(m.node(ctx))).To(Equal("r1, nobody knows"))
	})

	It("looks only while it is requested, and writes nothing without a gate if no pod is in the way", func(ctx SpecContext) {
		m := waiting(ctx, v1alpha1.RebootPolicySpec{})
		m.pod(ctx, "web", m.owner("ReplicaSet"))
		Expect(m.podReads()).To(BeZero())
		before := len(m.requests.writes())
		m.asks(ctx, "r1")
		Eventually(m.podReads).Should(Equal(3), "LIST and WATCH of pods, LIST of the budgets of one namespace")

		By("a request that goes, and one that nobody can read")
		m.change(ctx, func(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationPreflight) })
		m.annotate(ctx, v1alpha1.AnnotationPreflight, `{"policy":`)
		m.looksAgain(ctx)
		Expect(m.podReads()).To(Equal(3))
		Expect(m.requests.writes()).To(HaveLen(before+1), "the request")
	})

	It("reports the same after a restart, and writes it once", func(ctx SpecContext) {
		m := waiting(ctx, gated)
		m.pod(ctx, "migration", m.owner("ReplicaSet"))
		m.asks(ctx, "r1")
		m.answers(ctx, "r1, blocking migration")
		before := len(m.requests.writes())
		m.restart(ctx)
		Eventually(m.podReads).Should(BeNumerically(">=", 4), "LIST and WATCH of each process")
		m.looksAgain(ctx)
		Expect(answerOf(m.node(ctx))).To(Equal("r1, blocking migration"))
		Expect(m.requests.writes()).To(HaveLen(before+1), "the request")
	})
})
