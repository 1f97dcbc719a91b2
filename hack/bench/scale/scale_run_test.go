package scale

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// logSteps runs steps, and reports them in the log of the test.
func logSteps(t *testing.T) stepper {
	t.Helper()
	return func(name string, run func() error) error {
		from := time.Now()
		err := run()
		t.Logf("%5.1f s  %s", time.Since(from).Seconds(), name)
		return err
	}
}

func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("`make ci` runs it")
	}
	if _, err := os.Stat(testenv.Assets()); err != nil {
		testenv.NotShown(t, "make controlplane builds the API server")
	}
	const nodes = 20
	err := inLab(t.Context(), 2, logSteps(t), func(l *lab) error {
		m := &options{nodes: []int{nodes}, reboots: nodes, slots: 2, down: 100 * time.Millisecond, rest: time.Second, settle: 2 * time.Second}
		sizes, err := m.measure(t.Context(), l, logSteps(t))
		if err != nil {
			return err
		}
		for _, s := range sizes {
			for name, wrong := range map[string]bool{
				"its memory":               min(s.rested.Resident, s.end.Resident) == 0,
				"its peak":                 s.started.Peak < s.started.Resident,
				"slots that changed hands": len(s.handover) != nodes/2-2 || slices.Min(s.handover) <= 0,
				"a LIST at the start":      verbs(s.atStart)["list"] == 0,
				"no work at rest":          s.atRest.Work() != 0,
				"the Lease":                s.atRest.Leases+s.atStart.Leases == 0,
				"its writes":               fleet.Total(s.loaded.Writes) < 2*s.reboots,
			} {
				if wrong {
					t.Errorf("%s: %+v", name, s.atRest)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
