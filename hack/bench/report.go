package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Goals. Wall time is in terms of the ideal: one drain and one reboot after the other and nothing between.
const (
	goalRatio         = 1.15
	goalWrites        = 9.0
	goalAgentMemory   = 30 << 20
	goalManagerMemory = 60 << 20
)

// yardstick is what others take for the same work (10 nodes of 20 pods, 5 s reboots), measured elsewhere.
const yardstick = "yardstick, same work: FLUO 1012 s and 176 requests per node, kured 755 s and 279"

// result is what was measured.
type result struct {
	wall                       time.Duration
	runs                       []timeline.Run
	peak                       int
	asked, rest                fleet.Asked
	agentMemory, managerMemory process.Memory
	kubectl                    struct {
		pods, requests int
		took           time.Duration
	}
}

// ideal is the drains and the reboots, one after the other.
func (r result) ideal() (drains, reboots time.Duration) {
	for _, run := range r.runs {
		p := run.Phases()
		drains += p.Drain
		reboots += p.Reboot
	}
	return drains, reboots
}

func (r result) each(n int) float64 { return float64(n) / float64(max(1, len(r.runs))) }

// report draws the result.
func (r result) report(theme terminal.Theme) []string {
	title := func(text string) string { return theme.Paint(terminal.Quiet, "  "+text) }
	drains, reboots := r.ideal()
	ratio := r.wall.Seconds() / max((drains+reboots).Seconds(), 1e-9)
	writes := r.each(fleet.Total(r.asked.Writes))
	atRest := fleet.Total(r.rest.Writes) + fleet.Total(r.rest.Reads) + r.rest.Events + r.rest.Evictions
	lines := []string{
		"", title("WALL TIME"),
		fmt.Sprintf("  %-34s %s", "wall time", terminal.Seconds(r.wall)),
		fmt.Sprintf("  %-34s %s  (drains %s, reboots %s)", "ideal", terminal.Seconds(drains+reboots), terminal.Seconds(drains), terminal.Seconds(reboots)),
		goal(theme, ratio <= goalRatio, "ratio", fmt.Sprintf("%.2f", ratio), fmt.Sprintf("at most %.2f", goalRatio)),
		goal(theme, r.peak <= 1, "most nodes unavailable at once", strconv.Itoa(r.peak), "at most 1"),
		title("  " + yardstick),
		"", title("API REQUESTS PER REBOOT"),
	}
	lines = append(lines, r.table(r.asked.Writes)...)
	lines = append(lines,
		goal(theme, writes <= goalWrites, "writes", fmt.Sprintf("%.1f", writes), fmt.Sprintf("at most %.0f", goalWrites)),
		fmt.Sprintf("  %-34s %.1f evictions, %.1f events, %.1f reads, %.1f watches; %d refused in all", "beside them",
			r.each(r.asked.Evictions), r.each(r.asked.Events), r.each(fleet.Total(r.asked.Reads)), r.each(r.asked.Watches), r.asked.Refused),
	)
	lines = append(lines, r.table(r.asked.Reads)...)
	lines = append(lines,
		"", title("MEMORY AND REST"),
		goal(theme, r.agentMemory.Resident < goalAgentMemory, "largest agent", memory(r.agentMemory), "below "+mebibytes(goalAgentMemory)),
		goal(theme, r.managerMemory.Resident < goalManagerMemory, "largest manager", memory(r.managerMemory), "below "+mebibytes(goalManagerMemory)),
		goal(theme, atRest == 0, "requests at rest", strconv.Itoa(atRest), "none but watches and the lease"),
	)
	lines = append(lines, r.atRest()...)
	return append(lines, "", title("ONE DRAIN"),
		fmt.Sprintf("  %-34s %s each", "this agent", terminal.Seconds(drains/time.Duration(max(1, len(r.runs))))),
		fmt.Sprintf("  %-34s %s, %d requests, %d pods", "kubectl drain", terminal.Seconds(r.kubectl.took), r.kubectl.requests, r.kubectl.pods), "")
}

func (r result) table(lines []fleet.Line) []string {
	var text []string
	for _, l := range lines {
		text = append(text, fmt.Sprintf("  %5.1f  %-8s %-6s %s", r.each(l.Count), l.Program, l.Verb, l.Resource))
	}
	return text
}

func (r result) atRest() []string {
	var text []string
	for _, l := range append(r.rest.Writes, r.rest.Reads...) {
		text = append(text, fmt.Sprintf("  %5d  %-8s %-6s %s", l.Count, l.Program, l.Verb, l.Resource))
	}
	return text
}

func goal(theme terminal.Theme, met bool, name, value, limit string) string {
	mark := theme.Paint(terminal.Good, "✓")
	if !met {
		mark = theme.Paint(terminal.Bad, "✗")
	}
	return fmt.Sprintf("  %-34s %s %s %s", name, theme.Paint(terminal.Strong, value), mark, theme.Paint(terminal.Quiet, "goal: "+limit))
}

// memory is the whole, and what no other process of the same program shares.
func memory(m process.Memory) string {
	return fmt.Sprintf("%s (%s without its program)", mebibytes(m.Resident), mebibytes(m.Anonymous))
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
