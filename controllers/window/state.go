package window

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// horizon is how far ahead State reports openings and closings. What lies beyond is reported when it comes nearer.
const horizon = 400 * 24 * time.Hour

// State is what the windows and blackouts permit at one instant, until Next. All instants are in UTC.
type State struct {
	// Open reports whether a reboot may start.
	Open bool
	// Always reports whether the policy has no windows: it is open but for its blackouts.
	Always bool
	// Name is that of the blackout in force, otherwise of the open window; where there are several, the first of the policy's list.
	// Empty: closed by no blackout, or open without windows.
	Name string
	// Blackout reports whether a blackout is in force; BlackoutReason is the reason written with it.
	Blackout       bool
	BlackoutReason string
	// ClosesAt is the end of the union of windows that touch or overlap, or the blackout that cuts it. Zero: closed,
	// or open for 400 days and more.
	ClosesAt time.Time
	// OpensAt is the next opening. Zero: open, or closed for 400 days and more.
	OpensAt time.Time
	// Urgent reports whether it is open under spec.urgent.
	Urgent bool
	// Next is the next instant at which anything above changes. Zero: nothing does within 400 days.
	Next time.Time
}

// At is the state at now.
func (s Schedule) At(now time.Time) State {
	if s.compiled && s.urgency != nil && now.Before(s.urgency.until) {
		return s.urgently(now)
	}
	return s.regular(now)
}

// regular is the state by windows and blackouts alone.
func (s Schedule) regular(now time.Time) State {
	if !s.compiled {
		return State{}
	}
	s.rules = slices.Clone(s.rules) // their clocks remember, and goroutines may share a Schedule
	always := len(s.rules) == 0
	if i := s.blackoutAt(now); i < len(s.blackouts) {
		b := s.blackouts[i]
		state := State{Always: always, Name: b.name, Blackout: true, BlackoutReason: b.reason}
		return s.closed(state, now, timing.Earliest(b.to, s.nextBlackout(now, i)))
	}
	blackout := s.nextBlackout(now, len(s.blackouts))
	if always {
		return open(State{Always: true}, now, blackout, time.Time{})
	}
	i := s.ruleAt(now)
	if i == len(s.rules) {
		return s.closed(State{}, now, blackout)
	}
	return open(State{Name: s.rules[i].name}, now, s.closing(now, blackout), s.nextName(now, i))
}

// closed completes the state while closed; next is when the blackout in force changes.
func (s Schedule) closed(state State, now, next time.Time) State {
	opening := s.opening(now)
	state.OpensAt = inSight(now, opening)
	state.Next = timing.Earliest(next, visibleAt(now, opening))
	return state
}

// open completes the state while open; next is when the name changes.
func open(state State, now, closing, next time.Time) State {
	state.Open = true
	state.ClosesAt = inSight(now, closing)
	state.Next = timing.Earliest(next, visibleAt(now, closing))
	return state
}

// inSight is the instant if it is within the horizon.
func inSight(now, instant time.Time) time.Time {
	if instant.After(now.Add(horizon)) {
		return time.Time{}
	}
	return instant
}

// visibleAt is when the instant changes the state: as it comes, or already as it comes in sight.
func visibleAt(now, instant time.Time) time.Time {
	if instant.After(now.Add(horizon)) {
		return instant.Add(-horizon)
	}
	return instant
}
