package drain

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func blockedPod(name, reason, message string) Pod {
	return Pod{Namespace: "default", Name: name, UID: makeTarget(name).uid, Reason: reason, Message: message}
}

func recent(p Pod) Pod {
	p.Recent = true
	return p
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		script *script
		now    float64
		want   Status
	}{
		"nothing to do": {
			script: begin(t, makeTarget("a", action(v1alpha1.DrainSkip))),
			want:   Status{},
		},
		"pods that were not evicted yet are only counted": {
			script: begin(t, makeTarget("a"), makeTarget("b", order(1))),
			want:   Status{Remaining: 2},
		},
		"an accepted pod remains until it is gone": {
			script: begin(t, makeTarget("a")).sent("a").answered(0, yes, "a"),
			want:   Status{Remaining: 1},
		},
		"a pod that is gone counts as evicted": {
			script: begin(t, makeTarget("a"), makeTarget("b")).lists(makeTarget("b")).gone("never seen"),
			want:   Status{Remaining: 1, Evicted: 1},
		},
		"behaviour 38: a refused pod is named with the server's message": {
			script: begin(t, makeTarget("b"), makeTarget("a")).sent("a", "b").answered(0, no, "a", "b"),
			want: Status{Remaining: 2, Blocked: []Pod{
				recent(blockedPod("a", "EvictionBlocked", no.message)), recent(blockedPod("b", "EvictionBlocked", no.message)),
			}},
		},
		"a refusal is recent for five seconds": {
			script: begin(t, makeTarget("a")).answered(1, no, "a").answered(2, no, "a"),
			now:    5.9, want: Status{Remaining: 1, Blocked: []Pod{recent(blockedPod("a", "EvictionBlocked", no.message))}},
		},
		"a refusal that lasts five seconds is not recent": {
			script: begin(t, makeTarget("a")).answered(1, no, "a"),
			now:    6, want: Status{Remaining: 1, Blocked: []Pod{blockedPod("a", "EvictionBlocked", no.message)}},
		},
		"a refused pod stays named while it is evicted again": {
			script: begin(t, makeTarget("a")).sent("a").answered(0, no, "a").sent("a"),
			want:   Status{Remaining: 1, Blocked: []Pod{recent(blockedPod("a", "EvictionBlocked", no.message))}},
		},
		"two failures are not reported": {
			script: begin(t, makeTarget("a")).answered(0, answer{verdict: failed, message: "EOF"}, "a", "a"),
			want:   Status{Remaining: 1},
		},
		"three failures are reported": {
			script: begin(t, makeTarget("a")).answered(0, answer{verdict: failed, message: "EOF"}, "a", "a", "a"),
			want:   Status{Remaining: 1, Blocked: []Pod{recent(blockedPod("a", "EvictionBlocked", "EOF"))}},
		},
		"several budgets: the message names the problem": {
			script: begin(t, makeTarget("a")).sent("a").answered(0, answer{verdict: crowded, message: "500"}, "a"),
			want: Status{Remaining: 1, Blocked: []Pod{blockedPod("a", "EvictionBlocked",
				"several PodDisruptionBudgets select the pod, which the eviction API does not support: leave one")}},
		},
		"several budgets: the message names the budgets once they are known": {
			script: begin(t, makeTarget("a")).sent("a").answered(0, answer{verdict: crowded, message: "500"}, "a").
				budget(0, web(0)).named("all", web(0)).named("other", api(0)),
			want: Status{Remaining: 1, Blocked: []Pod{{
				Namespace: "default", Name: "a", UID: makeTarget("a").uid, Reason: "EvictionBlocked", Budgets: "all, web",
				Message: "several PodDisruptionBudgets select the pod (all, web), which the eviction API does not support: leave one",
			}}},
		},
		"a refused pod: the message names the budget once it is known": {
			script: begin(t, makeTarget("a")).sent("a").answered(0, no, "a").budget(0, web(0)),
			want: Status{Remaining: 1, Blocked: []Pod{{
				Namespace: "default", Name: "a", UID: makeTarget("a").uid, Reason: "EvictionBlocked", Budgets: "web", Message: no.message, Recent: true,
			}}},
		},
		"a pod that is waited for is named": {
			script: begin(t, makeTarget("a", action(v1alpha1.DrainWaitCompleted))),
			want:   Status{Remaining: 1, Blocked: []Pod{blockedPod("a", "WaitCompleted", "a rule waits until it has completed")}},
		},
		"a bare pod that came during the drain is named": {
			script: begin(t, makeTarget("a", keeps("bare"))),
			want:   Status{Remaining: 1, Blocked: []Pod{blockedPod("a", "UndrainablePod", "bare")}},
		},
		"a terminating pod has 30 s after its grace period": {
			script: begin(t, makeTarget("a", deleted(10))),
			now:    39.9, want: Status{Remaining: 1},
		},
		"a terminating pod is stuck 30 s after its grace period": {
			script: begin(t, makeTarget("a", deleted(10))),
			now:    40, want: Status{Remaining: 1, Blocked: []Pod{blockedPod("a", "StuckTerminating",
				"still there after its grace period, which ended at Fri 2027-01-15 08:00:10 UTC")}},
		},
		"a refused pod that leaves after all is not blocked": {
			script: begin(t, makeTarget("a")).sent("a").answered(0, no, "a").come(makeTarget("a", deleted(10))),
			want:   Status{Remaining: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.script.p.status(at(tc.now))
			got.Left = nil // see TestStatus_Left
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatus_Left shows that Left has all pods that must leave, and that those that may take
// longest come first.
func TestStatus_Left(t *testing.T) {
	s := begin(t, makeTarget("a"), makeTarget("b", deleted(10)), makeTarget("c", deleted(600)), makeTarget("d", deleted(10)),
		makeTarget("e", action(v1alpha1.DrainSkip)), makeTarget("f", keeps("bare")))
	want := []Pod{
		blockedPod("c", "", "terminating until Fri 2027-01-15 08:10:00 UTC"),
		blockedPod("b", "", "terminating until Fri 2027-01-15 08:00:10 UTC"),
		blockedPod("d", "", "terminating until Fri 2027-01-15 08:00:10 UTC"),
		blockedPod("a", "", ""), blockedPod("f", "", ""),
	}
	before := s.p.status(at(0))
	if diff := cmp.Diff(want, before.Left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	s.p.put(makeTarget("a", deleted(20)))
	if reflect.DeepEqual(before, s.p.status(at(0))) {
		t.Error("reported a pod that has begun to terminate")
	}
}

func TestUndrainableError(t *testing.T) {
	s := begin(t, makeTarget("b", keeps("bare")), makeTarget("ok"), makeTarget("a", keeps("emptyDir")))
	err := &UndrainableError{Pods: s.p.undrainable()}
	want := &UndrainableError{Pods: []Pod{blockedPod("a", "UndrainablePod", "emptyDir"), blockedPod("b", "UndrainablePod", "bare")}}
	if diff := cmp.Diff(want, err); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	const text = "the policy keeps pods on the node: pod default/a: emptyDir; pod default/b: bare"
	if err.Error() != text {
		t.Errorf("error = %q, want %q", err, text)
	}
}
