package protocol_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestFleetLockRequest_CountsForAnHourOfItsBoot(t *testing.T) {
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	written := func(boot string, instant time.Time) string {
		return protocol.FleetLockRequest{BootID: boot, ID: "n1", At: metav1.NewTime(instant)}.String()
	}
	for name, tc := range map[string]struct {
		annotation string
		want       bool
	}{
		"now":                                  {written("boot", now), true},
		"almost an hour ago":                   {written("boot", now.Add(-time.Hour+time.Second)), true},
		"an hour ago":                          {written("boot", now.Add(-time.Hour)), false},
		"dated by a clock that is ahead":       {written("boot", now.Add(time.Minute)), true},
		"dated by a clock that is hours ahead": {written("boot", now.Add(2*time.Hour)), false},
		"in another boot":                      {written("before", now), false},
		"without a boot":                       {written("", now), false},
		"without a time":                       {`{"bootID":"boot","id":"n1"}`, false},
		"by nobody":                            {`{"bootID":"boot","at":"2026-11-21T22:00:00Z"}`, false},
		"with an invalid Node name":            {protocol.FleetLockRequest{BootID: "boot", ID: strings.Repeat("n", 254), At: metav1.NewTime(now)}.String(), false},
		"unreadable":                           {"yes", false},
		"at a time that no status accepts":     {`{"bootID":"boot","id":"n1","at":"10000-01-01T00:00:00Z"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := protocol.ParseFleetLock(map[string]string{v1alpha1.AnnotationFleetLock: tc.annotation})
			if got := err == nil && r.Counts("boot", now); got != tc.want {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
	if r, err := protocol.ParseFleetLock(nil); r != nil || err != nil || r.Counts("boot", now) {
		t.Errorf("%v, %v", r, err)
	}
}
