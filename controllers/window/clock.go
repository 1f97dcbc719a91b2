package window

import (
	"math"
	"time"
)

// reading is what a wall clock shows: the seconds since 1 January 1970, 00:00, by that clock. It is no instant.
type reading int64

// maxOffset is more than any zone is ahead of UTC or behind it, in seconds.
const maxOffset = 26 * 60 * 60

// clock is the wall clock of one zone. It remembers the era it looked up last, as neighbouring instants mostly fall
// into the same one; so it must not be shared by goroutines.
type clock struct {
	zone *time.Location
	last era
}

// era is a stretch of time in which a zone keeps its offset from UTC: from is in it, to is not. All are seconds,
// from and to since the Unix epoch.
type era struct{ from, to, offset int64 }

// first is the first instant at which the clock reads r or later. It is the one that reads r, the first of the two that do, or the end
// of the gap that skips r. It never decreases as r grows.
func (c *clock) first(r reading) time.Time {
	for t := int64(r) - maxOffset; ; {
		e := c.at(t)
		// Until t the clock read less than r. At t it may read more, after a gap.
		if instant := max(int64(r)-e.offset, t); instant < e.to {
			return time.Unix(instant, 0).UTC()
		}
		t = e.to
	}
}

// read is what the clock reads at t.
func (c *clock) read(t time.Time) reading { return reading(t.Unix() + c.at(t.Unix()).offset) }

// at is the era that holds t, from t or before to the end of the era or before.
func (c *clock) at(t int64) era {
	if t < c.last.from || c.last.to <= t {
		c.last = eraFrom(time.Unix(t, 0).In(c.zone))
	}
	return c.last
}

// eraFrom is the era of t from t on. Its beginning is not asked for. [time.Time.ZoneBounds] may name an instant with another offset, in
// the year in which a zone's present rules began.
func eraFrom(t time.Time) era {
	_, offset := t.Zone()
	e := era{from: t.Unix(), to: math.MaxInt64, offset: int64(offset)}
	if _, end := t.ZoneBounds(); !end.IsZero() {
		e.to = end.Unix()
	}
	if e.to <= e.from {
		// ZoneBounds ends a leap year after 365 days, so on its 31 December (UTC) the end is in the past. The offset
		// holds to the end of that day.
		e.to = (e.from/secondsPerDay + 1) * secondsPerDay
	}
	return e
}

const secondsPerDay = 24 * 60 * 60

// date is a civil date: the days since 1 January 1970.
type date int64

// dateOf is the date of a reading.
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

// at is the reading on the date so many seconds after midnight.
func (d date) at(secondOfDay int64) reading { return reading(int64(d)*secondsPerDay + secondOfDay) }

// weekOfMonth is n for the n-th such weekday of the month, and whether it is the last one.
func (d date) weekOfMonth() (n int, last bool) {
	day := d.utc()
	return (day.Day()-1)/7 + 1, day.Month() != (d + 7).utc().Month()
}

// utc is the date's midnight in UTC, where every date has one.
func (d date) utc() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }
