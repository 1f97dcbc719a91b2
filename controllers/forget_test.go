package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// What is remembered goes with its policy, also with one of the same name that was created anew.
func TestRebootPolicyReconciler_ForgetsPoliciesThatAreGone(t *testing.T) {
	at := time.Unix(1, 0)
	r := &RebootPolicyReconciler{
		ledger:   ledgerWriter{memories: map[types.UID]*memory{"old": {adopted: true}, "stays": {adopted: true}}},
		announce: announcer{metrics: NewMetrics(prometheus.NewRegistry()), freed: map[string]time.Time{"gone": at, "stays": at}},
	}
	r.forget("gone", []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "stays", UID: "stays"}}})
	if diff := cmp.Diff(map[types.UID]*memory{"stays": {adopted: true}}, r.ledger.memories, cmp.AllowUnexported(memory{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]time.Time{"stays": at}, r.announce.freed); diff != "" {
		t.Error(diff)
	}
}
