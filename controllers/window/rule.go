package window

import (
	"time"
)

const (
	// lookBehind is the most dates that can lie between today and the start of a window that is still open: its
	// duration is at most 7 days, and clocks that skip a date or a part of one add the rest.
	lookBehind = 9
	// lookAhead is how many dates are searched for the next start. A fifth weekday comes again within four months.
	lookAhead = 400
)

// rule is a window of a policy, ready to be resolved.
type rule struct {
	name     string
	days     weekdays
	weeks    weeks
	start    int64 // seconds after midnight
	duration time.Duration
	clock    clock
}

// openUntil is the end of the window's latest occurrence that began at t or before, or t if the window is closed.
// Occurrences of one window may overlap; as all last equally long, the latest also ends last.
func (r *rule) openUntil(t time.Time) time.Time {
	today := dateOf(r.clock.read(t))
	// After clocks were set back over midnight, the date of tomorrow has begun already.
	for d := today + 1; d >= today-lookBehind; d-- {
		start, ok := r.startOn(d)
		if !ok || start.After(t) {
			continue
		}
		if end := start.Add(r.duration); end.After(t) {
			return end
		}
		return t
	}
	return t
}

// nextStart is the first start after t. None: the zone data has no such time within 400 days.
func (r *rule) nextStart(t time.Time) (time.Time, bool) {
	today := dateOf(r.clock.read(t))
	for d := today; d <= today+lookAhead; d++ {
		if start, ok := r.startOn(d); ok && start.After(t) {
			return start, true
		}
	}
	return time.Time{}, false
}

// startOn is the start on the date, if the window starts on it and the zone has it. It does not decrease with the date.
func (r *rule) startOn(d date) (time.Time, bool) {
	if !r.days.has(d) || !r.weeks.has(d) {
		return time.Time{}, false
	}
	if r.clock.first(d.at(0)) == r.clock.first((d + 1).at(0)) {
		return time.Time{}, false // the zone skipped the date
	}
	return time.Unix(r.clock.first(d.at(r.start)), 0).UTC(), true
}

// weekdays is a set of days of the week, Sunday the lowest bit. The empty set represents every day.
type weekdays uint8

func (w weekdays) has(d date) bool { return w == 0 || w&(1<<d.weekday()) != 0 }

// weeks is a set of weeks of the month: bit n is the n-th, bit 0 the last. The empty set represents every week.
type weeks uint8

func (w weeks) has(d date) bool {
	if w == 0 {
		return true
	}
	n, last := d.weekOfMonth()
	return w&(1<<n) != 0 || last && w&1 != 0
}

// span is a blackout of a policy, resolved: from is in it, to is not.
type span struct {
	name, reason string
	from, to     time.Time
}

// newSpan resolves the dates by the clocks of the zone.
func newSpan(name, reason string, from, to date, zone *time.Location) span {
	c := clock{zone: zone}
	return span{
		name:   name,
		reason: reason,
		from:   time.Unix(c.first(from.at(0)), 0).UTC(),
		to:     time.Unix(c.first(to.at(0)), 0).UTC(),
	}
}

// holds reports whether the blackout is in force at t.
func (s span) holds(t time.Time) bool { return !t.Before(s.from) && t.Before(s.to) }
