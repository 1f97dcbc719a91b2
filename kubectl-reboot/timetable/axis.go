package timetable

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
)

const (
	// gapWidth is the width of a period without reboots, whatever its duration.
	gapWidth = 34.0
	// leastWidth is the minimum width of a stretch.
	leastWidth = 100.0
	// mostStretches is the maximum number of stretches that are drawn.
	mostStretches = 24
	// lookBack is the part of reboots in progress before now that is shown.
	lookBack = 30 * time.Minute
)

// stretch is a period with reboots, drawn to scale.
type stretch struct {
	from, to time.Time
	// x and width are its position in the picture.
	x, width float64
}

// axis is the time axis from left to right: stretches to scale, and gaps without reboots between
// them.
type axis struct {
	stretches []stretch
	// now is the left edge, if that is in a gap before the first stretch.
	now time.Time
	// cut means that some stretches are not drawn.
	cut bool
}

// axisOf distributes the stretches over the picture, and returns the required width.
func axisOf(t Timetable) (axis, float64) {
	a := axis{stretches: join(busy(t))}
	if a.cut = len(a.stretches) > mostStretches; a.cut {
		a.stretches = a.stretches[:mostStretches]
	}
	n, start, width := float64(len(a.stretches)), leftEdge, plotWidth
	if n > 0 && a.stretches[0].from.After(t.At) {
		a.now = t.At
		start, width = start+gapWidth, width-gapWidth
	}
	room := max(width-gapWidth*(n-1), leastWidth*n)
	var sum time.Duration
	for _, s := range a.stretches {
		sum += s.to.Sub(s.from)
	}
	rest, x := room-leastWidth*n, start
	for i := range a.stretches {
		s := &a.stretches[i]
		s.x, s.width = x, leastWidth+rest*float64(s.to.Sub(s.from))/float64(max(sum, 1))
		x += s.width + gapWidth
	}
	return a, max(x-gapWidth-leftEdge, 0)
}

// busy returns the periods to show: now, and those with reboots, from the opening of the window on
// and with a margin.
func busy(t Timetable) []stretch {
	var busy []stretch
	for _, r := range t.Reboots {
		from := r.StartsAt
		if early := t.At.Add(-lookBack); r.InProgress && from.Before(early) {
			from = early
		}
		busy = append(busy, stretch{from: from, to: r.EndsAt})
	}
	for _, e := range t.Calendar {
		last := lastEnd(t, e)
		if e.Kind != calendar.Open || last.IsZero() {
			continue
		}
		used := last.Sub(e.From)
		to := last.Add(max(used/8, 10*time.Minute))
		if !e.To.IsZero() && e.To.Before(to) {
			to = e.To
		}
		busy = append(busy, stretch{from: e.From, to: to})
	}
	return busy
}

// lastEnd returns the end of the last reboot that starts in an opening, or zero.
func lastEnd(t Timetable, e calendar.Period) time.Time {
	var last time.Time
	for _, r := range t.Reboots {
		if !r.StartsAt.Before(e.From) && (e.To.IsZero() || r.StartsAt.Before(e.To)) && r.EndsAt.After(last) {
			last = r.EndsAt
		}
	}
	return last
}

// join merges stretches that touch or overlap.
func join(list []stretch) []stretch {
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	var joined []stretch
	for _, s := range list {
		if last := len(joined) - 1; last >= 0 && !s.from.After(joined[last].to) {
			if s.to.After(joined[last].to) {
				joined[last].to = s.to
			}
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// at returns the position of a time. Times in a gap are drawn in its middle, and times before the
// first stretch at its left edge. It returns false for times after the last stretch.
func (a axis) at(t time.Time) (float64, bool) {
	for i, s := range a.stretches {
		switch {
		case t.Before(s.from) && i == 0 && !a.now.IsZero():
			return s.x - gapWidth, true
		case t.Before(s.from) && i == 0:
			return s.x, true
		case t.Before(s.from):
			return s.x - gapWidth/2, true
		case !t.After(s.to):
			return s.x + s.width*float64(t.Sub(s.from))/float64(max(s.to.Sub(s.from), 1)), true
		}
	}
	return 0, false
}

// drawn returns the reboots that start before the axis ends.
func (a axis) drawn(reboots []forecast.Expected) []forecast.Expected {
	if !a.cut {
		return reboots
	}
	end := a.stretches[len(a.stretches)-1].to
	return slices.DeleteFunc(slices.Clone(reboots), func(r forecast.Expected) bool { return r.StartsAt.After(end) })
}

// steps lists the possible distances between ticks.
var steps = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
}

// ticks returns the round times of a stretch in a time zone, far enough apart for their labels.
func (s stretch) ticks(zone *time.Location) []time.Time {
	const room = 58.0
	step := steps[len(steps)-1]
	for _, d := range steps {
		if s.width*float64(d)/float64(max(s.to.Sub(s.from), 1)) >= room {
			step = d
			break
		}
	}
	_, offset := s.from.In(zone).Zone()
	shift := time.Duration(offset) * time.Second
	var ticks []time.Time
	for t := s.from.Add(shift).Truncate(step).Add(-shift); !t.After(s.to); t = t.Add(step) {
		if room := float64(s.to.Sub(t)) / float64(max(s.to.Sub(s.from), 1)) * s.width; !t.Before(s.from) && room > 30 {
			ticks = append(ticks, t)
		}
	}
	return ticks
}
