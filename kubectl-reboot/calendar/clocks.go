package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

// jump is a clock change in a zone: the instant, and the change of the offset, positive if clocks
// go forward.
type jump struct {
	zone *time.Location
	at   time.Time
	by   time.Duration
}

// noteClocks adds the clock changes up to the end of the calendar, and notes how they affect the
// windows.
func (c *Calendar) noteClocks(windows []v1alpha1.Window, from time.Time) {
	until := from
	for _, e := range c.Periods {
		until = timing.Latest(until, e.From, e.To)
	}
	starts := map[string]string{}
	for _, w := range windows {
		starts[w.Name] = w.Start
	}
	known := map[string]bool{}
	var changes []Period
	for _, w := range windows {
		name := w.TimeZoneOrDefault()
		zone, err := time.LoadLocation(name)
		if err != nil || known[name] {
			continue
		}
		known[name] = true
		for _, j := range jumps(zone, from, until) {
			changes = append(changes, Period{Kind: ClockChange, From: j.at, TimeZone: name, Notes: []string{j.note()}})
			for i := range c.Periods {
				if e := &c.Periods[i]; e.Kind == Open && e.TimeZone == name {
					e.note(j, starts[e.Names[0]])
				}
			}
		}
	}
	c.Periods = append(c.Periods, changes...)
	slices.SortStableFunc(c.Periods, func(a, b Period) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Kind, b.Kind)) })
}

// note describes how a clock change affects the start or the end of a window.
func (p *Period) note(j jump, start string) {
	reads := p.From.In(j.zone).Format("15:04")
	switch {
	case p.Begun:
	case p.From.Equal(j.at) && reads != start:
		p.Notes = append(p.Notes, start+" is skipped: the window begins after the gap")
	case j.by < 0 && reads == start && !p.From.Before(j.at.Add(j.by)) && p.From.Before(j.at):
		p.Notes = append(p.Notes, start+" comes twice: the window begins with the first")
	}
	if p.From.Before(j.at) && j.at.Before(p.To) {
		p.Notes = append(p.Notes, j.note())
	}
}

func (j jump) note() string {
	before, after := j.at.Add(-time.Second).In(j.zone).Format("MST"), j.at.In(j.zone).Format("MST")
	if j.by > 0 {
		return fmt.Sprintf("clocks go forward %s (%s → %s)", moment.Length(j.by), before, after)
	}
	return fmt.Sprintf("clocks go back %s (%s → %s)", moment.Length(-j.by), before, after)
}

// jumps returns the clock changes of a zone in a period. It compares the offsets at the two ends of
// each day and finds the second by bisection, because [time.Time.ZoneBounds] may return instants at
// which no clock changes.
func jumps(zone *time.Location, from, until time.Time) []jump {
	const day = 24 * time.Hour
	var found []jump
	for a := from.Truncate(time.Second); a.Before(until); a = a.Add(day) {
		low, high := a, a.Add(day)
		if offset(zone, low) == offset(zone, high) {
			continue
		}
		for high.Sub(low) > time.Second {
			if middle := low.Add(high.Sub(low) / 2).Truncate(time.Second); offset(zone, middle) == offset(zone, low) {
				low = middle
			} else {
				high = middle
			}
		}
		found = append(found, jump{zone: zone, at: high.UTC(), by: offset(zone, high) - offset(zone, low)})
	}
	return found
}

func offset(zone *time.Location, t time.Time) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
