package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/chaos/worker"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// result is what many schedules have shown.
type result struct {
	schedules, sharing, reboots, grants, revisions, ticked int
	violations                                             int
	failed                                                 []worker.Outcome
	struck                                                 map[schedule.Kind]int // faults, those of requests by request
	hit                                                    map[schedule.Kind]int // schedules with such a fault
	took, converged, longest                               time.Duration
	slowest                                                uint64
}

func newResult() result {
	return result{struck: map[schedule.Kind]int{}, hit: map[schedule.Kind]int{}}
}

func (r *result) add(o worker.Outcome) {
	r.schedules++
	r.reboots += o.Reboots
	r.grants += o.Grants
	r.revisions += o.Revisions
	r.violations += len(o.Violations)
	r.converged += o.Converged
	if o.Schedule.Sharing {
		r.sharing++
	}
	if o.Ticks > 0 {
		r.ticked++
	}
	if len(o.Violations) > 0 {
		r.failed = append(r.failed, o)
	}
	if o.Converged > r.longest {
		r.longest, r.slowest = o.Converged, o.Schedule.Seed
	}
	for kind, n := range o.Struck {
		r.struck[kind] += n
		if n > 0 {
			r.hit[kind]++
		}
	}
}

// failure is why the run proves nothing, or the opposite. Every kind of fault must have struck in so many schedules at least.
func (r *result) failure(least int) error {
	var errs []error
	if r.violations > 0 {
		var replays []string
		for _, o := range r.failed {
			replays = append(replays, fmt.Sprintf("make chaos SEED=%d", o.Schedule.Seed))
		}
		errs = append(errs, fmt.Errorf("%d violations in %d of %d schedules; replay: %s", r.violations, len(r.failed), r.schedules, strings.Join(replays, ", ")))
	}
	for _, kind := range schedule.Kinds() {
		if r.hit[kind] < least {
			errs = append(errs, fmt.Errorf("the fault %q has struck in %d schedules, want at least %d", kind, r.hit[kind], least))
		}
	}
	return errors.Join(errs...)
}

// report draws the result.
func (r *result) report(theme terminal.Theme) []string {
	line := func(name, format string, args ...any) string {
		return fmt.Sprintf("  %-34s %s", name, fmt.Sprintf(format, args...))
	}
	mean := r.converged / time.Duration(max(1, r.schedules))
	lines := []string{
		"", theme.Paint(terminal.Quiet, "  FAULTS (SCHEDULES WITH THEM)"),
	}
	for _, kind := range schedule.Kinds() {
		lines = append(lines, line(string(kind), "%d (%d)", r.struck[kind], r.hit[kind]))
	}
	lines = append(lines,
		"", theme.Paint(terminal.Quiet, "  RESULT"),
		line("schedules", "%d of %d nodes", r.schedules, schedule.Nodes),
		line("two policies with one limit in", "%d", r.sharing),
		line("grants, reboots", "%d, %d", r.grants, r.reboots),
		line("revisions seen by the witness", "%d", r.revisions),
		line("after the last fault, mean", "%s", terminal.Seconds(mean)),
		line("after the last fault, longest", "%s (seed %d)", terminal.Seconds(r.longest), r.slowest),
		line("schedules in which time was put on", "%d", r.ticked),
		line("wall time", "%s", terminal.Seconds(r.took)),
		line("violations", "%d", r.violations),
	)
	for _, o := range r.failed { // once more, as the end of a log is what is read first
		for _, v := range o.Violations {
			lines = append(lines, theme.Paint(terminal.Bad, fmt.Sprintf("  seed %d: %s", o.Schedule.Seed, v)))
		}
	}
	return lines
}

// violated reports a schedule that failed.
func violated(o worker.Outcome, theme terminal.Theme) []string {
	lines := []string{"", theme.Paint(terminal.Bad, "  "+strings.ReplaceAll(o.Schedule.String(), "\n", "\n  "))}
	for _, v := range o.Violations {
		lines = append(lines, "    "+v.String())
	}
	return lines
}
