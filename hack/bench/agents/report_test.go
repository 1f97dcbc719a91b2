package agents

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

var minute = options{nodes: 2, signals: 3, rest: time.Minute}

// good meets every goal, if only just.
func good() result {
	return result{
		atRest: process.Memory{Resident: goalMemory - 1, Anonymous: 8 << 20}, peak: 30 << 20, program: goalProgram - 1,
		requests: []embedded.Request{
			{User: accounts + "agent", As: "system:node:n1", Verb: "watch", Resource: "nodes"},
			{User: accounts + "agent", As: "system:node:n2", Verb: "watch", Resource: "nodes"},
			{User: accounts + "manager", Verb: "update", Resource: "leases"},
			{User: "system:kube-scheduler", Verb: "list", Resource: "pods"},
		},
		detected: []time.Duration{30 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond},
	}
}

func cells(table figures.Table) [][]string {
	var rows [][]string
	for _, row := range table.Rows {
		rows = append(rows, row.Cells)
	}
	return rows
}

func TestReport(t *testing.T) {
	tables := good().report(minute).Tables
	want := [][]string{
		{"largest agent at rest", "32.0 MiB, 8.0 MiB of it its own"},
		{"the most that any agent has held since it started", "30.0 MiB"},
		{"program", "30.0 MB"},
		{"requests of all agents at rest, beside watches", "0"},
		{"watches begun anew, by each agent in an hour", "60"},
		{"from D-Bus signal to RebootRequired: median", "20 ms"},
		{"the same: longest", "30 ms"},
	}
	if diff := cmp.Diff(want, cells(tables[0])); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	want = [][]string{{"120", "all agents", "watch", "nodes"}, {"60", "all managers", "update", "leases"}}
	if diff := cmp.Diff(want, cells(tables[1])); diff != "" {
		t.Errorf("requests in an hour (-want +got):\n%s", diff)
	}
}

func TestReport_MarksEachGoalThatIsMissed(t *testing.T) {
	cases := map[string]struct {
		miss   func(*result)
		missed string
	}{
		"all are met":        {func(*result) {}, ""},
		"too large":          {func(r *result) { r.atRest.Resident++ }, "largest agent at rest"},
		"too large a file":   {func(r *result) { r.program++ }, "program"},
		"an agent that asks": {func(r *result) { r.requests[0].Verb = "get" }, "requests of all agents at rest, beside watches"},
		"a manager that asks is not the agents' business": {func(r *result) { r.requests[2].Verb = "get" }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := good()
			tc.miss(&r)
			var missed []string
			for _, row := range r.report(minute).Tables[0].Rows {
				if row.Missed {
					missed = append(missed, row.Cells[0])
				}
			}
			if got := strings.Join(missed, ", "); got != tc.missed {
				t.Errorf("missed %q, want %q", got, tc.missed)
			}
		})
	}
}
