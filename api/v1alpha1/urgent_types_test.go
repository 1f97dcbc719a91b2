package v1alpha1_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func upFor(most time.Duration) *v1alpha1.RebootPolicySpec {
	return &v1alpha1.RebootPolicySpec{MaxUptime: &metav1.Duration{Duration: most}}
}

// Nodes become due within the last tenth, and nowhere in it many at once, although their names differ in one digit.
func TestRebootPolicySpec_MaxUptimeOf_SpreadsAFleet(t *testing.T) {
	const most, nodes, parts = 720 * time.Hour, 1000, 10
	spec := upFor(most)
	counts := make([]int, parts)
	for i := range nodes {
		uptime := spec.MaxUptimeOf(fmt.Sprintf("node-%d", i))
		if uptime <= most-most/10 || uptime > most {
			t.Fatalf("node-%d is due after %s of %s", i, uptime, most)
		}
		counts[min(int((most-uptime)*parts/(most/10)), parts-1)]++
	}
	if slices.Min(counts) < nodes/parts/2 || slices.Max(counts) > nodes/parts*2 {
		t.Errorf("of %d nodes, %v become due in each tenth of the last tenth", nodes, counts)
	}
	if again := spec.MaxUptimeOf("node-1"); again != spec.MaxUptimeOf("node-1") || again != upFor(most).MaxUptimeOf("node-1") {
		t.Error("a node becomes due at another time each time")
	}
}

func TestRebootPolicySpec_MaxUptimeOf_IsForeverWhereNothingCanBeMeant(t *testing.T) {
	for name, spec := range map[string]*v1alpha1.RebootPolicySpec{
		"no requests":     {},
		"no maximum":      {Urgent: &v1alpha1.Urgent{}},
		"zero":            upFor(0),
		"below zero":      upFor(-time.Hour),
		"less than a day": upFor(24*time.Hour - 1),
	} {
		if got := spec.MaxUptimeOf("n1"); got != 0 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestParseMaxUptime(t *testing.T) {
	for value, want := range map[string]time.Duration{
		upFor(24 * time.Hour).MaxUptimeOf("n1").String(): upFor(24 * time.Hour).MaxUptimeOf("n1"),
		"683h12m0s": 683*time.Hour + 12*time.Minute,
		"21h36m0s":  21*time.Hour + 36*time.Minute,
		"21h35m59s": 0, "1s": 0, "0s": 0, "-720h": 0, "": 0, "720": 0, "a month": 0, "9999999999h": 0,
	} {
		if got := v1alpha1.ParseMaxUptime(map[string]string{v1alpha1.AnnotationMaxUptime: value}); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	if got := v1alpha1.ParseMaxUptime(nil); got != 0 {
		t.Errorf("without the annotation: %s", got)
	}
}
