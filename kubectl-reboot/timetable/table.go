package timetable

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Lines is the timetable for people.
func (t Timetable) Lines(l terminal.Look) []string {
	lines := []string{l.Theme.Paint(terminal.Strong, "policy "+t.Policy)}
	if len(t.Reboots) > 0 {
		lines = append(append(lines, l.Theme.Table(t.rows(l), l.Width)...), "")
	}
	if len(t.Stays) > 0 {
		lines = append(append(lines, l.Theme.Table(t.stays(), l.Width)...), "")
	}
	if len(t.Due) > 0 {
		lines = append(append(lines, l.Theme.Table(t.due(l), l.Width)...), "")
	}
	lines = append(lines, terminal.Wrap(t.Verdict(l.Zone), l.Width)...)
	if late := t.late(); late != "" {
		for _, line := range terminal.Wrap(late, l.Width) {
			lines = append(lines, l.Theme.Paint(terminal.Bad, line))
		}
	}
	for _, note := range t.notes() {
		for _, line := range terminal.Wrap(note, l.Width) {
			lines = append(lines, l.Theme.Paint(terminal.Quiet, line))
		}
	}
	return lines
}

func (t Timetable) rows(l terminal.Look) [][]terminal.Cell {
	header := terminal.Header("NODE", "STARTS", "ENDS", "WINDOW")
	if l.Wide {
		header = terminal.Header("NODE", "STARTS", "DRAINS", "REBOOTS", "SETTLES", "ENDS", ">IN", "WAITS FOR", "WINDOW")
	}
	rows := append(make([][]terminal.Cell, 0, 1+len(t.Reboots)), header)
	for _, r := range t.Reboots {
		rows = append(rows, t.row(r, l))
	}
	return rows
}

func (t Timetable) row(r forecast.Reboot, l terminal.Look) []terminal.Cell {
	from, to := moment.Ends(r.StartsAt, r.EndsAt, t.At, l.Zone)
	starts, ends := terminal.Cell{Text: from}, terminal.Cell{Text: to}
	window := terminal.Cell{Text: r.Window, Style: terminal.Quiet}
	switch {
	case r.InProgress:
		window = terminal.Cell{Text: "in progress", Style: terminal.Busy}
	case r.Overruns():
		window = terminal.Cell{Text: r.Window + ", ends " + moment.Span(r.EndsAt.Sub(r.ClosesAt)) + " after it closes", Style: terminal.Wait}
	}
	if !l.Wide {
		return []terminal.Cell{{Text: r.Node}, starts, ends, window}
	}
	clock := func(at time.Time) terminal.Cell { return terminal.Cell{Text: at.In(l.Zone).Format("15:04:05")} }
	return []terminal.Cell{
		{Text: r.Node},
		starts, clock(r.DrainsAt), clock(r.RebootsAt), clock(r.SettlesAt), ends,
		{Text: moment.Span(r.StartsAt.Sub(t.At)), Right: true},
		{Text: string(t.WaitsFor[r.Node]), Style: terminal.Wait},
		window,
	}
}

func (t Timetable) stays() [][]terminal.Cell {
	rows := append(make([][]terminal.Cell, 0, 1+len(t.Stays)), terminal.Header("STAYS", "REASON", "WHY"))
	for _, s := range t.Stays {
		rows = append(rows, []terminal.Cell{{Text: s.Node}, {Text: string(s.Reason), Style: terminal.Wait}, {Text: s.Message}})
	}
	return rows
}

// due are the nodes that need no reboot yet.
func (t Timetable) due(l terminal.Look) [][]terminal.Cell {
	rows := append(make([][]terminal.Cell, 0, 1+len(t.Due)), terminal.Header("COMES DUE", "AT", ">IN", "BECAUSE OF"))
	for _, d := range t.Due {
		rows = append(rows, []terminal.Cell{
			{Text: d.Node},
			{Text: moment.At(d.At, t.At, l.Zone)},
			{Text: moment.Span(d.At.Sub(t.At)), Right: true},
			{Text: string(v1alpha1.ReasonMaxUptime), Style: terminal.Quiet},
		})
	}
	return rows
}

// Verdict reports in one sentence when all is done, and whether that is inside the window.
func (t Timetable) Verdict(zone *time.Location) string {
	switch {
	case t.Unknown != "":
		return "When all is done is not known. " + t.Unknown
	case t.CompletionAt.IsZero() && t.Silent > 0:
		return "Nothing is to be done: no node is known to need a reboot."
	case t.CompletionAt.IsZero():
		return "Nothing is to be done: no node needs a reboot."
	}
	done := t.CompletionAt.In(zone).Format("Mon 2006-01-02 15:04 MST") + ", " + moment.Until(t.CompletionAt, t.At)
	if n := len(t.Stays); n > 0 {
		done += fmt.Sprintf(", but for %s", message.Count(n, "node that stays", "nodes that stay"))
	}
	return "Done " + done + t.inside(zone) + "."
}

// late names the nodes that miss their deadline. Empty: none does.
func (t Timetable) late() string {
	if len(t.MissesDeadline) == 0 {
		return ""
	}
	return fmt.Sprintf("%s spec.deadline: %s.", message.Count(len(t.MissesDeadline), "node misses", "nodes miss"), terminal.Some(t.MissesDeadline))
}

func (t Timetable) inside(zone *time.Location) string {
	w := t.Window
	if w == nil || w.ClosesAt.IsZero() {
		return ""
	}
	window := "the window"
	if w.Name != "" {
		window = "window " + w.Name
	}
	closes := moment.At(w.ClosesAt, t.At, zone)
	if t.FinishesInWindow {
		return fmt.Sprintf("; finishes inside %s, which closes %s", window, closes)
	}
	return fmt.Sprintf("; will not finish inside %s, which closes %s", window, closes)
}

// notes state what the forecast rests on.
func (t Timetable) notes() []string {
	var notes []string
	if t.DryRun {
		notes = append(notes, "The policy only reports (mode DryRun): this is what it would do.")
	}
	if t.Silent > 0 {
		notes = append(notes, fmt.Sprintf("Whether %s a reboot is not known: no agent works there.", message.Count(t.Silent, "node needs", "nodes need")))
	}
	if len(t.Reboots) == 0 {
		return notes
	}
	d := t.Durations
	rests := fmt.Sprintf("the median of %s", message.Count(d.Measured, "reboot", "reboots"))
	if d.Measured == 0 {
		rests = "assumed, as no reboot has been measured yet"
	}
	parts := []string{"drain " + moment.Length(d.Drain.Duration), "reboot " + moment.Length(d.Reboot.Duration), "settle " + moment.Length(d.Settle.Duration)}
	if d.Before.Duration > 0 {
		parts = slices.Insert(parts, 0, "hooks and start "+moment.Length(d.Before.Duration))
	}
	notes = append(notes, fmt.Sprintf("Each node: %s; %s.", strings.Join(parts, ", "), rests))
	if t.Extrapolated > 0 {
		notes = append(notes, fmt.Sprintf("The last %d go by the pace of those before them.", t.Extrapolated))
	}
	return notes
}
