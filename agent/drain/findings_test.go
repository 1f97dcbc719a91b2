package drain

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestFindings shows which budgets block a running pod for good, and which of them may allow
// evictions once the node is cordoned. The API server's rules are in
// pkg/registry/core/pod/storage/eviction.go.
func TestFindings(t *testing.T) {
	type status = policyv1.PodDisruptionBudgetStatus
	type list = []policyv1.PodDisruptionBudget
	all, now := &metav1.LabelSelector{}, time.Unix(1000, 0)
	never := status{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 3}
	const (
		allowsNone = "closed: PodDisruptionBudget a allows no eviction, even with every pod healthy"
		notYet     = "the status of PodDisruptionBudget a does not count the pod yet"
		noneReady  = "PodDisruptionBudget a allows no eviction while none of its pods is ready"
		ended      = "still there after its grace period, which ended at Thu 1970-01-01 00:00:01 UTC"
	)
	lenient := policyv1.AlwaysAllow
	budgetOf := func(s status) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: all}, Status: s}
	}
	unready := func(t *target) { t.ready = false }
	failedSync := budgetOf(status{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 2, Conditions: []metav1.Condition{{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: `found no controllers for pod "job-1"`,
	}}})
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
		"none": {},
		"a budget that requires every pod to be healthy":              {budgets: list{budgetOf(never)}, want: allowsNone},
		"a budget that allows evictions":                              {budgets: list{budgetOf(status{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 2, DisruptionsAllowed: 1})}},
		"a budget that allows no eviction while a pod is not healthy": {budgets: list{budgetOf(status{CurrentHealthy: 2, ExpectedPods: 3, DesiredHealthy: 2})}},
		"a budget without a status":                                   {budgets: list{outdated(1, status{})}, want: notYet},
		"a budget that counts no pods":                                {budgets: list{outdated(0, status{})}, want: notYet},
		"a budget whose status is of an older spec":                   {budgets: list{outdated(2, never)}, want: notYet},
		"a budget that allowed evictions under an older spec":         {budgets: list{outdated(2, status{DisruptionsAllowed: 1})}, want: notYet},
		"a budget without a status, and one that allows no eviction": {
			budgets: list{outdated(1, status{}), budgetOf(never)},
			want:    "several PodDisruptionBudgets select the pod (a, b), which the eviction API does not support: leave one",
		},
		"a budget without a status that allows evictions of pods that are not ready": {
			budgets: list{{
				ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: all, UnhealthyPodEvictionPolicy: &lenient},
			}},
			change: unready,
		},
		"a budget that selects other pods": {budgets: list{{
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}}, Status: never,
		}}},
		"a budget that allows evictions of pods that are not ready": {
			budgets: list{{Spec: policyv1.PodDisruptionBudgetSpec{Selector: all, UnhealthyPodEvictionPolicy: &lenient}, Status: never}},
			change:  unready,
		},
		"the same budget, for a ready pod": {
			budgets: list{{Spec: policyv1.PodDisruptionBudgetSpec{Selector: all, UnhealthyPodEvictionPolicy: &lenient}, Status: never}},
			want:    allowsNone,
		},
		"a pod that is not ready, and enough others are healthy": {budgets: list{budgetOf(never)}, change: unready},
		"a pod that is not ready, and too few others are healthy": {
			budgets: list{budgetOf(status{CurrentHealthy: 2, ExpectedPods: 3, DesiredHealthy: 3})}, change: unready, want: allowsNone,
		},
		"a pod that is not ready, under a budget that requires no healthy pod": {
			budgets: list{budgetOf(status{ExpectedPods: 3})}, change: unready, want: noneReady,
		},
		"a budget that requires no healthy pod, and one is healthy": {budgets: list{budgetOf(status{CurrentHealthy: 1, ExpectedPods: 3, DisruptionsAllowed: 1})}, change: unready},
		"a budget whose pods cannot be counted": {
			budgets: list{failedSync},
			want:    `PodDisruptionBudget a allows no eviction, because its pods cannot be counted: found no controllers for pod "job-1"`,
		},
		"a budget with more evictions than may be unconfirmed": {
			budgets: list{budgetOf(status{CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 2, DisruptionsAllowed: 1, DisruptedPods: unconfirmed(2001)})},
			want:    notYet,
		},
		"a pod that has not started":                   {budgets: list{budgetOf(never)}, change: func(t *target) { t.pending = true }},
		"a pod that is terminating":                    {budgets: list{budgetOf(never)}, change: func(t *target) { t.deleted = now.Add(-29 * time.Second) }},
		"a pod that has been terminating for too long": {change: func(t *target) { t.deleted = time.Unix(1, 0) }, want: ended},
		"a pod that a finalizer keeps": {
			change: func(t *target) { t.deleted, t.finalizers = time.Unix(1, 0), "example.com/backup" },
			want:   ended + "; finalizers keep it: example.com/backup",
		},
		"a pod that a rule deletes, and that is still there": {
			change: func(t *target) { t.deleted, t.decision.action = time.Unix(1, 0), v1alpha1.DrainDelete }, want: ended,
		},
		"a pod that a rule skips, and that is still there": {change: func(t *target) { t.deleted, t.decision.action = time.Unix(1, 0), v1alpha1.DrainSkip }},
		"a pod that a rule deletes":                        {budgets: list{budgetOf(never)}, change: func(t *target) { t.decision.action = v1alpha1.DrainDelete }},
		"a pod that is waited for":                         {budgets: list{budgetOf(never)}, change: func(t *target) { t.decision.action = v1alpha1.DrainWaitCompleted }},
		"a pod that a rule skips":                          {budgets: list{budgetOf(never)}, change: func(t *target) { t.decision.action = v1alpha1.DrainSkip }},
		"two budgets, no matter what they allow": {
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
				tc.budgets[i].Name = name.Name
				p.budgetChanged(name, readBudget(&tc.budgets[i]), now)
			}
			got := ""
			found, _ := p.findings(now)
			for _, f := range found.Guarded {
				got = f.Message
			}
			for _, f := range found.Closed {
				got = "closed: " + f.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// unconfirmed returns evictions that the disruption controller has not confirmed.
func unconfirmed(count int) map[string]metav1.Time {
	pods := map[string]metav1.Time{}
	for i := range count {
		pods[strconv.Itoa(i)] = metav1.Now()
	}
	return pods
}

// TestFindings_ChangeWithTime shows that a check reports a pod that has been terminating for too
// long, although nothing else changes.
func TestFindings_ChangeWithTime(t *testing.T) {
	p, ends := newProgress(), time.Unix(1000, 0)
	pod := target{NamespacedName: types.NamespacedName{Namespace: "default", Name: "db-0"}, uid: "u", deleted: ends}
	p.replace([]target{pod})
	found, changes := p.findings(ends)
	if len(found.Guarded) != 0 || !changes.Equal(ends.Add(stuckAfter)) {
		t.Errorf("found %v, changes at %s", found.Guarded, changes)
	}
	if found, changes = p.findings(changes); len(found.Guarded) != 1 || !changes.IsZero() {
		t.Errorf("found %v, changes at %s", found.Guarded, changes)
	}
}

// TestRefusedNow shows which pods a budget holds up for the moment. Pods that it holds up for good
// have separate findings.
func TestRefusedNow(t *testing.T) {
	closed := web(0)
	closed.closed = "PodDisruptionBudget web allows no eviction, even with every pod healthy"
	for name, tc := range map[string]struct {
		script *script
		want   []Pod
	}{
		"no budget":                      {begin(t, makeTarget("a", isReady)), nil},
		"a budget that allows evictions": {begin(t, makeTarget("a", isReady)).budget(0, web(1)), nil},
		"a budget that allows none now": {
			begin(t, makeTarget("a", isReady), makeTarget("b", isReady, app("api"))).budget(0, web(0)),
			[]Pod{blockedPod("a", "UndrainablePod", "PodDisruptionBudget web allows no eviction now")},
		},
		"a closed budget":       {begin(t, makeTarget("a", isReady)).budget(0, closed), nil},
		"a pod that terminates": {begin(t, makeTarget("a", isReady, deleted(10))).budget(0, web(0)), nil},
		"a pod that has left":   {begin(t, makeTarget("a", isReady)).budget(0, web(0)).gone("a"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.script.p.refusedNow()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}
