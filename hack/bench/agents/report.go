package agents

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// Goals.
const (
	goalMemory  = 32 << 20
	goalProgram = 30_000_000
)

// result is what was measured.
type result struct {
	// atRest is the memory of the largest agent at rest, peak the most that any has held since it started.
	atRest process.Memory
	peak   int64
	// program is the size of the executable in bytes.
	program int64
	// requests are all that anybody asked at rest.
	requests []embedded.Request
	// detected are the times from a signal to the Node's condition.
	detected []time.Duration
}

// report is the result as tables.
func (r result) report(o options) figures.Result {
	watches, others := 0, 0
	for _, q := range r.requests {
		switch {
		case q.User != accounts+"agent":
		case q.Verb == "watch":
			watches++
		default:
			others++
		}
	}
	return figures.Result{
		Setting: fmt.Sprintf("%d simulated nodes under a paused policy, at rest for %s, then %d signals of update_engine that a reboot is needed, one "+
			"machine after the other; from each signal to the revision of the Node with RebootRequired=True, as a watch brings it. The "+
			"program is stripped, as in the image.", o.nodes, o.rest, o.signals),
		Tables: []figures.Table{
			{Columns: []string{"figure", "measured"}, Rows: []figures.Row{
				figures.Judged("largest agent at rest", fmt.Sprintf("%s, %s of it its own", figures.Mebibytes(r.atRest.Resident), figures.Mebibytes(r.atRest.Anonymous)),
					r.atRest.Resident < goalMemory, "below "+figures.Mebibytes(goalMemory)),
				figures.Figure("the most that any agent has held since it started", figures.Mebibytes(r.peak)),
				figures.Judged("program", fmt.Sprintf("%.1f MB", float64(r.program)/1e6), r.program < goalProgram, fmt.Sprintf("below %d MB", goalProgram/1_000_000)),
				figures.Judged("requests of all agents at rest, beside watches", strconv.Itoa(others), others == 0, "none"),
				figures.Figure("watches begun anew, by each agent in an hour", r.hourly(watches, o, o.nodes)),
				figures.Figure("from D-Bus signal to RebootRequired: median", figures.Milliseconds(figures.Quantile(r.detected, 0.5))),
				figures.Figure("the same: longest", figures.Milliseconds(figures.Quantile(r.detected, 1))),
			}},
			{Title: fmt.Sprintf("Requests at rest, scaled from %s to an hour", o.rest), Columns: []string{">in an hour", "who", "verb", "what"}, Rows: r.byUser(o)},
		},
	}
}

// accounts begin the names of the operator's users.
const accounts = "system:serviceaccount:reboot-operator-system:reboot-operator-"

// byUser are the requests of the operator's users.
func (r result) byUser(o options) []figures.Row {
	mine := slices.DeleteFunc(slices.Clone(r.requests), func(q embedded.Request) bool { return !strings.HasPrefix(q.User, accounts) })
	counts := map[embedded.RequestKind]int{}
	for question, n := range embedded.Tally(mine) {
		question.As = ""
		counts[question] += n
	}
	questions := slices.SortedFunc(maps.Keys(counts), func(a, b embedded.RequestKind) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	})
	var rows []figures.Row
	for _, q := range questions {
		rows = append(rows, figures.Row{Cells: []string{
			r.hourly(counts[q], o, 1), "all " + strings.TrimPrefix(q.User, accounts) + "s", q.Verb, q.Resource,
		}})
	}
	if rows == nil {
		rows = append(rows, figures.Row{Cells: []string{"0", "anybody", "", ""}})
	}
	return rows
}

// hourly scales a count from the time at rest to an hour, for each of so many.
func (r result) hourly(count int, o options, each int) string {
	return fmt.Sprintf("%.0f", float64(count)*time.Hour.Seconds()/max(o.rest.Seconds(), 1e-9)/float64(max(each, 1)))
}
