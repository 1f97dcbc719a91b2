package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// A failure is as old as its reason on the Node. A hook that changes the text of its refusal each
// minute must not undo a resume.
func TestCondition_IsAsOldAsItsReason(t *testing.T) {
	began := time.Date(2026, 6, 5, 22, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		before *corev1.NodeCondition
		want   time.Time
	}{
		"another message": {&corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: "HookFailed", Message: "attempt 1", LastHeartbeatTime: metav1.NewTime(began)}, began},
		"another reason":  {&corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: "WaitingForHook", LastHeartbeatTime: metav1.NewTime(began)}, began.Add(time.Hour)},
		"none before":     {nil, began.Add(time.Hour)},
		"an undated one":  {&corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: "HookFailed"}, began.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			w := nodeWriter{clock: testclock.NewFakePassiveClock(began.Add(time.Hour))}
			d := plan.Decision{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonHookFailed, Message: "attempt 2"}
			if got := w.condition(v1alpha1.NodeRebootPermitted, d, tc.before); !got.LastHeartbeatTime.Time.Equal(tc.want) || got.Message != "attempt 2" {
				t.Errorf("%+v, want it as of %s", got, tc.want)
			}
		})
	}
}
