package reboots

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// good returns two reboots that only just meet every goal: 2 × (2 s drain + 8 s reboot) in 23 s,
// with 9 writes each.
func good() result {
	return result{
		wall: 23 * time.Second, peak: 1,
		runs: []timeline.Run{
			{Granted: at(0), Drain: at(0), Reboot: at(2), Up: at(10), Done: at(11)},
			{Granted: at(11.2), Drain: at(12), Reboot: at(14), Up: at(22), Done: at(23)},
		},
		asked:         fleet.Asked{Writes: []fleet.Line{{Program: "agent", Verb: "patch", Resource: "nodes", Count: 18}}},
		agentMemory:   process.Memory{Resident: 37 << 20},
		managerMemory: process.Memory{Resident: goalManagerMemory - 1},
	}
}

func TestReport_NamesGoalsThatAreMissed(t *testing.T) {
	misses := map[string]func(*result){
		"wall time to the ideal": func(r *result) { r.wall += time.Second },
		"slot hand-over, from a node back in service to the next grant: median": func(r *result) { r.runs[1].Granted = at(11.25) },
		"most nodes unavailable at once":                                        func(r *result) { r.peak = 2 },
		"API writes per reboot, without evictions and events":                   func(r *result) { r.asked.Writes[0].Count++ },
		"largest manager": func(r *result) { r.managerMemory.Resident++ },
	}
	if missed := report(good()).Missed(); missed != nil {
		t.Errorf("%q are missed, want none", missed)
	}
	for name, miss := range misses {
		r := good()
		miss(&r)
		if diff := cmp.Diff([]string{name}, report(r).Missed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
