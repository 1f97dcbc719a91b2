package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/chaos/worker"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// result sums up the outcomes of many schedules.
type result struct {
	first                                                  uint64
	schedules, sharing, reboots, grants, revisions, ticked int
	violations                                             int
	failed                                                 []worker.Outcome
	hit                                                    map[schedule.Kind]int // schedules in which the fault struck
	took, converged, longest                               time.Duration
	slowest                                                uint64
}

func newResult(first uint64) result {
	return result{first: first, hit: map[schedule.Kind]int{}}
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
		if n > 0 {
			r.hit[kind]++
		}
	}
}

// failure returns an error if a schedule broke a rule, or if the run proves too little: each kind
// of fault must have struck, and two policies must have shared a limit, in at least least
// schedules.
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
			errs = append(errs, fmt.Errorf("fault %q occurred in %d schedules, want at least %d", kind, r.hit[kind], least))
		}
	}
	if r.sharing < least {
		errs = append(errs, fmt.Errorf("two policies have shared a limit in %d schedules, want at least %d", r.sharing, least))
	}
	return errors.Join(errs...)
}

// rows returns the result as rows of a table.
func (r *result) rows() [][]string {
	mean := r.converged / time.Duration(max(1, r.schedules))
	return [][]string{
		{"schedules", fmt.Sprintf("%d of %d nodes, from seed %d on", r.schedules, schedule.Nodes, r.first)},
		{"two policies with one limit in", strconv.Itoa(r.sharing)},
		{"grants, reboots", fmt.Sprintf("%d, %d", r.grants, r.reboots)},
		{"revisions seen by the witness", strconv.Itoa(r.revisions)},
		{"after the last fault, mean", terminal.Seconds(mean)},
		{"after the last fault, longest", fmt.Sprintf("%s (seed %d)", terminal.Seconds(r.longest), r.slowest)},
		{"schedules in which time was put on", strconv.Itoa(r.ticked)},
		{"wall time", terminal.Seconds(r.took)},
		{"violations", strconv.Itoa(r.violations)},
	}
}

// faults returns the number of schedules in which each kind of fault struck.
func (r *result) faults() [][]string {
	var rows [][]string
	for _, kind := range schedule.Kinds() {
		rows = append(rows, []string{string(kind), strconv.Itoa(r.hit[kind])})
	}
	return rows
}

// text returns the result as two tables.
func (r *result) text() string {
	return document.Rows([]string{"result", ""}, r.rows()) + "\n" + document.Rows([]string{"fault", "schedules"}, r.faults())
}

// violated describes a schedule that failed.
func violated(o worker.Outcome, theme terminal.Theme) []string {
	lines := []string{"", theme.Paint(terminal.Bad, "  "+strings.ReplaceAll(o.Schedule.String(), "\n", "\n  "))}
	for _, v := range o.Violations {
		lines = append(lines, "    "+v.String())
	}
	return lines
}
