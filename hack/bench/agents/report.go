package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
)

// Goals.
const (
	goalMemory  = 32 << 20
	goalProgram = 36_000_000
)

// result is what was measured.
type result struct {
	// atRest is the memory of the largest agent at rest, peak the most that any has held since it started.
	atRest process.Memory
	peak   int64
	// program is the size of the executable in bytes.
	program int64
	// asked is what the operator's programs asked at rest.
	asked fleet.Asked
	// detected are the times from a signal to the Node's condition.
	detected []time.Duration
}

// report is the result as tables.
func (r result) report() figures.Result {
	watches, others := 0, 0
	for _, l := range r.asked.All {
		switch {
		case l.Program != "agent":
		case l.Verb == "watch":
			watches += l.Count
		default:
			others += l.Count
		}
	}
	return figures.Result{
		Setting: fmt.Sprintf("%d simulated nodes under a paused policy, at rest for %s, then %d signals of update_engine that a reboot is needed, one "+
			"machine after the other; from each signal to the revision of the Node with RebootRequired=True, as a watch brings it. The "+
			"program is stripped, as in the image.", nodes, rest, signals),
		Tables: []figures.Table{
			{Columns: []string{"figure", "measured"}, Rows: []figures.Row{
				figures.Judged("largest agent at rest", figures.Memory(r.atRest), r.atRest.Resident < goalMemory, "below "+figures.Mebibytes(goalMemory)),
				figures.Figure("the most that any agent has held since it started", figures.Mebibytes(r.peak)),
				figures.Judged("program", fmt.Sprintf("%.1f MB", float64(r.program)/1e6), r.program < goalProgram, fmt.Sprintf("below %d MB", goalProgram/1_000_000)),
				figures.Judged("requests of all agents at rest, beside watches", strconv.Itoa(others), others == 0, "none"),
				figures.Figure("watches begun anew, by each agent in an hour", hourly(watches, nodes)),
				figures.Figure("from D-Bus signal to RebootRequired: median", figures.QuantileText(r.detected, 0.5)),
				figures.Figure("the same: longest", figures.QuantileText(r.detected, 1)),
			}},
			{Title: fmt.Sprintf("Requests at rest, scaled from %s to an hour", rest), Columns: []string{">in an hour", "who", "verb", "what"}, Rows: r.rows()},
		},
	}
}

// rows are the requests of the operator's programs, one program after the other.
func (r result) rows() []figures.Row {
	lines := slices.Clone(r.asked.All)
	slices.SortStableFunc(lines, func(a, b fleet.Line) int { return cmp.Compare(a.Program, b.Program) })
	var rows []figures.Row
	for _, l := range lines {
		rows = append(rows, figures.Row{Cells: []string{hourly(l.Count, 1), "all " + l.Program + "s", l.Verb, l.Resource}})
	}
	return rows
}

// hourly scales a count from the time at rest to an hour, for each of so many.
func hourly(count, each int) string {
	return fmt.Sprintf("%.0f", float64(count)*time.Hour.Seconds()/rest.Seconds()/float64(each))
}
