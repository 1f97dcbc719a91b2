// Package oracle evaluates windows and blackouts as docs/howto/windows.md describes them, in a different
// way than controllers/window. It steps through time minute by minute and only looks at what wall
// clocks show, so offsets, starts and durations must be whole minutes. It shares no code with the
// manager, so that each can be checked against the other.
package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Segment is a period in which nothing changes.
type Segment struct {
	From, To time.Time
	// Open reports whether a window is open and no blackout applies.
	Open bool
	// Name is the name of the window or the blackout, or empty.
	Name     string
	Blackout bool
}

// Open reports whether an instant is inside a window and outside of blackouts. Without windows,
// every instant is inside.
func Open(windows []v1alpha1.Window, blackouts []v1alpha1.Blackout, t time.Time) bool {
	from := t.Truncate(time.Minute)
	return Segments(windows, blackouts, from, from.Add(time.Minute))[0].Open
}

// lead is the time before the first segment at which the walk begins, so that it sees every start
// that still matters.
const lead = 10 * 24 * time.Hour

// shown is the reading of a wall clock in minutes since 1970-01-01 00:00, by its own date and time
// of day.
type shown int64

func (s shown) date() int64 { return int64(math.Floor(float64(s) / (24 * 60))) }

// watch returns the readings of a zone's wall clock for every minute of a period.
func watch(zone string, from, to time.Time) []shown {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	var clock []shown
	for t := from.In(location); t.Before(to); t = t.Add(time.Minute) {
		year, month, day := t.Date()
		hour, minute, _ := t.Clock()
		clock = append(clock, shown(time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Unix()/60))
	}
	return clock
}

// Segments returns the segments of a period that begins and ends at whole minutes.
func Segments(windows []v1alpha1.Window, blackouts []v1alpha1.Blackout, from, to time.Time) []Segment {
	begin := from.Add(-lead)
	clocks := map[string][]shown{}
	clockOf := func(zone string) []shown {
		if clocks[zone] == nil {
			clocks[zone] = watch(zone, begin, to)
		}
		return clocks[zone]
	}
	minutes := make([]Segment, int(to.Sub(begin)/time.Minute))
	for i := range minutes {
		minutes[i].Open = len(windows) == 0
	}
	for _, w := range slices.Backward(windows) { // the first one in the list wins
		overlayWindow(minutes, w, clockOf(w.TimeZoneOrDefault()))
	}
	for _, b := range slices.Backward(blackouts) {
		overlayBlackout(minutes, b, clockOf(b.TimeZoneOrDefault()))
	}
	return joined(minutes[int(lead/time.Minute):], from)
}

// overlayWindow opens the minutes in which the window is open.
func overlayWindow(minutes []Segment, w v1alpha1.Window, clock []shown) {
	start, err := time.Parse("15:04", w.Start)
	if err != nil {
		panic(err)
	}
	started, remaining := map[int64]bool{}, time.Duration(0)
	for i := 1; i < len(minutes); i++ {
		for date := clock[i-1].date(); date <= clock[i].date(); date++ {
			begins := shown(date*24*60 + int64(start.Hour()*60+start.Minute()))
			reached := clock[i-1] < begins && begins <= clock[i]
			exists := date == clock[i-1].date() || date == clock[i].date()
			if reached && exists && !started[date] && selects(w, date) {
				started[date], remaining = true, w.Duration.Duration
			}
		}
		if remaining > 0 {
			minutes[i].Open, minutes[i].Name = true, w.Name
			remaining -= time.Minute
		}
	}
}

// overlayBlackout closes the minutes in which the blackout applies: from the first minute that
// shows the date from or a later one, until the first that shows the date to or a later one.
func overlayBlackout(minutes []Segment, b v1alpha1.Blackout, clock []shown) {
	if len(b.From) == len("12-24") {
		overlayYearly(minutes, b, clock)
		return
	}
	from, _ := time.Parse(time.DateOnly, b.From)
	to, _ := time.Parse(time.DateOnly, b.To)
	var begun, ended bool
	for i, show := range clock {
		begun = begun || show >= shown(from.Unix()/60)
		ended = ended || show >= shown(to.Unix()/60)
		if begun && !ended {
			minutes[i] = Segment{Name: b.Name, Blackout: true}
		}
	}
}

// overlayYearly closes the minutes that show a day of the year from the first day on, and before the
// end, which may be in the next year. A day that has begun stays so if a clock is set back over
// midnight.
func overlayYearly(minutes []Segment, b v1alpha1.Blackout, clock []shown) {
	latest := int64(math.MinInt64)
	for i, show := range clock {
		latest = max(latest, show.date())
		day := time.Unix(latest*24*60*60, 0).UTC().Format("01-02")
		within := b.From <= day && day < b.To
		if b.To < b.From {
			within = b.From <= day || day < b.To
		}
		if within {
			minutes[i] = Segment{Name: b.Name, Blackout: true}
		}
	}
}

// selects reports whether days and weeksOfMonth select a date, by counting calendar days.
func selects(w v1alpha1.Window, date int64) bool {
	day := time.Unix(date*24*60*60, 0).UTC()
	weekdayMatches := len(w.Days) == 0
	for _, name := range w.Days {
		weekdayMatches = weekdayMatches || day.Format("Mon") == string(name)
	}
	before, after := 0, 0
	for other := day.AddDate(0, 0, -7); other.Month() == day.Month(); other = other.AddDate(0, 0, -7) {
		before++
	}
	for other := day.AddDate(0, 0, 7); other.Month() == day.Month(); other = other.AddDate(0, 0, 7) {
		after++
	}
	weekMatches := len(w.WeeksOfMonth) == 0
	for _, n := range w.WeeksOfMonth {
		weekMatches = weekMatches || int(n) == before+1 || n == -1 && after == 0
	}
	return weekdayMatches && weekMatches
}

// joined merges neighboring minutes that are alike into segments.
func joined(minutes []Segment, from time.Time) []Segment {
	var segments []Segment
	for i, m := range minutes {
		m.From, m.To = from.Add(time.Duration(i)*time.Minute), from.Add(time.Duration(i+1)*time.Minute)
		if n := len(segments); n > 0 {
			if last := &segments[n-1]; last.Open == m.Open && last.Name == m.Name && last.Blackout == m.Blackout {
				last.To = m.To
				continue
			}
		}
		segments = append(segments, m)
	}
	return segments
}
