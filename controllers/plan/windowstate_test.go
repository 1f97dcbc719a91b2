package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// TestReboots_Window: what a person did is reported before the hours.
func TestReboots_Window(t *testing.T) {
	soon, past := metav1.NewTime(evening.Add(time.Hour)), metav1.NewTime(evening)
	open, closed := window.State{Open: true}, window.State{}
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		window window.State
		want   v1alpha1.WindowState
	}{
		"no windows":                {policy("workers"), window.State{Open: true, Always: true}, v1alpha1.WindowAlways},
		"an open window":            {policy("workers"), open, v1alpha1.WindowOpen},
		"a closed window":           {policy("workers"), closed, v1alpha1.WindowClosed},
		"a blackout":                {policy("workers"), window.State{Always: true, Blackout: true}, v1alpha1.WindowClosed},
		"paused in an open window":  {policy("workers", paused(nil, "")), open, v1alpha1.WindowPaused},
		"paused for an hour":        {policy("workers", paused(&soon, "")), closed, v1alpha1.WindowPaused},
		"a pause that is over":      {policy("workers", paused(&past, "")), open, v1alpha1.WindowOpen},
		"urgent":                    {policy("workers"), window.State{Open: true, Urgent: true}, v1alpha1.WindowUrgent},
		"urgent, and paused":        {policy("workers", paused(nil, ""), urgent(soon.Time, "Windows")), window.State{Open: true, Urgent: true}, v1alpha1.WindowPaused},
		"urgent in spite of pauses": {policy("workers", paused(nil, ""), urgent(soon.Time, "Pause")), window.State{Open: true, Urgent: true}, v1alpha1.WindowUrgent},
		"urgent no more":            {policy("workers", paused(nil, ""), urgent(past.Time, "Pause")), open, v1alpha1.WindowPaused},
		"urgent, and halted":        {policy("workers", halted, urgent(soon.Time, "Pause")), window.State{Open: true, Urgent: true}, v1alpha1.WindowHalted},
		"halted, paused and closed": {policy("workers", halted, paused(nil, "")), closed, v1alpha1.WindowHalted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "window", tc.want, one(tc.policy).in(tc.window).plan().Window)
		})
	}
}

// urgent ignores windows, blackouts or a pause until an instant.
func urgent(until time.Time, ignore ...v1alpha1.UrgentIgnore) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Urgent = &v1alpha1.Urgent{Until: metav1.NewTime(until), Reason: "CVE-2026-12345", Ignore: ignore}
	}
}
