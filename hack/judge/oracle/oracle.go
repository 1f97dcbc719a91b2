// Package oracle reads windows and blackouts by the letter of docs/policy.md, in another way than controllers/window does. It walks
// minute by minute and looks only at what wall clocks show. It is right where offsets, starts and durations are whole minutes. It
// shares nothing with what the manager uses, so that one can be checked against the other.
package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Segment is a stretch of time in which nothing changes.
type Segment struct {
	From, To time.Time
	// Open reports whether a window is open, and no blackout in force.
	Open bool
	// Name is that of the window or the blackout. Empty: none.
	Name     string
	Blackout bool
}

// Open reports whether an instant is inside a window, and in no blackout. No windows: always.
func Open(windows []v1alpha1.Window, blackouts []v1alpha1.Blackout, at time.Time) bool {
	from := at.Truncate(time.Minute)
	return Segments(windows, blackouts, from, from.Add(time.Minute))[0].Open
}

// lead is how long before the first segment the walk begins, to have seen each start that still counts.
const lead = 10 * 24 * time.Hour

// shown is what a wall clock shows in one minute: the minutes since 1 January 1970 by its own date and time of day.
type shown int64

func (s shown) date() int64 { return int64(math.Floor(float64(s) / (24 * 60))) }

// watch is what the clocks of a zone show in each minute from one instant to the other.
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

// Segments are those from one whole minute to another.
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
	for _, w := range slices.Backward(windows) { // the first in the list has the last word
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
	started, left := map[int64]bool{}, time.Duration(0)
	for i := 1; i < len(minutes); i++ {
		for date := clock[i-1].date(); date <= clock[i].date(); date++ {
			begins := shown(date*24*60 + int64(start.Hour()*60+start.Minute()))
			reached := clock[i-1] < begins && begins <= clock[i]
			exists := date == clock[i-1].date() || date == clock[i].date()
			if reached && exists && !started[date] && selects(w, date) {
				started[date], left = true, w.Duration.Duration
			}
		}
		if left > 0 {
			minutes[i].Open, minutes[i].Name = true, w.Name
			left -= time.Minute
		}
	}
}

// overlayBlackout closes the minutes in which the blackout is in force. They begin with the first that shows from or a later date, and
// end before the first that shows to or a later date.
func overlayBlackout(minutes []Segment, b v1alpha1.Blackout, clock []shown) {
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

// selects is whether days and weeksOfMonth select the date, found by leafing through the calendar.
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

// joined makes one segment of all neighbouring minutes that are alike.
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
