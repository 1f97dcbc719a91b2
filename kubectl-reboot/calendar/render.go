package calendar

import (
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Lines is the calendar for people, from now on.
func (c Calendar) Lines(l terminal.Look, now time.Time) []string {
	head := l.Theme.Paint(terminal.Strong, "policy "+c.Policy)
	switch {
	case c.Invalid != "":
		return append([]string{head}, terminal.Wrap("cannot be acted on, nothing opens: "+c.Invalid, l.Width)...)
	case len(c.Entries) == 0:
		return []string{head, "no window opens within 400 days"}
	case c.Always && len(c.Entries) == 1 && c.Entries[0].To.IsZero():
		return []string{head, "always open"}
	}
	rows := make([][]terminal.Cell, len(c.Entries))
	for i, e := range c.Entries {
		rows[i] = e.row(l.Zone, now)
	}
	return append([]string{head}, l.Table([]string{"FROM", "UNTIL", "UTC", "+>FOR", "+>IN", "+ZONE", "WHAT"}, rows)...)
}

// styles are how the kinds look.
var styles = map[Kind]terminal.Style{Open: terminal.Good, Blackout: terminal.Bad, ClockChange: terminal.Wait}

// row shows an entry by the clocks of its own zone, or else of the reader's.
func (e Period) row(readers *time.Location, now time.Time) []terminal.Cell {
	zone, err := time.LoadLocation(e.TimeZone)
	if err != nil || e.TimeZone == "" {
		zone = readers
	}
	from, until := e.From.In(zone).Format("Mon 2006-01-02 15:04 MST"), ""
	if e.Begun {
		from = "now"
	}
	switch {
	case !e.To.IsZero():
		until = moment.At(e.To, e.From, zone)
	case e.Kind != ClockChange:
		until = "no end in sight"
	}
	return []terminal.Cell{
		{Text: from},
		{Text: until},
		{Text: e.utc(), Style: terminal.Quiet},
		{Text: e.span(now)},
		{Text: moment.Span(e.From.Sub(now))},
		{Text: zone.String()},
		{Text: e.what(), Style: styles[e.Kind]},
	}
}

// utc is the entry in UTC, the same for everybody.
func (e Period) utc() string {
	from := e.From.UTC().Format("Mon 15:04")
	if e.Begun {
		from = "now"
	}
	if e.To.IsZero() {
		return from
	}
	return from + " – " + e.To.UTC().Format("Mon 15:04")
}

func (e Period) span(now time.Time) string {
	if e.To.IsZero() {
		return ""
	}
	from := e.From
	if e.Begun {
		from = now
	}
	return moment.Length(e.To.Sub(from).Truncate(time.Minute))
}

func (e Period) what() string {
	names, notes := strings.Join(e.Names, ", "), strings.Join(e.Notes, "; ")
	switch {
	case e.Kind == ClockChange:
		return notes
	case e.Kind == Blackout && e.Reason != "":
		return fmt.Sprintf("blackout %s: %s", names, e.Reason)
	case e.Kind == Blackout:
		return "blackout " + names
	case names == "":
		names = "always open"
	}
	if notes != "" {
		return names + "; " + notes
	}
	return names
}
