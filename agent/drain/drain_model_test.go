package drain_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/agent/drain"
)

// drawnPod returns a running pod in a random state.
func drawnPod(random *rand.Rand) func(*corev1.Pod) {
	phases := []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed}
	return func(p *corev1.Pod) {
		p.Status.Phase = phases[random.IntN(len(phases))]
		if random.IntN(2) == 0 {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		}
		if random.IntN(6) == 0 {
			p.Finalizers = []string{"example.com/kept"}
		}
	}
}

// drawBudget creates a budget in a random state. Its numbers may be inconsistent, because no
// controller writes them.
func drawBudget(ctx context.Context, random *rand.Rand, namespace, name, app string) *policyv1.PodDisruptionBudget {
	GinkgoHelper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
	policies := []*policyv1.UnhealthyPodEvictionPolicyType{nil, new(policyv1.IfHealthyBudget), new(policyv1.AlwaysAllow)}
	budget.Spec.UnhealthyPodEvictionPolicy = policies[random.IntN(len(policies))]
	api := admin.PolicyV1().PodDisruptionBudgets(namespace)
	budget, err := api.Create(ctx, budget, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	number := func() int32 { return int32(random.IntN(4)) }
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, CurrentHealthy: number(), DesiredHealthy: number(), ExpectedPods: number(),
		DisruptionsAllowed: max(0, number()-2),
	}
	if random.IntN(5) == 0 {
		budget.Status.ObservedGeneration--
	}
	if random.IntN(5) == 0 {
		budget.Status.DisruptionsAllowed = 0
		budget.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
			Message: "no controllers", LastTransitionTime: metav1.Now(),
		}}
	}
	budget, err = api.UpdateStatus(ctx, budget, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return budget
}

var _ = It("the drain expects what the API server answers to evictions, whatever pods and budgets are like", func(ctx SpecContext) {
	w, random := newWorld(ctx), rand.New(rand.NewPCG(1, 2))
	answers := map[bool]int{}
	for i := range 150 {
		pod := w.create(ctx, fmt.Sprintf("web-%d", i), drawnPod(random), labelled("app", fmt.Sprintf("web-%d", i)))
		if len(pod.Finalizers) > 0 {
			Expect(admin.CoreV1().Pods(w.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
			pod = w.get(ctx, pod.Name)
		}
		var budgets []*policyv1.PodDisruptionBudget
		for b := range []int{0, 1, 1, 1, 1, 2}[random.IntN(6)] {
			budgets = append(budgets, drawBudget(ctx, random, w.namespace, fmt.Sprintf("web-%d-%d", i, b), pod.Labels["app"]))
		}
		expected, err := drain.Refuses(ctx, pod, budgets...)
		Expect(err).NotTo(HaveOccurred())
		answer := admin.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
			Body(&policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
			}).MaxRetries(0).Do(ctx).Error()
		Expect(answer == nil || apierrors.IsTooManyRequests(answer) || apierrors.IsInternalError(answer)).To(BeTrue(), "%v", answer)
		Expect(answer != nil).To(Equal(expected), "%v\n%+v\n%+v", answer, pod.Status, budgets)
		answers[expected]++
	}
	Expect(answers[true]).To(BeNumerically(">", 30))
	Expect(answers[false]).To(BeNumerically(">", 30))
})
