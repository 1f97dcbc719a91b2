package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// result is everything the summary shows.
type result struct {
	began, ended time.Time
	views        []timeline.View
	runs         []timeline.Run
	peak         []string
	limit        int
	engines      []engine
	asked        fleet.Asked
	// err is why the demo ended before its time; nil: it did not.
	err error
}

// check is one promise, and whether it was kept.
type check struct {
	kept bool
	text string
}

// checks are what the exit code depends on.
func (r result) checks() []check {
	var twice, never, cordoned []string
	for _, v := range r.views {
		switch {
		case v.Reboots > 1:
			twice = append(twice, v.Node)
		case v.Reboots == 0:
			never = append(never, v.Node)
		}
		if v.Cordoned {
			cordoned = append(cordoned, v.Node)
		}
	}
	tooMany := ""
	if len(r.peak) > r.limit {
		tooMany = names(": ", r.peak)
	}
	once := len(r.views) - len(twice) - len(never)
	var checks []check
	for _, e := range r.engines {
		checks = append(checks, e.detected(r.views))
	}
	checks = append(checks, []check{
		{len(twice)+len(never) == 0, fmt.Sprintf("%d of %d nodes rebooted exactly once%s%s", once, len(r.views),
			names("; never: ", never), names("; more than once: ", twice))},
		{len(r.peak) <= r.limit, fmt.Sprintf("never more than %d unavailable at once, %d allowed%s", len(r.peak), r.limit, tooMany)},
		{len(cordoned) == 0, "nobody is left cordoned" + names(" but ", cordoned)},
	}...)
	if r.err != nil {
		checks = append(checks, check{false, r.err.Error()})
	}
	return checks
}

func names(lead string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return lead + strings.Join(list, ", ")
}

// kept reports whether every promise was kept.
func (r result) kept() bool {
	return !slices.ContainsFunc(r.checks(), func(c check) bool { return !c.kept })
}

// summary draws the result.
func (r result) summary(theme terminal.Theme) []string {
	lines := append([]string{""}, r.phases(theme)...)
	lines = append(lines, "")
	lines = append(lines, r.requests(theme)...)
	lines = append(lines, "")
	for _, c := range r.checks() {
		mark := theme.Paint(terminal.Good, "✓")
		if !c.kept {
			mark = theme.Paint(terminal.Bad, "✗")
		}
		lines = append(lines, "  "+mark+" "+c.text)
	}
	return append(lines, "  "+theme.Paint(terminal.Strong, terminal.Seconds(r.ended.Sub(r.began))+" in all"), "")
}

// phases are one line for each reboot, in the order in which they were granted.
func (r result) phases(theme terminal.Theme) []string {
	lines := []string{theme.Paint(terminal.Quiet, "  ORDER  NODE      WAITED    START    DRAIN   REBOOT   SETTLE    TOTAL")}
	for i, run := range r.runs {
		p := run.Phases()
		lines = append(lines, fmt.Sprintf("  %-5d  %s %s %s %s %s %s %s", i+1, terminal.Fit(run.Node, 8),
			cell(p.Waiting), cell(p.Granting), cell(p.Drain), cell(p.Reboot), cell(p.Settle), cell(run.Done.Sub(run.Granted))))
	}
	return lines
}

func cell(d time.Duration) string { return fmt.Sprintf("%8s", terminal.Seconds(d)) }

// requests are the writes per reboot.
func (r result) requests(theme terminal.Theme) []string {
	reboots := max(1, len(r.runs))
	each := func(n int) string { return fmt.Sprintf("%.1f", float64(n)/float64(reboots)) }
	lines := []string{theme.Paint(terminal.Quiet, "  API REQUESTS PER REBOOT")}
	for _, l := range r.asked.Writes {
		lines = append(lines, fmt.Sprintf("  %5s  %-8s %-6s %s", each(l.Count), l.Program, l.Verb, l.Resource))
	}
	lines = append(lines, fmt.Sprintf("  %5s  writes in all, beside %s evictions and %s events; %s reads", theme.Paint(terminal.Strong, each(fleet.Total(r.asked.Writes))),
		each(r.asked.Evictions), each(r.asked.Events), each(fleet.Total(r.asked.Reads))))
	return lines
}
