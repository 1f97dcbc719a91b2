package window

import (
	"math"
	"time"
)

// reading is a time on a wall clock: the seconds since 1 January 1970, 00:00, on that clock. It is
// not an instant.
type reading int64

// maxOffset is more than the offset of any zone from UTC, in seconds.
const maxOffset = 26 * 60 * 60

// clock is the wall clock of one zone. It caches the last era, because neighbouring instants are
// mostly in the same one. So goroutines must not share it.
type clock struct {
	zone *time.Location
	last era
}

// era is a period in which a zone keeps its offset from UTC. from is inside, and to is outside. All
// are in seconds, from and to since the Unix epoch.
type era struct{ from, to, offset int64 }

// first returns the first instant at which the clock reads r or later. That is the instant that
// reads r, the first of two that do, or the end of the gap that skips r. It never decreases as r
// grows.
func (c *clock) first(r reading) time.Time {
	for t := int64(r) - maxOffset; ; {
		e := c.at(t)
		// Before t the clock read less than r. At t it may read more, after a gap.
		if instant := max(int64(r)-e.offset, t); instant < e.to {
			return time.Unix(instant, 0).UTC()
		}
		t = e.to
	}
}

// read returns the reading of the clock at t.
func (c *clock) read(t time.Time) reading { return reading(t.Unix() + c.at(t.Unix()).offset) }

// at returns the era that contains t, or a part of it.
func (c *clock) at(t int64) era {
	if t < c.last.from || c.last.to <= t {
		c.last = eraFrom(time.Unix(t, 0).In(c.zone))
	}
	return c.last
}

// eraFrom returns the era of t from t on. Its beginning is not looked up, because
// [time.Time.ZoneBounds] may return an instant with another offset in the year in which a zone's
// current rules began.
func eraFrom(t time.Time) era {
	_, offset := t.Zone()
	e := era{from: t.Unix(), to: math.MaxInt64, offset: int64(offset)}
	if _, end := t.ZoneBounds(); !end.IsZero() {
		e.to = end.Unix()
	}
	if e.to <= e.from {
		// ZoneBounds ends a leap year after 365 days, so on 31 December (UTC) the end is in the
		// past. The offset holds to the end of that day.
		e.to = (e.from/secondsPerDay + 1) * secondsPerDay
	}
	return e
}

const secondsPerDay = 24 * 60 * 60

// date is a civil date, as the days since 1 January 1970.
type date int64

// dateOf returns the date of a reading.
func dateOf(r reading) date {
	days := r / secondsPerDay
	if r%secondsPerDay < 0 {
		days--
	}
	return date(days)
}

// parseDate reads YYYY-MM-DD.
func parseDate(s string) (date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, err
	}
	return dateOf(reading(t.Unix())), nil
}

// leapYear has every day of a year.
const leapYear = "2024-"

// isDayOfYear reports whether s is a date as MM-DD. 29 February is one.
func isDayOfYear(s string) bool {
	_, err := parseDate(leapYear + s)
	return err == nil
}

// dayOfYear is the date of MM-DD in a year. If the year has no 29 February, that is 1 March.
func dayOfYear(year int, s string) date {
	t, _ := time.Parse(time.DateOnly, leapYear+s)
	return dateOf(reading(time.Date(year, t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix()))
}

// at returns the reading a number of seconds after midnight of the date.
func (d date) at(secondOfDay int64) reading { return reading(int64(d)*secondsPerDay + secondOfDay) }

// weekOfMonth returns n for the n-th such weekday of the month, and whether it is the last one.
func (d date) weekOfMonth() (n int, last bool) {
	day := d.utc()
	return (day.Day()-1)/7 + 1, day.Month() != (d + 7).utc().Month()
}

// utc returns the date's midnight in UTC, which exists for every date.
func (d date) utc() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }
