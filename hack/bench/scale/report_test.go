package scale

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// good is what meets every goal, if only just.
func good(nodes int) size {
	return size{
		nodes: nodes, rest: 30 * time.Second, reboots: 300,
		manager:  program{rested: process.Memory{Resident: goalMemory[nodes] - 1}},
		handover: latency{median: goalHandover - 1, count: 290},
		atRest:   []embedded.Request{{Verb: "watch", Resource: "nodes"}, {Verb: "update", Resource: "leases"}, {Verb: "get", Resource: "leases"}},
	}
}

func missed(r figures.Result) string {
	var names []string
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			if row.Missed {
				names = append(names, row.Cells[0])
			}
		}
	}
	return strings.Join(names, ", ")
}

func TestReport_MarksEachGoalThatIsMissed(t *testing.T) {
	cases := map[string]struct {
		miss func(*size)
		want string
	}{
		"all are met":             {func(*size) {}, ""},
		"too large":               {func(s *size) { s.manager.rested.Resident++ }, "memory (RSS)"},
		"a LIST":                  {func(s *size) { s.atRest[0].Verb = "list" }, "LISTs in a minute, requests in a minute, beside watches and the Lease"},
		"a write":                 {func(s *size) { s.atRest[1].Resource = "nodes" }, "requests in a minute, beside watches and the Lease"},
		"too slow":                {func(s *size) { s.handover.median++ }, "hand-over, median"},
		"nothing was handed over": {func(s *size) { s.handover = latency{} }, "hand-over, median"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, nodes := range []int{5000, 15000} {
				s := good(nodes)
				tc.miss(&s)
				if diff := cmp.Diff(tc.want, missed(report(&options{}, []size{good(5000), s}))); diff != "" {
					t.Errorf("%d nodes (-want +got):\n%s", nodes, diff)
				}
			}
		})
	}
}

func TestReport_HasACellForEachSize(t *testing.T) {
	s := good(1000)
	s.manager.rested.Resident = 1 << 40
	s.atStart = []embedded.Request{{Verb: "list"}, {Verb: "watch"}, {Verb: "list"}, {Verb: "get", Resource: "leases"}}
	r := report(&options{}, []size{s, good(5000), good(15000)})
	if got := missed(r); got != "" {
		t.Errorf("%s is missed, and 1000 nodes have no goal for memory", got)
	}
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			if len(row.Cells) != len(table.Columns) || len(row.Cells) != 4 {
				t.Errorf("%d cells, %d columns: %v", len(row.Cells), len(table.Columns), row.Cells)
			}
		}
	}
	text := r.Markdown("make bench")
	for _, part := range []string{"below 130.0 MiB at 5000, below 260.0 MiB at 15000", "| requests at the start | 2 list, 1 watch |", "| requests for the Lease in a minute | 4 |"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

func TestWatchReport_ShowsWhatOneWatchNeeds(t *testing.T) {
	stages := []stage{
		{name: "none", held: 100 << 20, cpu: time.Second},
		{name: "kubelets", held: 300 << 20, cpu: 3 * time.Second, opening: 2 * time.Second},
		{name: "kubelets and agents", held: 400 << 20, cpu: 4 * time.Second, opening: time.Second, reopening: time.Second / 2},
	}
	r := watchReport(&watchOptions{agents: 1024}, stages)
	want := [][]string{
		{"memory held after a garbage collection", "100.0 MiB", "300.0 MiB", "400.0 MiB", "200 KiB", "100 KiB"},
		{"CPU in a minute of heartbeats", "1.0 s", "3.0 s", "4.0 s", "2.0 ms", "1.0 ms"},
		{"CPU to open them, connections and all", "0.0 s", "2.0 s", "1.0 s", "2.0 ms", "1.0 ms"},
		{"CPU to open them again, every 5 to 10 minutes", "0.0 s", "0.0 s", "0.5 s", "0.0 ms", "0.5 ms"},
	}
	rows := map[string][]string{}
	for _, row := range r.Tables[0].Rows {
		rows[row.Cells[0]] = row.Cells
		if len(row.Cells) != len(r.Tables[0].Columns) {
			t.Errorf("%d cells, %d columns: %v", len(row.Cells), len(r.Tables[0].Columns), row.Cells)
		}
	}
	for _, cells := range want {
		if diff := cmp.Diff(cells, rows[cells[0]]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
