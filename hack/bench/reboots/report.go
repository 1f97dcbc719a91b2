package reboots

import (
	"fmt"
	"strconv"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/bench/rules"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

// Goals. Wall time is in terms of the ideal: one drain and one reboot after the other and nothing between.
const (
	goalRatio         = 1.15
	goalWrites        = 9.0
	goalHandover      = 250 * time.Millisecond
	goalManagerMemory = 70 << 20
)

// yardstick is what others take for the same work (10 nodes of 20 pods, 5 s reboots), measured elsewhere.
const yardstick = "Yardsticks measured elsewhere on the same work: FLUO 1012 s and 176 requests per node, kured 755 s and 279."

// result is what was measured.
type result struct {
	atRest atRest
	// spacing is the policy's own pause between two nodes: it belongs to the ideal.
	spacing                    time.Duration
	wall                       time.Duration
	runs                       []timeline.Run
	peak                       int
	asked                      fleet.Asked
	agentMemory, managerMemory process.Memory
}

// ideal is the drains and the reboots, one after the other, with the pauses between them.
func (r result) ideal() (drains, reboots, pauses time.Duration) {
	for _, run := range r.runs {
		p := run.Phases()
		drains += p.Drain
		reboots += p.Reboot
	}
	return drains, reboots, r.spacing * time.Duration(max(0, len(r.runs)-1))
}

// handovers are how long it took from a node's return to the next node's grant, beyond the pause: from when it was back in service,
// and from when it was Ready on its new boot ID.
func (r result) handovers() (fromService, fromReady []time.Duration) {
	for i := 1; i < len(r.runs); i++ {
		before, next := r.runs[i-1], r.runs[i]
		fromService = append(fromService, next.Granted.Sub(before.Done)-r.spacing)
		fromReady = append(fromReady, next.Granted.Sub(before.Up)-r.spacing)
	}
	return fromService, fromReady
}

func (r result) each(n int) float64 { return float64(n) / float64(max(1, len(r.runs))) }

// report is two results beside each other, without rules and with all of them. The goals are those of the first.
func report(without, with result) figures.Result {
	rows, all := without.rows(), with.rows()
	for i := range rows {
		rows[i].Cells = append(rows[i].Cells, all[i].Cells[1])
	}
	const requests = "API requests per reboot, beside evictions and events"
	columns := []string{">requests", "who", "verb", "what"}
	return figures.Result{
		Setting: fmt.Sprintf("%d simulated nodes of %d pods each, limit 1, machines that are down for %s, settle 0s, on the embedded control plane; "+
			"everything is real but the machines. Requests are counted from the API server's audit log; memory is the largest "+
			"resident set seen in any process meanwhile, freshly started agents among them. All rules are "+rules.Setting+"; and "+
			"`concurrency.spacing: %s`, the shortest, which is no part of the hand-over and counts from a whole second. Before the reboots the policy is paused: "+
			"the agents are at rest for %s, and then receive %d signals of update_engine that a reboot is needed, one machine after the other; from each "+
			"signal to the revision of the Node with RebootRequired=True, as a watch brings it.", nodes, pods, down, rules.Spacing, rest, signals),
		Tables: []figures.Table{
			{Columns: []string{"figure", "no rules", "all rules"}, Rows: rows},
			{Title: "Agents at rest", Columns: []string{"figure", "measured"}, Rows: without.atRest.rows()},
			{Title: requests, Columns: columns, Rows: without.requests()},
			{Title: requests + ", with all rules", Columns: columns, Rows: with.requests()},
		},
		Notes: []string{yardstick},
	}
}

func (r result) rows() []figures.Row {
	drains, reboots, pauses := r.ideal()
	ideal := drains + reboots + pauses
	parts := fmt.Sprintf("drains %s + reboots %s", figures.Seconds(drains), figures.Seconds(reboots))
	if pauses > 0 {
		parts += " + spacing " + figures.Seconds(pauses)
	}
	ratio := r.wall.Seconds() / max(ideal.Seconds(), 1e-9)
	fromService, fromReady := r.handovers()
	median := figures.Quantile(fromService, 0.5)
	writes := r.each(fleet.Total(r.asked.Writes))
	return []figures.Row{
		figures.Figure("wall time", fmt.Sprintf("%s; the ideal (%s) is %s", figures.Seconds(r.wall), parts, figures.Seconds(ideal))),
		figures.Judged("wall time to the ideal", fmt.Sprintf("%.2f", ratio), ratio <= goalRatio, fmt.Sprintf("at most %.2f", goalRatio)),
		figures.Figure("overhead per node beyond drain and reboot", figures.Milliseconds((r.wall-ideal)/time.Duration(max(1, len(r.runs))))),
		figures.Judged("slot hand-over, from a node back in service to the next grant: median", figures.Milliseconds(median),
			median < goalHandover, "below "+figures.Milliseconds(goalHandover)),
		figures.Figure("the same: 95 of 100", figures.QuantileText(fromService, 0.95)),
		figures.Figure("from Ready on the new boot ID to the next grant: median, 95 of 100", figures.QuantileText(fromReady, 0.5)+", "+
			figures.QuantileText(fromReady, 0.95)),
		figures.Judged("most nodes unavailable at once", strconv.Itoa(r.peak), r.peak <= 1, "at most 1"),
		figures.Judged("API writes per reboot, beside evictions and events", fmt.Sprintf("%.1f", writes), writes <= goalWrites,
			fmt.Sprintf("at most %.0f", goalWrites)),
		figures.Figure("beside them", fmt.Sprintf("%.1f evictions, %.1f events, %.1f reads, %.1f watches; %d refused in all",
			r.each(r.asked.Evictions), r.each(r.asked.Events), r.each(fleet.Total(r.asked.Reads)), r.each(r.asked.Watches), r.asked.Refused)),
		figures.Figure("largest agent", figures.Memory(r.agentMemory)),
		figures.Judged("largest manager", figures.Memory(r.managerMemory), r.managerMemory.Resident < goalManagerMemory, "below "+figures.Mebibytes(goalManagerMemory)),
	}
}

func (r result) requests() []figures.Row {
	var rows []figures.Row
	for _, l := range append(r.asked.Writes, r.asked.Reads...) {
		rows = append(rows, figures.Row{Cells: []string{fmt.Sprintf("%.1f", r.each(l.Count)), l.Program, l.Verb, l.Resource}})
	}
	return rows
}
