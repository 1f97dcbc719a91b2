package main

import (
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/chaos/worker"
)

// A run proves nothing if one kind of fault almost never struck.
func TestResult_FailsIfAFaultHardlyOccurred(t *testing.T) {
	const least = 3
	r, rare := newResult(0), schedule.Kinds()[1]
	for i := range least {
		struck := map[schedule.Kind]int{}
		for _, kind := range schedule.Kinds() {
			struck[kind] = 1
		}
		if i == 0 {
			struck[rare] = 0
		}
		r.add(worker.Outcome{Schedule: schedule.Schedule{Sharing: true}, Struck: struck})
	}
	err := r.failure(least)
	if err == nil || strings.Count(err.Error(), "occurred in") != 1 || !strings.Contains(err.Error(), string(rare)) {
		t.Errorf("without enough of %q: %v", rare, err)
	}
	if err := r.failure(least - 1); err != nil {
		t.Errorf("with as many of each as wanted: %v", err)
	}
	r.hit[rare], r.sharing = least, least-1
	if err := r.failure(least); err == nil || !strings.Contains(err.Error(), "two policies have shared a limit in 2 schedules") {
		t.Errorf("where too few schedules share a limit: %v", err)
	}
}
