package forecast_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
)

// took is a reboot of the past by its phases, in seconds.
func took(before, drain, reboot, settle int) v1alpha1.PastReboot {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	return v1alpha1.PastReboot{
		Result: v1alpha1.RebootSucceeded, Drain: seconds(drain), Reboot: seconds(reboot), Settle: seconds(settle),
		GrantedAt: metav1.NewTime(monday), EndedAt: metav1.NewTime(monday.Add(time.Duration(before+drain+reboot+settle) * time.Second)),
	}
}

func TestExpect(t *testing.T) {
	aborted, unmeasured := took(1, 999, 999, 999), took(1, 999, 999, 999)
	aborted.Result, unmeasured.Reboot = v1alpha1.RebootAborted, nil
	cases := map[string]struct {
		history []v1alpha1.PastReboot
		// want is before, drain, reboot and settle in seconds, and how many were measured.
		want [5]int
	}{
		"nothing is known yet":                    {nil, [5]int{0, 120, 180, 60, 0}},
		"one was measured":                        {[]v1alpha1.PastReboot{took(4, 30, 50, 70)}, [5]int{4, 30, 50, 70, 1}},
		"the median, each phase by itself":        {[]v1alpha1.PastReboot{took(1, 30, 500, 70), took(2, 40, 50, 80), took(900, 20, 60, 90)}, [5]int{2, 30, 60, 80, 3}},
		"the lower one of two in the middle":      {[]v1alpha1.PastReboot{took(2, 40, 50, 90), took(1, 30, 60, 70)}, [5]int{1, 30, 50, 70, 2}},
		"what failed or was not measured is none": {[]v1alpha1.PastReboot{aborted, unmeasured, took(0, 30, 50, 70)}, [5]int{0, 30, 50, 70, 1}},
		"settle is at least what the spec says":   {[]v1alpha1.PastReboot{took(0, 30, 50, 5)}, [5]int{0, 30, 50, 60, 1}},
		"clocks that disagree make nothing less":  {[]v1alpha1.PastReboot{took(-9, 30, 50, 70)}, [5]int{0, 30, 50, 70, 1}},
	}
	leads := policy(func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{LeadTime: &metav1.Duration{Duration: 10 * time.Minute}}
	})
	if d := forecast.Expect(leads); d.Drain.Duration != 12*time.Minute {
		t.Errorf("with a lead time of 10m a drain is assumed to last %s", d.Drain.Duration)
	}
	leads.Status.History = []v1alpha1.PastReboot{took(0, 30, 50, 70)}
	if d := forecast.Expect(leads); d.Drain.Duration != 10*time.Minute {
		t.Errorf("no drain of the history had the lead time of 10m, and one is expected to last %s", d.Drain.Duration)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := forecast.Expect(policy(func(p *v1alpha1.RebootPolicy) { p.Status.History = tc.history }))
			got := [5]int{int(d.Before.Seconds()), int(d.Drain.Seconds()), int(d.Reboot.Seconds()), int(d.Settle.Seconds()), d.Measured}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if sum := time.Duration(got[0]+got[1]+got[2]+got[3]) * time.Second; d.Total() != sum {
				t.Errorf("the total is %v, want %v", d.Total(), sum)
			}
		})
	}
}
