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
		ledger: ledgerWriter{
			adopted: map[types.UID]bool{"old": true, "stays": true},
			wrote:   map[types.UID]time.Time{"old": at, "stays": at}, estimates: map[types.UID]time.Time{"old": at, "stays": at},
		},
		announce: announcer{metrics: NewMetrics(prometheus.NewRegistry()), freed: map[string]time.Time{"gone": at, "stays": at}},
	}
	r.forget("gone", []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "stays", UID: "stays"}}})
	if diff := cmp.Diff(map[types.UID]bool{"stays": true}, r.ledger.adopted); diff != "" {
		t.Error(diff)
	}
	for _, times := range []map[types.UID]time.Time{r.ledger.wrote, r.ledger.estimates} {
		if diff := cmp.Diff(map[types.UID]time.Time{"stays": at}, times); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(map[string]time.Time{"stays": at}, r.announce.freed); diff != "" {
		t.Error(diff)
	}
}
