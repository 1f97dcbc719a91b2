package scale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/bench/rules"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// Goals.
const goalHandover = 250 * time.Millisecond

// goalMemory is below which the manager has to stay at rest, by the number of nodes; none for other numbers.
var goalMemory = map[int]int64{5000: 130 << 20, 15000: 260 << 20}

// report is one table of all sizes, a row for each figure.
func report(o *options, sizes []size) figures.Result {
	columns := []string{""}
	for _, s := range sizes {
		column := fmt.Sprintf(">%d nodes", s.nodes)
		if s.ruled {
			column += ", all rules"
		}
		columns = append(columns, column)
	}
	return figures.Result{
		Setting: fmt.Sprintf("kube-apiserver and etcd alone; Nodes of about 15 kB (JSON, without managedFields) as real clusters have them, fifty images each, "+
			"whose kubelets write their status every %s; Leases of kubelets, which the manager does not see, are left out. One policy for all nodes, limit %d, `settle: 0s`; "+
			"%d of the nodes are rebooted, by agents that need no time, on machines that are down for %s. At rest for %s. All rules are "+rules.Setting+". `concurrency.spacing` is left out: "+
			"its shortest is a minute. What they cost once is done before: `maxUptime` one write for each node.",
			heartbeatPeriod, o.slots, o.reboots, o.down, o.rest),
		Tables: []figures.Table{
			{Title: "The manager at rest", Columns: columns, Rows: restRows(sizes)},
			{Title: "Slots that change hands", Columns: columns, Rows: loadRows(sizes)},
		},
		Notes: []string{
			"A cache of whole nodes is the yardstick in the same run: a program that holds all Nodes in a cache of controller-runtime as they are, and does nothing with them.",
			"A hand-over is from the last report of one node's agent after its boot to the grant of the node that gets the slot, as a watch shows both: " +
				"the manager confirms the one, writes the ledger and publishes the other. Any write, from its start to its watch, is the yardstick for one such step.",
			"A status of another manager's is not written anew for counts alone in the first 15 s: from the second size on the start takes as long, however soon the manager decides.",
		},
	}
}

func restRows(sizes []size) []figures.Row {
	return []figures.Row{
		judged(sizes, "memory (RSS)", func(s size) string { return figures.Mebibytes(s.manager.rested.Resident) },
			func(s size) bool { return goalMemory[s.nodes] == 0 || s.manager.rested.Resident < goalMemory[s.nodes] }, memoryGoal(sizes)),
		row(sizes, "of it heap and stacks, the rest is the program", func(s size) string { return figures.Mebibytes(s.manager.rested.Anonymous) }),
		row(sizes, "its peak, at the start", func(s size) string { return figures.Mebibytes(s.manager.started.Peak) }),
		row(sizes, "memory of a cache of whole nodes", func(s size) string { return figures.Mebibytes(s.bare.rested.Resident) }),
		row(sizes, "its peak", func(s size) string { return figures.Mebibytes(s.bare.started.Peak) }),
		row(sizes, "CPU in a minute", func(s size) string { return figures.Seconds(s.manager.cpu) }),
		row(sizes, "CPU of a cache of whole nodes", func(s size) string { return figures.Seconds(s.bare.cpu) }),
		judged(sizes, "LISTs in a minute", func(s size) string { return perMinute(s, count(s.atRest, isList)) },
			func(s size) bool { return count(s.atRest, isList) == 0 }, "none"),
		judged(sizes, "requests in a minute, beside watches and the Lease", func(s size) string { return perMinute(s, count(s.atRest, isWork)) },
			func(s size) bool { return count(s.atRest, isWork) == 0 }, "none"),
		row(sizes, "requests for the Lease in a minute", func(s size) string { return perMinute(s, count(s.atRest, isLease)) }),
		row(sizes, "heartbeats written in a second", func(s size) string { return fmt.Sprintf("%.1f", s.beats) }),
		row(sizes, "start until the status counts all nodes", func(s size) string { return figures.Seconds(s.manager.synced) }),
		row(sizes, "requests at the start", func(s size) string { return verbs(s.atStart) }),
	}
}

