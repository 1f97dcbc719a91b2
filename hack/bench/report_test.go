package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// good is two reboots that meet every goal, if only just: 2 × (2 s drain + 8 s reboot) in 23 s, 9 writes each.
func good() result {
	return result{
		wall: 23 * time.Second, peak: 1,
		runs: []timeline.Run{
			{Granted: at(0), Drain: at(0), Reboot: at(2), Up: at(10), Done: at(11)},
			{Granted: at(12), Drain: at(12), Reboot: at(14), Up: at(22), Done: at(23)},
		},
		asked:         fleet.Asked{Writes: []fleet.Line{{Program: "agent", Verb: "patch", Resource: "nodes", Count: 18}}},
		agentMemory:   process.Memory{Resident: goalAgentMemory - 1},
		managerMemory: process.Memory{Resident: goalManagerMemory - 1},
	}
}

func TestReport_MarksEachGoalThatIsMissed(t *testing.T) {
	cases := map[string]struct {
		miss   func(*result)
		missed string
	}{
		"all are met":             {func(*result) {}, ""},
		"too slow":                {func(r *result) { r.wall += time.Second }, "ratio"},
		"too many at once":        {func(r *result) { r.peak = 2 }, "most nodes unavailable at once"},
		"too many writes":         {func(r *result) { r.asked.Writes[0].Count++ }, "writes"},
		"an agent too large":      {func(r *result) { r.agentMemory.Resident++ }, "largest agent"},
		"a manager too large":     {func(r *result) { r.managerMemory.Resident++ }, "largest manager"},
		"a read at rest":          {func(r *result) { r.rest.Reads = []fleet.Line{{Count: 1}} }, "requests at rest"},
		"a lease at rest is fine": {func(r *result) { r.rest.Leases, r.rest.Watches = 30, 2 }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := good()
			tc.miss(&r)
			var missed []string
			for _, line := range r.report(terminal.Theme{}) {
				if strings.Contains(line, "✗") {
					missed = append(missed, strings.TrimSpace(line[:36]))
				}
			}
			if got := strings.Join(missed, ", "); got != tc.missed {
				t.Errorf("missed %q, want %q\n%s", got, tc.missed, strings.Join(r.report(terminal.Theme{}), "\n"))
			}
		})
	}
}

func TestWorkload_HasEveryPod(t *testing.T) {
	pods := 0
	for _, document := range strings.Split(string(workload(options{nodes: 3, pods: 7})), "---\n")[1:] {
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(document), &d); err != nil {
			t.Fatal(fmt.Errorf("%w in\n%s", err, document))
		}
		pods += int(*d.Spec.Replicas)
	}
	if pods != 21 {
		t.Errorf("%d pods, want 3 × 7", pods)
	}
}
