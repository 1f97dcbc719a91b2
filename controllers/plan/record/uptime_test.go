package record_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

func upForAtMost(most time.Duration) *v1alpha1.RebootPolicySpec {
	return &v1alpha1.RebootPolicySpec{MaxUptime: &v1alpha1.Duration{Duration: most}}
}

// TestMaxUptime_SpreadsAFleet checks that nodes become due spread over the last tenth, even if
// their names differ only in one digit.
func TestMaxUptime_SpreadsAFleet(t *testing.T) {
	const most, nodes, parts = 720 * time.Hour, 1000, 10
	spec := upForAtMost(most)
	counts := make([]int, parts)
	for i := range nodes {
		uptime := record.MaxUptime(spec, fmt.Sprintf("node-%d", i))
		if uptime <= most-most/10 || uptime > most {
			t.Fatalf("node-%d is due after %s of %s", i, uptime, most)
		}
		counts[min(int((most-uptime)*parts/(most/10)), parts-1)]++
	}
	if slices.Min(counts) < nodes/parts/2 || slices.Max(counts) > nodes/parts*2 {
		t.Errorf("of %d nodes, %v become due in each tenth of the last tenth", nodes, counts)
	}
	if again := record.MaxUptime(spec, "node-1"); again != record.MaxUptime(spec, "node-1") || again != record.MaxUptime(upForAtMost(most), "node-1") {
		t.Error("a node becomes due at a different time with each call")
	}
}

func TestMaxUptime_IsForeverForImpossibleValues(t *testing.T) {
	for name, spec := range map[string]*v1alpha1.RebootPolicySpec{
		"no requests":     {},
		"no maximum":      {Urgent: &v1alpha1.Urgent{}},
		"zero":            upForAtMost(0),
		"below zero":      upForAtMost(-time.Hour),
		"less than a day": upForAtMost(24*time.Hour - 1),
	} {
		if got := record.MaxUptime(spec, "n1"); got != 0 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestMaxUptime_IsAcceptedByTheAgent checks that the agent accepts the shortest uptime that the
// manager writes.
func TestMaxUptime_IsAcceptedByTheAgent(t *testing.T) {
	for i := range 1000 {
		want := record.MaxUptime(upForAtMost(24*time.Hour), fmt.Sprintf("node-%d", i))
		if got := protocol.ParseMaxUptime(map[string]string{v1alpha1.AnnotationMaxUptime: want.String()}); got != want {
			t.Fatalf("node-%d may be up for %s, and the agent reads %s", i, want, got)
		}
	}
}
