package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// What is remembered goes with its policy, also with one of the same name that was created anew.
func TestRebootPolicyReconciler_ForgetsPoliciesThatAreGone(t *testing.T) {
	at := time.Unix(1, 0)
	r := &RebootPolicyReconciler{
		ledger:   ledgerWriter{memories: map[types.UID]*memory{"old": {adopted: true}, "stays": {adopted: true}}},
		announce: announcer{metrics: NewMetrics(prometheus.NewRegistry()), freedAt: map[string]time.Time{"gone": at, "stays": at}},
	}
	r.forget("gone", []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "stays", UID: "stays"}}})
	if diff := cmp.Diff(map[types.UID]*memory{"stays": {adopted: true}}, r.ledger.memories, cmp.AllowUnexported(memory{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]time.Time{"stays": at}, r.announce.freedAt); diff != "" {
		t.Error(diff)
	}
}

// A message may be delivered after its policy is gone: it brings no series back, until there is a policy of that name again.
func TestMetrics_MessagesOfPoliciesThatAreGone(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	sent := func() (counted bool) {
		m.notified("gone", "Finished", "sent")
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			counted = counted || family.GetName() == prefix+"notifications_total"
		}
		return counted
	}
	if !sent() {
		t.Error("a message of a policy that is there is counted")
	}
	m.forget("gone")
	if sent() {
		t.Error("a message of a policy that is gone is counted")
	}
	m.observe(&v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}, plan.Plan{}, window.State{})
	if !sent() {
		t.Error("a message of a policy that is there again is counted")
	}
}