func loadRows(sizes []size) []figures.Row {
	return []figures.Row{
		judged(sizes, "hand-over, median", func(s size) string { return figures.QuantileText(s.handover, 0.5) },
			func(s size) bool {
				return s.ruled || len(s.handover) > 0 && figures.Quantile(s.handover, 0.5) < goalHandover
			}, "below "+figures.Milliseconds(goalHandover)),
		row(sizes, "19 of 20 take at most", func(s size) string { return figures.QuantileText(s.handover, 0.95) }),
		row(sizes, "longest", func(s size) string { return figures.QuantileText(s.handover, 1) }),
		row(sizes, "of it after the confirmation, median", func(s size) string { return figures.QuantileText(s.afterFinish, 0.5) }),
		row(sizes, "any write until its watch, median", func(s size) string { return figures.QuantileText(s.write, 0.5) }),
		row(sizes, "19 of 20 writes take at most", func(s size) string { return figures.QuantileText(s.write, 0.95) }),
		row(sizes, "hand-overs measured", func(s size) string { return strconv.Itoa(len(s.handover)) }),
		row(sizes, "all reboots", func(s size) string { return figures.Seconds(s.took) }),
		row(sizes, "the manager's CPU for one", func(s size) string { return figures.Milliseconds(s.cpu / time.Duration(max(1, s.reboots))) }),
		row(sizes, "its writes for one, beside events and the Lease", func(s size) string {
			return fmt.Sprintf("%.1f", float64(count(s.loaded, isOurWrite))/float64(max(1, s.reboots)))
		}),
		row(sizes, "its memory after all", func(s size) string { return figures.Mebibytes(s.end.Resident) }),
		row(sizes, "its peak", func(s size) string { return figures.Mebibytes(s.end.Peak) }),
	}
}

func row(sizes []size, name string, cell func(size) string) figures.Row {
	cells := []string{name}
	for _, s := range sizes {
		cells = append(cells, cell(s))
	}
	return figures.Row{Cells: cells}
}

// judged is a row whose goal every size has to meet.
func judged(sizes []size, name string, cell func(size) string, met func(size) bool, goal string) figures.Row {
	r := row(sizes, name, cell)
	r.Goal, r.Missed = goal, slices.ContainsFunc(sizes, func(s size) bool { return !met(s) })
	return r
}

// memoryGoal is the goal for those sizes that have one.
func memoryGoal(sizes []size) string {
	var goals []string
	for _, s := range sizes {
		if goal := goalMemory[s.nodes]; goal > 0 {
			goals = append(goals, fmt.Sprintf("below %s at %d", figures.Mebibytes(goal), s.nodes))
		}
	}
	return strings.Join(goals, ", ")
}

func count(requests []embedded.Request, is func(embedded.Request) bool) int {
	n := 0
	for _, r := range requests {
		if is(r) {
			n++
		}
	}
	return n
}

func isLease(r embedded.Request) bool { return r.Resource == "leases" }
func isList(r embedded.Request) bool  { return r.Verb == "list" }
func isWork(r embedded.Request) bool  { return r.Verb != "watch" && !isLease(r) }

func isOurWrite(r embedded.Request) bool {
	return r.IsWrite() && r.Resource != "events" && !isLease(r)
}

// verbs counts requests beside those for the Lease by verb, the most frequent first.
func verbs(requests []embedded.Request) string {
	counts := map[string]int{}
	for _, r := range requests {
		if !isLease(r) {
			counts[r.Verb]++
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	for i, verb := range names {
		names[i] = fmt.Sprintf("%d %s", counts[verb], verb)
	}
	return strings.Join(names, ", ")
}

func perMinute(s size, n int) string {
	return fmt.Sprintf("%.0f", float64(n)/max(s.rest.Minutes(), 1e-9))
}
