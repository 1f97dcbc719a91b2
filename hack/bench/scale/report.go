package scale

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
)

const goalHandover = 250 * time.Millisecond

// goalMemory is the limit of the manager's memory at rest, by the number of nodes.
var goalMemory = map[int]int64{5000: 130 << 20, 15000: 260 << 20}

// report returns a table with a column for each size and a row for each figure.
func report(o *options, sizes []size) figures.Result {
	columns := []string{""}
	for _, s := range sizes {
		columns = append(columns, fmt.Sprintf(">%d nodes", s.nodes))
	}
	return figures.Result{
		Setting: fmt.Sprintf("kube-apiserver and etcd only. Nodes have about 15 kB (JSON, without managedFields), and their kubelets write their status every %s. "+
			"One policy governs all nodes, with limit %d and `reboot.settle: 0s`. %d of the nodes are rebooted, by agents that need no time, "+
			"on machines that are down for %s. The manager is measured at rest for %s.",
			heartbeatPeriod, o.slots, o.reboots, o.down, o.rest),
		Tables: []figures.Table{
			{Title: "The manager at rest", Columns: columns, Rows: sideBySide(sizes, size.atRestRows)},
			{Title: "Slots that change hands", Columns: columns, Rows: sideBySide(sizes, size.loadRows)},
		},
		Notes: []string{
			"A hand-over lasts from an agent's report after its boot to the grant of the next node. The manager confirms one reboot, writes the ledger and publishes the next grant.",
			"A new manager does not update mere counts in the first 15 s, so the start takes longer than that in the larger clusters.",
		},
	}
}

func (s size) atRestRows() []figures.Row {
	memory := figures.Figure("memory (RSS)", figures.Mebibytes(s.rested.Resident))
	if goal := goalMemory[s.nodes]; goal > 0 {
		memory.Goal, memory.Missed = fmt.Sprintf("below %s at %d", figures.Mebibytes(goal), s.nodes), s.rested.Resident >= goal
	}
	lists, work := verbs(s.atRest)["list"], s.atRest.Work()
	return []figures.Row{
		memory,
		figures.Figure("of it heap and stacks, the rest is the program", figures.Mebibytes(s.rested.Anonymous)),
		figures.Figure("its peak, at the start", figures.Mebibytes(s.started.Peak)),
		figures.Figure("CPU in a minute", figures.Seconds(s.resting)),
		figures.Judged("LISTs in a minute", s.perMinute(lists), lists == 0, "none"),
		figures.Judged("requests in a minute, without watches and the Lease", s.perMinute(work), work == 0, "none"),
		figures.Figure("requests for the Lease in a minute", s.perMinute(s.atRest.Leases)),
		figures.Figure("heartbeats written in a second", fmt.Sprintf("%.1f", s.beats)),
		figures.Figure("start until the status counts all nodes", figures.Seconds(s.synced)),
	}
}

func (s size) loadRows() []figures.Row {
	met := len(s.handover) > 0 && figures.Quantile(s.handover, 0.5) < goalHandover
	reboots := max(1, s.reboots)
	return []figures.Row{
		figures.Judged("hand-over, median", figures.QuantileText(s.handover, 0.5), met, "below "+figures.Milliseconds(goalHandover)),
		figures.Figure("95th percentile", figures.QuantileText(s.handover, 0.95)),
		figures.Figure("longest", figures.QuantileText(s.handover, 1)),
		figures.Figure("of it after the confirmation, median", figures.QuantileText(s.afterFinish, 0.5)),
		figures.Figure("hand-overs measured", strconv.Itoa(len(s.handover))),
		figures.Figure("all reboots", figures.Seconds(s.took)),
		figures.Figure("the manager's CPU for one", figures.Milliseconds(s.cpu/time.Duration(reboots))),
		figures.Figure("its writes for one, without events and the Lease", fmt.Sprintf("%.1f", float64(fleet.Total(s.loaded.Writes))/float64(reboots))),
		figures.Figure("its memory after all", figures.Mebibytes(s.end.Resident)),
		figures.Figure("its peak", figures.Mebibytes(s.end.Peak)),
	}
}

// sideBySide returns rows with a column for each size. A goal is met if every size meets its own.
func sideBySide(sizes []size, rows func(size) []figures.Row) []figures.Row {
	var all []figures.Row
	for i, s := range sizes {
		for n, row := range rows(s) {
			if i == 0 {
				all = append(all, row)
				continue
			}
			all[n].Cells = append(all[n].Cells, row.Cells[1])
			all[n].Missed = all[n].Missed || row.Missed
			if !strings.Contains(all[n].Goal, row.Goal) {
				all[n].Goal = strings.TrimPrefix(all[n].Goal+", "+row.Goal, ", ")
			}
		}
	}
	return all
}

// verbs counts requests by verb, without Leases. Requests for Events count as one verb.
func verbs(asked fleet.Asked) map[string]int {
	counts := map[string]int{"watch": asked.Watches, "event": asked.Events}
	for _, line := range slices.Concat(asked.Writes, asked.Reads) {
		counts[line.Verb] += line.Count
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

func (s size) perMinute(n int) string {
	return fmt.Sprintf("%.0f", float64(n)/max(s.rest.Minutes(), 1e-9))
}
