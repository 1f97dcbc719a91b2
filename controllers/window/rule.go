package window

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// lookBehind is the largest number of dates between today and the start of a window that is
	// still open. The duration is at most 7 days. Clocks that skip a date or a part of one account
	// for the rest.
	lookBehind = 9
	// lookAhead is the number of dates that are searched for the next start. A fifth weekday of a
	// month occurs again within four months.
	lookAhead = 400
)

// maxDuration is the longest duration of a window. lookBehind depends on it.
const maxDuration = 7 * 24 * time.Hour

// rule is a compiled window of a policy.
type rule struct {
	name     string
	days     weekdays
	weeks    weeks
	start    int64 // seconds after midnight
	duration time.Duration
	clock    clock
}

// openUntil returns the end of the latest occurrence of the window that began at or before t, or t
// if the window is closed. Occurrences may overlap. They all have the same length, so the latest
// one ends last.
func (r *rule) openUntil(t time.Time) time.Time {
	today := dateOf(r.clock.read(t))
	// If clocks were set back over midnight, tomorrow's date has already begun.
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

// nextStart returns the first start after t. It returns false if the zone data has none within 400
// days.
func (r *rule) nextStart(t time.Time) (time.Time, bool) {
	today := dateOf(r.clock.read(t))
	for d := today; d <= today+lookAhead; d++ {
		if start, ok := r.startOn(d); ok && start.After(t) {
			return start, true
		}
	}
	return time.Time{}, false
}

// startOn returns the start on the date, if the window starts on it and the zone has that date. It
// does not decrease with the date.
func (r *rule) startOn(d date) (time.Time, bool) {
	if !r.days.has(d) || !r.weeks.has(d) {
		return time.Time{}, false
	}
	if r.clock.first(d.at(0)).Equal(r.clock.first((d + 1).at(0))) {
		return time.Time{}, false // the zone skipped the date
	}
	return r.clock.first(d.at(r.start)), true
}

// weekdays is a set of days of the week, with Sunday as the lowest bit. The empty set means every
// day.
type weekdays uint8

func (w weekdays) has(d date) bool { return w == 0 || w&(1<<d.utc().Weekday()) != 0 }

// weeks is a set of weeks of the month: bit n is the n-th week, and bit 0 the last. The empty set
// means every week.
type weeks uint8

func (w weeks) has(d date) bool {
	if w == 0 {
		return true
	}
	n, last := d.weekOfMonth()
	return w&(1<<n) != 0 || last && w&1 != 0
}

// span is a compiled blackout of a policy. from is inside, and to is outside.
type span struct {
	name, reason string
	from, to     time.Time
	// yearly resolves the blackout for a year, or is nil if it has dates with a year. from and to are
	// zero then.
	yearly func(year int) span
}

// holds reports whether the blackout is in force at t.
func (s span) holds(t time.Time) bool { return !t.Before(s.from) && t.Before(s.to) }

// compileEach compiles windows or blackouts. Their names must be unique, because State identifies
// them by name.
func compileEach[T, R any](kind string, list []T, nameOf func(T) string, compile func(T) (R, error)) ([]R, error) {
	compiled, known := make([]R, 0, len(list)), map[string]bool{}
	for _, one := range list {
		name := nameOf(one)
		r, err := compile(one)
		switch {
		case name == "":
			err = errors.New("name is missing")
		case known[name]:
			err = errors.New("name is used twice")
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", kind, name, err)
		}
		known[name], compiled = true, append(compiled, r)
	}
	return compiled, nil
}

// zones caches loaded zones, because loading one reads a file.
type zones map[string]*time.Location

// rule compiles a window.
func (z zones) rule(w v1alpha1.Window) (rule, error) {
	days, err := parseDays(w.Days)
	if err != nil {
		return rule{}, err
	}
	weeks, err := parseWeeks(w.WeeksOfMonth)
	if err != nil {
		return rule{}, err
	}
	start, err := parseStart(w.Start)
	if err != nil {
		return rule{}, err
	}
	if d := w.Duration.Duration; d <= 0 || d > maxDuration {
		return rule{}, fmt.Errorf("duration %v must be more than 0 and at most 7d", d)
	}
	zone, err := z.load(w.TimeZoneOrDefault())
	if err != nil {
		return rule{}, err
	}
	return rule{
		name:     w.Name,
		days:     days,
		weeks:    weeks,
		start:    start,
		duration: w.Duration.Duration,
		clock:    clock{zone: zone},
	}, nil
}

// span compiles a blackout.
func (z zones) span(b v1alpha1.Blackout) (span, error) {
	if isDayOfYear(b.From) && isDayOfYear(b.To) {
		return z.yearly(b)
	}
	from, err := parseDate(b.From)
	if err != nil {
		return span{}, fmt.Errorf("from %q must be a date as YYYY-MM-DD, or from and to as MM-DD", b.From)
	}
	to, err := parseDate(b.To)
	if err != nil {
		return span{}, fmt.Errorf("to %q must be a date as YYYY-MM-DD, or from and to as MM-DD", b.To)
	}
	if to <= from {
		return span{}, fmt.Errorf("to %s must be after from %s: it is the first day on which reboots may start again", b.To, b.From)
	}
	zone, err := z.load(b.TimeZoneOrDefault())
	if err != nil {
		return span{}, err
	}
	c := clock{zone: zone}
	return span{name: b.Name, reason: b.Reason, from: c.first(from.at(0)), to: c.first(to.at(0))}, nil
}

// yearly checks a blackout that repeats every year. One that ends on an earlier day of the year than it
// begins ends in the next year.
func (z zones) yearly(b v1alpha1.Blackout) (span, error) {
	if b.From == b.To {
		return span{}, fmt.Errorf("to %s must be another day than from: it is the first day on which reboots may start again", b.To)
	}
	zone, err := z.load(b.TimeZoneOrDefault())
	if err != nil {
		return span{}, err
	}
	return span{name: b.Name, reason: b.Reason, yearly: func(year int) span {
		c, ends := clock{zone: zone}, year
		if b.To < b.From {
			ends++
		}
		return span{name: b.Name, reason: b.Reason, from: c.first(dayOfYear(year, b.From).at(0)), to: c.first(dayOfYear(ends, b.To).at(0))}
	}}, nil
}

func (z zones) load(name string) (*time.Location, error) {
	if zone, ok := z[name]; ok {
		return zone, nil
	}
	zone, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	z[name] = zone
	return zone, nil
}

var dayNames = []v1alpha1.Day{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

func parseDays(days []v1alpha1.Day) (weekdays, error) {
	var set weekdays
	for _, day := range days {
		i := slices.Index(dayNames, day)
		if i < 0 {
			return 0, fmt.Errorf("day %q must be Mon, Tue, Wed, Thu, Fri, Sat or Sun", day)
		}
		set |= 1 << i
	}
	return set, nil
}

func parseWeeks(ns []int32) (weeks, error) {
	var set weeks
	for _, n := range ns {
		switch {
		case n == -1:
			set |= 1
		case 1 <= n && n <= 5:
			set |= 1 << n
		default:
			return 0, fmt.Errorf("weeksOfMonth %d must be 1 to 5, or -1 for the last", n)
		}
	}
	return set, nil
}

// parseStart converts HH:MM to seconds after midnight.
func parseStart(s string) (int64, error) {
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return 0, fmt.Errorf("start %q must be a time of day as HH:MM, from 00:00 to 23:59", s)
	}
	return int64(t.Hour()*60+t.Minute()) * 60, nil
}

// loadZone loads a zone by its IANA name. A name whose meaning depends on the machine is an error.
func loadZone(name string) (*time.Location, error) {
	if !isZoneName(name) {
		return nil, fmt.Errorf("%q is not an IANA time zone name such as UTC or Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("loading time zone: %w", err)
	}
	return zone, nil
}

// isZoneName reports whether the name has the right form. It excludes files of a zoneinfo directory
// that depend on the machine or count leap seconds, and paths that leave that directory.
func isZoneName(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-_."
	switch strings.ToLower(name) {
	case "local", "localtime", "posixrules":
		return false
	}
	for i, part := range strings.Split(name, "/") {
		switch {
		case part == "", part[0] == '.', part[0] == '-', strings.Trim(part, letters) != "":
			return false
		case i == 0 && (part == "posix" || part == "right"):
			return false
		}
	}
	return true
}
