package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// Failures count from an administrator's word, also where the policy had not halted: then the condition's status stays as it is,
// and its time moves all the same.
func TestStatusOf_ResumesFromTheAnnotationOn(t *testing.T) {
	before := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	now := before.Add(time.Hour)
	for name, tc := range map[string]struct {
		annotations map[string]string
		before      metav1.ConditionStatus
		want        time.Time
	}{
		"halted":                              {map[string]string{v1alpha1.AnnotationResume: "fixed"}, metav1.ConditionTrue, now},
		"not halted":                          {map[string]string{v1alpha1.AnnotationResume: "fixed"}, metav1.ConditionFalse, now},
		"the annotation was handled long ago": {nil, metav1.ConditionFalse, before},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHalted, Status: tc.before, LastTransitionTime: metav1.NewTime(before)}}
			p := plan.Plan{Halt: plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"}}
			got := meta.FindStatusCondition(statusOf(policy, p, window.State{}, now).Conditions, v1alpha1.ConditionHalted)
			if diff := cmp.Diff(tc.want, got.LastTransitionTime.Time); diff != "" {
				t.Errorf("failures count from (-want +got):\n%s", diff)
			}
		})
	}
}
