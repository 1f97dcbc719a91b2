package reboot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Behaviour 42: the reboot waits for the volumes of evicted pods, up to a bound.
func TestDetached_Behaviour42(t *testing.T) {
	done := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		drain   Drain
		inUse   int
		timeout *metav1.Duration
		want    time.Time
	}{
		"no volumes":                       {Drain{State: DrainDone, DoneAt: done}, 0, nil, time.Time{}},
		"volumes of evicted pods":          {Drain{State: DrainDone, DoneAt: done}, 2, nil, done.Add(5 * time.Minute)},
		"volumes of pods that stay":        {Drain{State: DrainDone, DoneAt: done, Volumes: 2}, 2, nil, time.Time{}},
		"one more than those":              {Drain{State: DrainDone, DoneAt: done, Volumes: 2}, 3, nil, done.Add(5 * time.Minute)},
		"as long as the policy says":       {Drain{State: DrainDone, DoneAt: done}, 1, &metav1.Duration{Duration: time.Hour}, done.Add(time.Hour)},
		"not at all where the policy says": {Drain{State: DrainDone, DoneAt: done}, 1, &metav1.Duration{}, done},
		"not when the drain is cut short":  {Drain{State: DrainRunning}, 1, nil, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observation{Drain: tc.drain, VolumesInUse: tc.inUse, Policy: &Settings{Drain: v1alpha1.Drain{VolumeDetachTimeout: tc.timeout}}}
			if diff := cmp.Diff(tc.want, detached(o)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
