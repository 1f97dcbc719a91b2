// Package moment writes instants and spans of time for people: in their zone, and as kubectl writes ages.
package moment

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// near is how far an instant may be for its weekday alone to name its day.
const near = 6 * 24 * time.Hour

// At is an instant for a reader at now: 22:00 CET today, Tue 04:00 CET within the week, else with its date.
func At(t, now time.Time, zone *time.Location) string { return at(t, now, zone, "15:04 MST") }

// Ends are the two ends of a span: the first as At writes it, the second for a reader at the first. Where both are in
// one minute they have seconds.
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

// Exact is an instant to the second, with its date and zone.
func Exact(t time.Time, zone *time.Location) string {
	return timing.InstantIn(t, zone)
}

// written is an instant in a sentence of the manager or an agent. They write UTC, the same for all readers.
var written = regexp.MustCompile(`\b(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC\b`)

// Local is a sentence of the manager or an agent with its instants of UTC in a zone.
func Local(sentence string, zone *time.Location) string {
	return written.ReplaceAllStringFunc(sentence, func(instant string) string {
		at, err := time.Parse(time.DateTime, written.FindStringSubmatch(instant)[1])
		if err != nil {
			return instant
		}
		return Exact(at, zone)
	})
}

// Span is how long, in at most two units: 48s, 5m12s, 5h12m, 2d5h. It is never negative.
func Span(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// Length is a duration as it was meant, exactly: 90s, 6h, 1h30m, 5d.
func Length(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return Short(d)
}

// Short is a duration without the zeros at its end, as a policy takes it: 90s, 6h, 120h.
func Short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Parse reads a duration as people write it: 90s, 6h, 1h30m, or with days, 2d and 1d12h.
func Parse(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16) // 65,535 days do not overflow
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 6h, 2d or 1d12h", text)
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 6h, 2d or 1d12h", text)
	}
	return d + more, nil
}

// Until is how far off an instant is: in 5h12m, or now where it is past.
func Until(t, now time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + Span(t.Sub(now))
}
