package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// example returns the spec of the RebootPolicy in a file of docs/examples.
func example(name string) v1alpha1.RebootPolicySpec {
	GinkgoHelper()
	file, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "examples", name+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(file), "\n---\n") {
		policy := v1alpha1.RebootPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), &policy); err == nil && policy.Kind == "RebootPolicy" {
			return policy.Spec
		}
	}
	Fail("no RebootPolicy in " + name)
	return v1alpha1.RebootPolicySpec{}
}

// closed returns a machine whose only pod has a budget that allows no eviction. Its agent has
// reported that.
func closed(ctx SpecContext, spec v1alpha1.RebootPolicySpec) (*machine, *corev1.Pod) {
	GinkgoHelper()
	m := needing(ctx, spec)
	pod := m.pod(ctx, "db", m.owner("ReplicaSet"))
	m.budget(ctx, "db", "db", 1)
	m.start(ctx)
	m.shows(ctx, needOf, Equal("True UpdateStaged"))
	m.asks(ctx, "r1")
	m.answers(ctx, "r1, closed db")
	return m, pod
}

// dropBudget deletes the budget of the pod of closed.
func (m *machine) dropBudget(ctx context.Context) {
	GinkgoHelper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: m.Name + "-db"}}
	Expect(api.Delete(ctx, budget)).To(Succeed())
}

// grantTry grants a try, as the manager does once the other nodes are done.
func (m *machine) grantTry(ctx context.Context, seq int64) {
	GinkgoHelper()
	Expect(testenv.Grant(ctx, api, m.policy.Name, m.node(ctx), protocol.Grant{Seq: seq, State: protocol.GrantActive}, func(e *v1alpha1.LedgerEntry) { e.Try = true })).To(Succeed())
}

// denies installs a webhook that denies evictions of a pod and moves it elsewhere, as KubeVirt's
// does.
func denies(ctx SpecContext, pod *corev1.Pod, move func()) {
	GinkgoHelper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		review := admissionv1.AdmissionReview{}
		Expect(json.NewDecoder(r.Body).Decode(&review)).To(Succeed())
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Code: http.StatusTooManyRequests, Message: "Eviction triggered evacuation of VMI",
		}}
		w.Header().Set("Content-Type", "application/json")
		Expect(json.NewEncoder(w).Encode(review)).To(Succeed())
		move()
	}))
	DeferCleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "virt-launcher-eviction-interceptor.kubevirt.io",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: ca},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "pod", Expression: fmt.Sprintf("object.metadata.name == %q", pod.Name)}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			}},
		}},
	}
	Expect(api.Create(ctx, hook)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, hook)).To(Succeed()) })
}

var _ = Describe("A budget that is closed until its node is cordoned", func() {
	// reboots waits for the cordon, calls opens in place of the program that opens the budget, and
	// waits for the reboot.
	reboots := func(ctx SpecContext, m *machine, opens func()) {
		GinkgoHelper()
		m.grantTry(ctx, 1)
		m.shows(ctx, phaseOf, Equal("1 Draining cordoned"))
		opens()
		m.showsMeanwhile(ctx, 5*time.Second, phaseOf, Equal("1 Rebooting cordoned"))
		Eventually(m.Logind.Reboots).Should(BeNumerically(">=", 1))
	}

	It("is deleted by Longhorn", func(ctx SpecContext) {
		m, _ := closed(ctx, example("longhorn"))
		reboots(ctx, m, func() {
			m.dropBudget(ctx)
		})
	})

	It("does not select the pod any more, once CloudNativePG has moved the primary", func(ctx SpecContext) {
		m, pod := closed(ctx, example("cloudnativepg"))
		reboots(ctx, m, func() {
			Expect(api.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"replica"}}}`)))).To(Succeed())
		})
	})

	It("stays closed, and KubeVirt moves the pod when it is evicted", func(ctx SpecContext) {
		m, pod := closed(ctx, example("kubevirt"))
		asked := make(chan struct{}, 100)
		denies(ctx, pod, func() { asked <- struct{}{} })
		reboots(ctx, m, func() {
			Eventually(asked).Should(Receive())
			Expect(api.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		})
	})

	It("stays closed: the node is given up after drain.timeout, which does not count for maxFailures", func(ctx SpecContext) {
		m, _ := closed(ctx, patient)
		m.grantTry(ctx, 1)
		m.shows(ctx, phaseOf, Equal("1 Draining cordoned"))

		By("going on over a restart of the agent")
		m.restart(ctx)
		m.showsMeanwhile(ctx, 2*time.Second, messageOf(corev1.NodeDrainInProgress), ContainSubstring(m.Name+"-db"))
		m.showsMeanwhile(ctx, v1alpha1.DefaultDrainTimeout, phaseOf, Equal("1 Aborted UndrainablePod failures=1"))
		Expect(progressOf(m.node(ctx)).Message).To(And(ContainSubstring(m.Name+"-db"), ContainSubstring("disruption budget")))
		Expect(progressOf(m.node(ctx)).FailedTry()).To(BeTrue())
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))

		By("the budget opening")
		m.answers(ctx, "r1, closed db")
		m.dropBudget(ctx)
		m.answers(ctx, "r1")
		Expect(m.Logind.Reboots()).To(BeZero())
	})

	It("prevents the cordon if the grant was given before the agent reported the budget, or if the policy waits", func(ctx SpecContext) {
		for _, spec := range []v1alpha1.RebootPolicySpec{patient, {Drain: &v1alpha1.Drain{ClosedBudgets: v1alpha1.ClosedBudgetsWait}}} {
			m, _ := closed(ctx, spec)
			if spec.Drain == nil {
				m.grant(ctx, 1, protocol.GrantActive)
			} else {
				m.grantTry(ctx, 1)
			}
			m.looksAgain(ctx)
			Expect(phaseOf(m.node(ctx))).To(BeEmpty())
			Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		}
	})
})

var _ = It("A pod that came back to the drained node delays the reboot while its budget refuses, and is evicted right before it", func(ctx SpecContext) {
	tolerant := func(m *machine, name string) *corev1.Pod {
		return m.podWith(ctx, name, m.owner("ReplicaSet"), func(spec *corev1.PodSpec) {
			spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		})
	}
	m := needing(ctx, patient)
	first := tolerant(m, "web")
	m.protectedPod(ctx) // so that the drain lasts until the replacement exists
	m.start(ctx)
	m.shows(ctx, needOf, Equal("True UpdateStaged"))
	m.grant(ctx, 1, protocol.GrantActive)
	gone := func(pod *corev1.Pod) func() bool {
		return func() bool { return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})) }
	}
	Eventually(gone(first)).Should(BeTrue())
	budget := m.budget(ctx, "back", "back", 3)
	back := tolerant(m, "back")
	m.allowEvictions(ctx)
	m.showsMeanwhile(ctx, 5*time.Second, messageOf(corev1.NodeDrained), ContainSubstring("Pods that came back may not go: default/"+back.Name))
	Expect(phaseOf(m.node(ctx))).To(Equal("1 Draining cordoned"))

	budget.Status.DesiredHealthy, budget.Status.DisruptionsAllowed = 2, 1
	Expect(api.Status().Update(ctx, budget)).To(Succeed())
	m.showsMeanwhile(ctx, 5*time.Second, phaseOf, Equal("1 Rebooting cordoned"))
	Expect(gone(back)()).To(BeTrue())
})
