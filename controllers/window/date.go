package window

import "time"

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

// weekday is the day of the week. 1 January 1970 was a Thursday.
func (d date) weekday() time.Weekday {
	return time.Weekday(((int64(d)+int64(time.Thursday))%7 + 7) % 7)
}

// weekOfMonth is n for the n-th such weekday of the month, and whether it is the last one.
func (d date) weekOfMonth() (n int, last bool) {
	day := d.utc()
	return (day.Day()-1)/7 + 1, day.Month() != (d + 7).utc().Month()
}

// utc is the date's midnight in UTC, where every date has one.
func (d date) utc() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }
