// Package moment formats times and durations for people: in their time zone, and like kubectl's
// ages.
package moment

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// near is the distance up to which the weekday alone identifies the day.
const near = 6 * 24 * time.Hour

// At formats a time for a reader: 22:00 CET today, Tue 04:00 CET within the week, and otherwise
// with the date.
func At(t, now time.Time, zone *time.Location) string { return at(t, now, zone, "15:04 MST") }

// Ends formats the two ends of a period: the first relative to now, the second relative to the
// first. It adds seconds if both are in the same minute.
func Ends(from, to, now time.Time, zone *time.Location) (first, second string) {
	clock := "15:04 MST"
	if from.Truncate(time.Minute).Equal(to.Truncate(time.Minute)) {
		clock = "15:04:05 MST"
	}
	return at(from, now, zone, clock), at(to, from, zone, clock)
}

func at(t, now time.Time, zone *time.Location, clock string) string {
	t, now = t.In(zone), now.In(zone)
	away := t.Sub(now).Abs()
	switch {
	case away < near && t.YearDay() == now.YearDay():
		return t.Format(clock)
	case away < near:
		return t.Format("Mon " + clock)
	case t.Year() == now.Year():
		return t.Format("Mon 2 Jan " + clock)
	}
	return t.Format("Mon 2 Jan 2006 " + clock)
}

// Exact formats a time to the second, with date and zone.
func Exact(t time.Time, zone *time.Location) string {
	return timing.InstantIn(t, zone)
}

// written matches a time in a sentence of the manager or an agent, which always write UTC.
var written = regexp.MustCompile(`\b(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC\b`)

// Local converts the UTC times in a sentence of the manager or an agent to a time zone.
func Local(sentence string, zone *time.Location) string {
	return written.ReplaceAllStringFunc(sentence, func(instant string) string {
		t, err := time.Parse(time.DateTime, written.FindStringSubmatch(instant)[1])
		if err != nil {
			return instant
		}
		return Exact(t, zone)
	})
}

// Span formats a duration in at most two units: 48s, 5m12s, 5h12m, 2d5h. Negative durations become
// 0s.
func Span(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// Length formats a duration exactly: 90s, 6h, 1h30m, 5d.
func Length(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return Short(d)
}

// Short formats a duration as a policy accepts it, without trailing zeros: 90s, 6h, 120h.
func Short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Until formats the distance to a time, such as in 5h12m, or now if it has passed.
func Until(t, now time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + Span(t.Sub(now))
}
