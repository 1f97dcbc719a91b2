package window

import (
	"time"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Below, the zero time represents never.

// blackoutAt is the index of the first blackout in force at t, or how many there are.
func (s Schedule) blackoutAt(t time.Time) int {
	for i, b := range s.blackouts {
		if b.holds(t) {
			return i
		}
	}
	return len(s.blackouts)
}

// nextBlackout is when the next of the first n blackouts begins, after t.
func (s Schedule) nextBlackout(t time.Time, n int) time.Time {
	var next time.Time
	for _, b := range s.blackouts[:n] {
		if b.from.After(t) {
			next = timing.Earliest(next, b.from)
		}
	}
	return next
}

// ruleAt is the index of the first window open at t, or how many there are.
func (s Schedule) ruleAt(t time.Time) int {
	for i := range s.rules {
		if s.rules[i].openUntil(t).After(t) {
			return i
		}
	}
	return len(s.rules)
}

// nextStart is when the next of the first n windows starts, after t.
func (s Schedule) nextStart(t time.Time, n int) time.Time {
	var next time.Time
	for i := range s.rules[:n] {
		if start, ok := s.rules[i].nextStart(t); ok {
			next = timing.Earliest(next, start)
		}
	}
	return next
}

// opening is the first instant from t on at which a window is open and no blackout in force. A blackout is left once, and
// what comes after it is the end, another blackout, or a start; so the rounds are bounded.
func (s Schedule) opening(t time.Time) time.Time {
	for range 2*len(s.blackouts) + 2 {
		if i := s.blackoutAt(t); i < len(s.blackouts) {
			t = s.blackouts[i].to
			continue
		}
		if len(s.rules) == 0 || s.ruleAt(t) < len(s.rules) {
			return t
		}
		if t = s.nextStart(t, len(s.rules)); t.IsZero() {
			break
		}
	}
	return time.Time{}
}

// closing is when the windows open at t close, or the blackout that begins before.
func (s Schedule) closing(t, blackout time.Time) time.Time {
	limit := timing.Earliest(blackout, t.Add(horizon))
	if end := covered(s.rules, t, limit); !end.After(limit) {
		return end
	}
	return blackout
}

// nextName is when another window gives its name than the i-th, which does at t.
func (s Schedule) nextName(t time.Time, i int) time.Time {
	limit := t.Add(horizon)
	next := s.nextStart(t, i)
	if end := covered(s.rules[i:i+1], t, limit); !end.After(limit) {
		return timing.Earliest(next, end)
	}
	return next
}

// covered is the first instant from t on at which none of the windows is open, or some instant after the limit. It
// stays with one window as long as that alone is open on and on, so a daily window of 24h costs one step for a day.
func covered(rules []rule, t, limit time.Time) time.Time {
	for i, closed := 0, 0; closed < len(rules) && !t.After(limit); {
		if end := rules[i].openUntil(t); end.After(t) {
			t, closed = end, 0
			continue
		}
		i, closed = (i+1)%len(rules), closed+1
	}
	return t
}
