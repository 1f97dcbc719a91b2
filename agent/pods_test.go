package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pod creates a pod on the machine. Its grace period is 0, so it disappears as soon as it is
// evicted.
func (m *machine) pod(ctx context.Context, name string, owner *metav1.OwnerReference, volumes ...corev1.Volume) *corev1.Pod {
	GinkgoHelper()
	return m.podWith(ctx, name, owner, func(spec *corev1.PodSpec) { spec.Volumes = volumes })
}

// podWith is like pod, but changes the spec before the pod is created, so that a drain never sees
// another spec.
func (m *machine) podWith(ctx context.Context, name string, owner *metav1.OwnerReference, change func(*corev1.PodSpec)) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: m.Name + "-" + name, Labels: map[string]string{"machine": m.Name, "app": name},
		},
		Spec: corev1.PodSpec{
			NodeName:                      m.Name,
			Containers:                    []corev1.Container{{Name: "c", Image: "registry.example/c"}},
			TerminationGracePeriodSeconds: new(int64),
		},
	}
	change(&pod.Spec)
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	Expect(api.Create(ctx, pod)).To(Succeed())
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	Expect(api.Status().Update(ctx, pod)).To(Succeed())
	return pod
}

// owner returns the controller of some of the machine's pods.
func (m *machine) owner(kind string) *metav1.OwnerReference {
	return &metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: types.UID("u-" + m.Name), Controller: new(true),
	}
}

// protectedPod creates a pod with a controller and a budget that allows no eviction now, because
// another pod is not healthy.
func (m *machine) protectedPod(ctx context.Context) {
	GinkgoHelper()
	m.pod(ctx, "protected", m.owner("ReplicaSet"))
	m.tightBudget(ctx)
}

// budget creates a budget for the pods of an app that requires the given number of pods to be
// healthy.
func (m *machine) budget(ctx context.Context, name, app string, pods int32) *policyv1.PodDisruptionBudget {
	GinkgoHelper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: m.Name + "-" + name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"machine": m.Name, "app": app}},
		},
	}
	Expect(api.Create(ctx, budget)).To(Succeed())
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, CurrentHealthy: pods, ExpectedPods: pods, DesiredHealthy: pods,
	}
	Expect(api.Status().Update(ctx, budget)).To(Succeed())
	return budget
}

// tightBudget allows no eviction of the protected pod.
func (m *machine) tightBudget(ctx context.Context) {
	GinkgoHelper()
	m.budget(ctx, "protected", "protected", 2)
	m.setBudget(ctx, 0)
}

// allowEvictions permits the eviction of the protected pod.
func (m *machine) allowEvictions(ctx context.Context) {
	GinkgoHelper()
	m.setBudget(ctx, 1)
}

// setBudget sets the status of the budget, as the disruption controller does.
func (m *machine) setBudget(ctx context.Context, allowed int32) {
	GinkgoHelper()
	budget := &policyv1.PodDisruptionBudget{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: "default", Name: m.Name + "-protected"}, budget)).To(Succeed())
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: allowed,
		CurrentHealthy: 1 + allowed, ExpectedPods: 2, DesiredHealthy: 1,
	}
	Expect(api.Status().Update(ctx, budget)).To(Succeed())
}
