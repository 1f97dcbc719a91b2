// Package calendar lists the coming windows of a policy: when reboots may start, and what comes in
// between.
package calendar

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// maxSteps limits the number of steps, because the windows or blackouts of a policy may never end.
const maxSteps = 10000

// Kind is the kind of a period.
type Kind string

const (
	// Open means reboots may start.
	Open Kind = "Open"
	// Blackout means reboots may not start, regardless of the windows.
	Blackout Kind = "Blackout"
	// ClockChange means the clocks of a zone jump.
	ClockChange Kind = "ClockChange"
)

// Calendar lists the coming periods of one policy.
type Calendar struct {
	Policy string `json:"policy"`
	// Always reports whether the policy has no windows, so that it is open except in blackouts.
	Always bool `json:"always,omitempty"`
	// Invalid says what is wrong with the windows or blackouts, in which case nothing opens.
	Invalid string `json:"invalid,omitempty"`
	// Stopped says why no reboot starts now even in an open window: a halt or a pause. It is empty
	// if neither applies.
	Stopped string   `json:"stopped,omitempty"`
	Periods []Period `json:"periods"`
}

// Period is a period of time, or the instant of a clock change.
type Period struct {
	Kind Kind `json:"kind"`
	// From is the first instant of the period. Begun reports that the period began earlier, before
	// the requested time.
	From  time.Time `json:"from"`
	Begun bool      `json:"begun,omitempty"`
	// To is the first instant after the period. It is zero if the period does not end within 400
	// days, or is an instant.
	To time.Time `json:"to,omitzero"`
	// Names lists the windows that are open one after the other, or the blackout.
	Names []string `json:"names,omitempty"`
	// TimeZone is the time zone of the first name. It is empty if the policy has no windows.
	TimeZone string `json:"timeZone,omitempty"`
	// Reason is the reason given for a blackout.
	Reason string `json:"reason,omitempty"`
	// Notes says how clock changes affect the period.
	Notes []string `json:"notes,omitempty"`
}

// Of returns the next openings of a policy, and everything in between.
func Of(policy *v1alpha1.RebootPolicy, from time.Time, next int) Calendar {
	c := Calendar{Policy: policy.Name, Always: len(policy.Spec.Windows) == 0, Stopped: stopped(policy, from), Periods: []Period{}}
	schedule, err := window.Of(&policy.Spec)
	if err != nil {
		c.Invalid = err.Error()
		return c
	}
	c.walk(schedule, from, next)
	for i := range c.Periods {
		c.Periods[i].TimeZone = zoneOf(&policy.Spec, c.Periods[i])
	}
	c.noteClocks(policy.Spec.Windows, from)
	return c
}

func stopped(policy *v1alpha1.RebootPolicy, now time.Time) string {
	switch {
	case meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionHalted):
		return "halted: no reboot starts before the policy is resumed"
	case !policy.Spec.PausedAt(now) && policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun:
		return "mode DryRun: no reboot starts"
	case !policy.Spec.PausedAt(now):
		return ""
	case policy.Spec.Pause.Until != nil:
		return "paused: no reboot starts before " + timing.Instant(policy.Spec.Pause.Until.Time)
	}
	return "paused: no reboot starts before the policy is resumed"
}

// walk steps from one change to the next until the end of the last requested opening.
func (c *Calendar) walk(schedule window.Schedule, from time.Time, next int) {
	t := from
	for range maxSteps {
		if c.openings() == next && !c.last().lasts(t) {
			return
		}
		s := schedule.At(t)
		c.add(s, t, t.Equal(from))
		if s.Next.IsZero() {
			return
		}
		t = s.Next
	}
}

// add appends a state as a new period, or extends the last one.
func (c *Calendar) add(s window.State, t time.Time, first bool) {
	e := Period{From: t.UTC(), Begun: first}
	switch {
	case s.Open:
		e.Kind, e.To = Open, s.ClosesAt
	case s.Blackout:
		e.Kind, e.To, e.Reason = Blackout, s.Next, s.BlackoutReason
	default:
		return
	}
	if s.Name != "" {
		e.Names = []string{s.Name}
	}
	last := c.last()
	goesOn := last.lasts(t) || last != nil && last.Kind == Blackout && last.To.Equal(t) && slices.Equal(last.Names, e.Names)
	if goesOn && last.Kind == e.Kind {
		last.To = e.To
		if len(e.Names) > 0 && !slices.Contains(last.Names, e.Names[0]) {
			last.Names = append(last.Names, e.Names[0])
		}
		return
	}
	c.Periods = append(c.Periods, e)
}

