package drain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestFindings_Guarded: which budgets hold a running pod back for ever. The API server decides so by
// pkg/registry/core/pod/storage/eviction.go.
func TestFindings_Guarded(t *testing.T) {
	type status = policyv1.PodDisruptionBudgetStatus
	type list = []policyv1.PodDisruptionBudget
	all := &metav1.LabelSelector{}
	never := status{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 3}
	const (
		allowsNone = "PodDisruptionBudget a allows no eviction, even with every pod healthy"
		notYet     = "the status of PodDisruptionBudget a does not count the pod yet"
	)
	lenient := policyv1.AlwaysAllow
	budgetOf := func(s status) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: all}, Status: s}
	}
	outdated := func(generation int64, s status) policyv1.PodDisruptionBudget {
		b := budgetOf(s)
		b.Generation = generation
		return b
	}
	cases := map[string]struct {
		budgets list
		change  func(*target)
		want    string
	}{
		"none":                             {},
		"one that wants every pod healthy": {budgets: list{budgetOf(never)}, want: allowsNone},
		"one that allows some":             {budgets: list{budgetOf(status{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 2, DisruptionsAllowed: 1})}},
		"one that allows none while a pod is not healthy": {budgets: list{budgetOf(status{CurrentHealthy: 2, ExpectedPods: 3, DesiredHealthy: 2})}},
		"one without a status":                            {budgets: list{outdated(1, status{})}, want: notYet},
		"one that counts no pods":                         {budgets: list{outdated(0, status{})}, want: notYet},
		"one whose status is of an older spec":            {budgets: list{outdated(2, never)}, want: notYet},
		"one that has allowed some by an older spec":      {budgets: list{outdated(2, status{DisruptionsAllowed: 1})}, want: notYet},
		"one without a status, and one that allows none": {
			budgets: list{outdated(1, status{}), budgetOf(never)},
			want:    "several PodDisruptionBudgets select the pod (a, b), which the eviction API does not support: leave one",
		},
		"one without a status that lets pods go that are not ready": {
			budgets: list{{
				ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: all, UnhealthyPodEvictionPolicy: &lenient},
			}},
			change: func(t *target) { t.ready = false },
		},
		"one that selects other pods": {budgets: list{{
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}}, Status: never,
		}}},
		"one that lets pods go that are not ready": {
			budgets: list{{Spec: policyv1.PodDisruptionBudgetSpec{Selector: all, UnhealthyPodEvictionPolicy: &lenient}, Status: never}},
			change:  func(t *target) { t.ready = false },
		},
		"the same, for one that is": {
			budgets: list{{Spec: policyv1.PodDisruptionBudgetSpec{Selector: all, UnhealthyPodEvictionPolicy: &lenient}, Status: never}},
			want:    allowsNone,
		},
		"a pod that is not ready":    {budgets: list{budgetOf(never)}, change: func(t *target) { t.ready = false }, want: allowsNone},
		"a pod that has not started": {budgets: list{budgetOf(never)}, change: func(t *target) { t.pending = true }},
		"a pod that is terminating":  {budgets: list{budgetOf(never)}, change: func(t *target) { t.deleted = time.Unix(1, 0) }},
		"a pod that a rule deletes":  {budgets: list{budgetOf(never)}, change: func(t *target) { t.decision.action = v1alpha1.DrainDelete }},
		"a pod that is waited for":   {budgets: list{budgetOf(never)}, change: func(t *target) { t.decision.action = v1alpha1.DrainWaitCompleted }},
		"a pod that a rule skips":    {budgets: list{budgetOf(never)}, change: func(t *target) { t.decision.action = v1alpha1.DrainSkip }},
		"two budgets, whatever they allow": {
			budgets: list{budgetOf(status{DisruptionsAllowed: 1}), budgetOf(status{DisruptionsAllowed: 1})},
			want:    "several PodDisruptionBudgets select the pod (a, b), which the eviction API does not support: leave one",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProgress()
			pod := target{NamespacedName: types.NamespacedName{Namespace: "default", Name: "db-0"}, uid: "u", ready: true}
			pod.decision.action = v1alpha1.DrainEvict
			if tc.change != nil {
				tc.change(&pod)
			}
			p.replace([]target{pod})
			for i := range tc.budgets {
				name := types.NamespacedName{Namespace: "default", Name: string(rune('a' + i))}
				p.budgetChanged(name, readBudget(&tc.budgets[i]), time.Unix(0, 0))
			}
			got := ""
			for _, f := range p.findings().Guarded {
				got = f.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
