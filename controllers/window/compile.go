package window

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// maxDuration is the longest that a window may be open; lookBehind rests on it.
const maxDuration = 7 * 24 * time.Hour

// rule checks a window.
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
		return rule{}, fmt.Errorf("duration %v must be more than 0 and at most 168h", d)
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

// span checks a blackout and resolves its dates.
func (z zones) span(b v1alpha1.Blackout) (span, error) {
	from, err := parseDate(b.From)
	if err != nil {
		return span{}, fmt.Errorf("from %q must be a date as YYYY-MM-DD", b.From)
	}
	to, err := parseDate(b.To)
	if err != nil {
		return span{}, fmt.Errorf("to %q must be a date as YYYY-MM-DD", b.To)
	}
	if to <= from {
		return span{}, fmt.Errorf("to %s must be after from %s: it is the first day on which reboots may start again", b.To, b.From)
	}
	zone, err := z.load(b.TimeZoneOrDefault())
	if err != nil {
		return span{}, err
	}
	return newSpan(b.Name, b.Reason, from, to, zone), nil
}

// compileEach compiles windows or blackouts, each of which has a name of its own: State distinguishes them by it.
func compileEach[T, R any](kind string, list []T, nameOf func(T) string, compile func(T) (R, error)) ([]R, error) {
	compiled, seen := make([]R, 0, len(list)), map[string]bool{}
	for _, one := range list {
		name := nameOf(one)
		r, err := compile(one)
		switch {
		case name == "":
			err = errors.New("name is missing")
		case seen[name]:
			err = errors.New("name is taken by another one")
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", kind, name, err)
		}
		seen[name], compiled = true, append(compiled, r)
	}
	return compiled, nil
}

// zones are the zones loaded so far, as loading one reads a file.
type zones map[string]*time.Location

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

// parseStart reads HH:MM as seconds after midnight.
func parseStart(s string) (int64, error) {
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return 0, fmt.Errorf("start %q must be a time of day as HH:MM, from 00:00 to 23:59", s)
	}
	return int64(t.Hour()*60+t.Minute()) * 60, nil
}

// loadZone loads a zone by its IANA name. A name that means another zone on another machine is an error.
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

// isZoneName is whether the name is of the right form, and not one of the files of a zoneinfo directory that depend
// on the machine or that count leap seconds. Paths out of that directory are not names.
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
