package timetable

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
)

const (
	// gapWidth is the width of hours in which nothing happens, of any number.
	gapWidth = 34.0
	// leastWidth is how wide a stretch is at least.
	leastWidth = 100.0
	// mostStretches is how many are drawn at most.
	mostStretches = 24
	// lookBack is how much of what is in progress is shown of the time before now.
	lookBack = 30 * time.Minute
)

// stretch is a stretch of time in which something happens, drawn to scale.
type stretch struct {
	from, to time.Time
	// x and width are where it is drawn.
	x, width float64
}

// axis is time from left to right: stretches to scale, and between them gaps in which no node is rebooted.
type axis struct {
	stretches []stretch
	// now is the left edge, where it is in a gap before the first stretch.
	now time.Time
	// cut reports that there is more than is drawn.
	cut bool
}

// axisOf lays the hours out between the edges of the picture; it needs more room where there are many stretches.
func axisOf(t Timetable) (axis, float64) {
	a := axis{stretches: join(busy(t))}
	if a.cut = len(a.stretches) > mostStretches; a.cut {
		a.stretches = a.stretches[:mostStretches]
	}
	n, left, width := float64(len(a.stretches)), leftEdge, plotWidth
	if n > 0 && a.stretches[0].from.After(t.At) {
		a.now = t.At
		left, width = left+gapWidth, width-gapWidth
	}
	room := max(width-gapWidth*(n-1), leastWidth*n)
	var sum time.Duration
	for _, s := range a.stretches {
		sum += s.to.Sub(s.from)
	}
	rest, x := room-leastWidth*n, left
	for i := range a.stretches {
		s := &a.stretches[i]
		s.x, s.width = x, leastWidth+rest*float64(s.to.Sub(s.from))/float64(max(sum, 1))
		x += s.width + gapWidth
	}
	return a, max(x-gapWidth-leftEdge, 0)
}

// busy are the hours to show: those in which nodes are rebooted, from the opening of the window on, with a margin, and now.
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

// lastEnd is when the last reboot ends that starts in an opening; zero: none starts.
func lastEnd(t Timetable, e calendar.Period) time.Time {
	var last time.Time
	for _, r := range t.Reboots {
		if !r.StartsAt.Before(e.From) && (e.To.IsZero() || r.StartsAt.Before(e.To)) && r.EndsAt.After(last) {
			last = r.EndsAt
		}
	}
	return last
}

// join merges what touches or overlaps.
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

// at is where an instant is drawn. One in a gap is in its middle, one before the first stretch at its left edge. False: it is
// beyond the last stretch.
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

// drawn are the reboots that start before the axis ends.
func (a axis) drawn(reboots []forecast.Reboot) []forecast.Reboot {
	if !a.cut {
		return reboots
	}
	end := a.stretches[len(a.stretches)-1].to
	return slices.DeleteFunc(slices.Clone(reboots), func(r forecast.Reboot) bool { return r.StartsAt.After(end) })
}

// steps are how far apart ticks may be.
var steps = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
}

// ticks are the round instants of a stretch by the clocks of a zone, so that labels have room, also beside the next stretch's.
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
