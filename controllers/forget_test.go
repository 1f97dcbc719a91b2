package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// What is remembered of a policy is dropped when it is gone, even if a new one has the same name.
func TestRebootPolicyReconciler_ForgetsPoliciesThatAreGone(t *testing.T) {
	instant := time.Unix(1, 0)
	r := &RebootPolicyReconciler{
		ledger:   ledgerWriter{memories: map[types.UID]*memory{"old": {adopted: true}, "stays": {adopted: true}}},
		announce: announcer{metrics: NewMetrics(prometheus.NewRegistry()), freedAt: map[string]time.Time{"gone": instant, "stays": instant}},
	}
	r.forget("gone", []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "stays", UID: "stays"}}})
	if diff := cmp.Diff(map[types.UID]*memory{"stays": {adopted: true}}, r.ledger.memories, cmp.AllowUnexported(memory{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]time.Time{"stays": instant}, r.announce.freedAt); diff != "" {
		t.Error(diff)
	}
}

// A message may be delivered after its policy is gone. It must not bring back its series until a
// policy of that name exists again.
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

// The last write of a deleted policy removes its finalizer, even if it was to be resumed or is
// already gone.
func TestReconcile_WritesNothingOfAPolicyThatIsGone(t *testing.T) {
	for name, answer := range map[string]error{
		"the finalizer goes": nil, "it went before": apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("rebootpolicies").GroupResource(), limiting),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			share(t, s)
			change(t, s, limiting, func(p *v1alpha1.RebootPolicy) {
				p.Status.Grants, p.Annotations = nil, map[string]string{v1alpha1.AnnotationResume: "repaired"}
			})
			s.remove(t, &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: limiting}})
			s.fault = always(limiting, answer)
			if result, err := s.reconciler.Reconcile(t.Context(), request(limiting)); err != nil || !result.IsZero() {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}
