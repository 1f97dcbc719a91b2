package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// result holds everything that the summary shows.
type result struct {
	took    time.Duration
	views   []timeline.View
	peak    []string
	limit   int
	engines []engine
	// err is the reason the demo ended early, or nil.
	err error
}

// check is one promise, and whether it was kept.
type check struct {
	kept bool
	text string
}

// checks returns the promises that determine the exit code.
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
		{len(twice)+len(never) == 0, fmt.Sprintf("%d of %d nodes were rebooted, each once%s%s", once, len(r.views),
			names("; never: ", never), names("; more than once: ", twice))},
		{len(r.peak) <= r.limit, fmt.Sprintf("never more than %d out of service at a time, and the policy allows %d%s", len(r.peak), r.limit, tooMany)},
		{len(cordoned) == 0, "every node takes pods again" + names(", but not ", cordoned)},
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

// summary formats the result.
func (r result) summary(theme terminal.Theme) []string {
	lines := []string{""}
	for _, c := range r.checks() {
		mark := theme.Paint(terminal.Good, "✓")
		if !c.kept {
			mark = theme.Paint(terminal.Bad, "✗")
		}
		lines = append(lines, "  "+mark+" "+c.text)
	}
	return append(lines, "  "+theme.Paint(terminal.Strong, terminal.Seconds(r.took)+" in all"), "")
}