// lasts reports whether an opening is still open at an instant.
func (p *Period) lasts(t time.Time) bool {
	return p != nil && p.Kind == Open && (p.To.IsZero() || t.Before(p.To))
}

func (c *Calendar) last() *Period {
	if len(c.Periods) == 0 {
		return nil
	}
	return &c.Periods[len(c.Periods)-1]
}

func (c *Calendar) openings() (n int) {
	for _, e := range c.Periods {
		if e.Kind == Open {
			n++
		}
	}
	return n
}

// zoneOf returns the time zone of the first window or the blackout of a period, or "" if the period
// is open without windows.
func zoneOf(spec *v1alpha1.RebootPolicySpec, e Period) string {
	if len(e.Names) == 0 {
		return ""
	}
	for _, w := range spec.Windows {
		if e.Kind == Open && w.Name == e.Names[0] {
			return w.TimeZoneOrDefault()
		}
	}
	for _, b := range spec.Blackouts {
		if e.Kind == Blackout && b.Name == e.Names[0] {
			return b.TimeZoneOrDefault()
		}
	}
	return ""
}

// Lines formats the calendar for people.
func (c Calendar) Lines(l terminal.Look, now time.Time) []string {
	head := []string{l.Theme.Paint(terminal.Strong, "policy "+c.Policy)}
	if c.Stopped != "" {
		head = append(head, l.Hang(l.Theme.Paint(terminal.Bad, "!")+" ", 2, c.Stopped)...)
	}
	switch {
	case c.Invalid != "":
		return append(head, terminal.Wrap("the spec is invalid, so no window opens: "+c.Invalid, l.Width)...)
	case len(c.Periods) == 0:
		return append(head, "no window opens within 400 days")
	case c.Always && len(c.Periods) == 1 && c.Periods[0].To.IsZero():
		return append(head, "always open")
	}
	rows := make([][]terminal.Cell, len(c.Periods))
	for i, e := range c.Periods {
		rows[i] = e.row(l.Zone, now)
	}
	return append(head, l.Table([]string{"FROM", "UNTIL", "UTC", "+>FOR", "+>IN", "+ZONE", "WHAT"}, rows)...)
}

// styles maps each kind to its style.
var styles = map[Kind]terminal.Style{Open: terminal.Good, Blackout: terminal.Bad, ClockChange: terminal.Wait}

// row formats a period in its own time zone, or else in the reader's.
func (p Period) row(readers *time.Location, now time.Time) []terminal.Cell {
	zone, err := time.LoadLocation(p.TimeZone)
	if err != nil || p.TimeZone == "" {
		zone = readers
	}
	from, until := p.From.In(zone).Format("Mon 2006-01-02 15:04 MST"), ""
	if p.Begun {
		from = "now"
	}
	switch {
	case !p.To.IsZero():
		until = moment.At(p.To, p.From, zone)
	case p.Kind != ClockChange:
		until = "no known end"
	}
	return []terminal.Cell{
		{Text: from},
		{Text: until},
		{Text: p.utc(), Style: terminal.Quiet},
		{Text: p.span(now)},
		{Text: moment.Span(p.From.Sub(now))},
		{Text: zone.String()},
		{Text: p.label(), Style: styles[p.Kind]},
	}
}

// utc formats the period in UTC.
func (p Period) utc() string {
	from := p.From.UTC().Format("Mon 15:04")
	if p.Begun {
		from = "now"
	}
	if p.To.IsZero() {
		return from
	}
	return from + " – " + p.To.UTC().Format("Mon 15:04")
}

func (p Period) span(now time.Time) string {
	if p.To.IsZero() {
		return ""
	}
	from := p.From
	if p.Begun {
		from = now
	}
	return moment.Length(p.To.Sub(from).Truncate(time.Minute))
}

func (p Period) label() string {
	names, notes := strings.Join(p.Names, ", "), strings.Join(p.Notes, "; ")
	switch {
	case p.Kind == ClockChange:
		return notes
	case p.Kind == Blackout && p.Reason != "":
		return fmt.Sprintf("blackout %s: %s", names, p.Reason)
	case p.Kind == Blackout:
		return "blackout " + names
	case names == "":
		names = "always open"
	}
	if notes != "" {
		return names + "; " + notes
	}
	return names
}
