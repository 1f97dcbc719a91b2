package host

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

func TestCoordinators_AScheduledShutdown_Behaviour57(t *testing.T) {
	bus, units, coordinators := startUnits(t)
	logind, err := hosttest.StartLogind(bus)
	must(t, err)
	instant := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	usec := uint64(instant.UnixMicro())
	for name, tc := range map[string]struct {
		value any
		file  string
		want  *Coordinator
	}{
		"none":                            {nil, "", nil},
		"a reboot":                        {hosttest.Scheduled{Type: "reboot", USec: usec}, "", &Coordinator{Name: "reboot", At: instant}},
		"a power off":                     {hosttest.Scheduled{Type: "poweroff", USec: usec}, "", &Coordinator{Name: "poweroff", At: instant}},
		"a soft reboot":                   {hosttest.Scheduled{Type: "soft-reboot", USec: usec}, "", &Coordinator{Name: "soft-reboot", At: instant}},
		"a dry run":                       {hosttest.Scheduled{Type: "dry-reboot", USec: usec}, "", nil},
		"a sleep":                         {hosttest.Scheduled{Type: "suspend", USec: usec}, "", nil},
		"a shutdown that was carried out": {hosttest.Scheduled{Type: "reboot"}, "", nil},
		"by whom": {
			hosttest.Scheduled{Type: "reboot", USec: usec},
			"USEC=1\nWARN_WALL=1\nMODE=reboot\nUID=0\nTTY=/dev/pts/3\nWALL_MESSAGE=Rebooting after upgrades\n",
			&Coordinator{Name: "reboot", At: instant, By: `uid 0 on dev_pts_3 "Rebooting after upgrades"`},
		},
		"by an unreadable program": {
			hosttest.Scheduled{Type: "reboot", USec: usec},
			"UID=root\nTTY=//\nWALL_MESSAGE=" + strings.Repeat("ä", 100),
			&Coordinator{Name: "reboot", At: instant, By: `"` + strings.Repeat("ä", 30) + `…"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			logind.Schedule(tc.value)
			coordinators.HostRoot = newRoot(t, map[string]string{"run/systemd/shutdown/scheduled": tc.file})
			got, err := coordinators.Other(t.Context())
			must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	coordinators.HostRoot = t.TempDir()
	logind.Schedule("tomorrow")
	got, err := coordinators.Other(t.Context())
	if want := "asking logind for ScheduledShutdown: s instead of a type and a time"; got != nil || err == nil || err.Error() != want {
		t.Errorf("another type: %v, %v", got, err)
	}
	units.Set("locksmithd.service", "active")
	if got, err := coordinators.Other(t.Context()); err == nil || got == nil || got.Name != "locksmithd" {
		t.Errorf("another type, and locksmithd: %v, %v", got, err)
	}
}
