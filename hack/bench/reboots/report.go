package reboots

import (
	"fmt"
	"strconv"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

// The goals. The ratio compares with the ideal, in which drains and reboots follow each other
// without a pause.
const (
	goalRatio         = 1.15
	goalWrites        = 9.0
	goalHandover      = 250 * time.Millisecond
	goalManagerMemory = 70 << 20
)

// yardstick gives the figures of other programs for the same work (10 nodes with 20 pods, 5 s reboots),
// measured elsewhere.
const yardstick = "Others on the same work, measured elsewhere: FLUO 1012 s and 176 requests per node, kured 755 s and 279."

// result holds what was measured.
type result struct {
	atRest                     atRest
	wall                       time.Duration
	runs                       []timeline.Run
	peak                       int
	asked                      fleet.Asked
	agentMemory, managerMemory process.Memory
}

// ideal returns the total times of the drains and the reboots.
func (r result) ideal() (drains, reboots time.Duration) {
	for _, run := range r.runs {
		p := run.Phases()
		drains += p.Drain
		reboots += p.Reboot
	}
	return drains, reboots
}

// handovers returns the times until the next node's grant: fromService since a node was back in
// service, and fromReady since it was Ready on its new boot ID.
func (r result) handovers() (fromService, fromReady []time.Duration) {
	for i := 1; i < len(r.runs); i++ {
		before, next := r.runs[i-1], r.runs[i]
		fromService = append(fromService, next.Granted.Sub(before.Done))
		fromReady = append(fromReady, next.Granted.Sub(before.Up))
	}
	return fromService, fromReady
}

func (r result) each(n int) float64 { return float64(n) / float64(max(1, len(r.runs))) }

func report(r result) figures.Result {
	columns := []string{"figure", "measured"}
	return figures.Result{
		Setting: fmt.Sprintf("%d simulated nodes of %d pods each, limit 1, machines that are down for %s, settle 0s. Requests are counted from the "+
			"API server's audit log. Memory is the largest resident set of any process. Before the reboots the agents rest for %s with a paused policy, "+
			"and then receive %d signals of update_engine, one machine after the other, until a watch shows RebootRequired=True.", nodes, pods, down, rest, signals),
		Tables: []figures.Table{
			{Columns: columns, Rows: r.rows()},
			{Title: "Agents at rest", Columns: columns, Rows: r.atRest.rows()},
		},
		Notes: []string{yardstick},
	}
}

func (r result) rows() []figures.Row {
	drains, reboots := r.ideal()
	ideal := drains + reboots
	ratio := r.wall.Seconds() / max(ideal.Seconds(), 1e-9)
	fromService, fromReady := r.handovers()
	median := figures.Quantile(fromService, 0.5)
	writes := r.each(fleet.Total(r.asked.Writes))
	return []figures.Row{
		figures.Figure("wall time", fmt.Sprintf("%s; the ideal (drains %s + reboots %s) is %s",
			figures.Seconds(r.wall), figures.Seconds(drains), figures.Seconds(reboots), figures.Seconds(ideal))),
		figures.Judged("wall time to the ideal", fmt.Sprintf("%.2f", ratio), ratio <= goalRatio, fmt.Sprintf("at most %.2f", goalRatio)),
		figures.Figure("overhead per node beyond drain and reboot", figures.Milliseconds((r.wall-ideal)/time.Duration(max(1, len(r.runs))))),
		figures.Judged("slot hand-over, from a node back in service to the next grant: median", figures.Milliseconds(median),
			median < goalHandover, "below "+figures.Milliseconds(goalHandover)),
		figures.Figure("the same: 95th percentile", figures.QuantileText(fromService, 0.95)),
		figures.Figure("from Ready on the new boot ID to the next grant: median, 95th percentile", figures.QuantileText(fromReady, 0.5)+", "+
			figures.QuantileText(fromReady, 0.95)),
		figures.Judged("most nodes unavailable at once", strconv.Itoa(r.peak), r.peak <= 1, "at most 1"),
		figures.Judged("API writes per reboot, without evictions and events", fmt.Sprintf("%.1f", writes), writes <= goalWrites,
			fmt.Sprintf("at most %.0f", goalWrites)),
		figures.Figure("other requests per reboot", fmt.Sprintf("%.1f evictions, %.1f events, %.1f reads, %.1f watches; %d refused in all",
			r.each(r.asked.Evictions), r.each(r.asked.Events), r.each(fleet.Total(r.asked.Reads)), r.each(r.asked.Watches), r.asked.Refused)),
		figures.Figure("largest agent", figures.Memory(r.agentMemory)),
		figures.Judged("largest manager", figures.Memory(r.managerMemory), r.managerMemory.Resident < goalManagerMemory, "below "+figures.Mebibytes(goalManagerMemory)),
	}
}
