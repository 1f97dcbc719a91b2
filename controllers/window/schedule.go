package window

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// urgentName is the name of the window that spec.urgent.all opens.
const urgentName = "urgent"

// horizon is how far ahead State reports openings and closings. What lies beyond is reported when it comes nearer.
const horizon = 400 * 24 * time.Hour

// Schedule is the windows and blackouts of one policy, checked and with their zones loaded. It never changes, so
// goroutines may share it. The zero Schedule never opens: a caller that overlooks an error of Compile reboots nothing.
type Schedule struct {
	compiled  bool
	rules     []rule
	blackouts []span
	// urgency is the schedule of spec.urgent.all. Nil: there is none.
	urgency *urgency
}

// urgency is the schedule that holds until an instant.
type urgency struct {
	until    time.Time
	schedule Schedule
}

// Of compiles the windows and blackouts of a policy, and what spec.urgent.all ignores of them. An error in one that is ignored is
// an error, too.
func Of(spec *v1alpha1.RebootPolicySpec) (Schedule, error) {
	schedule, err := Compile(spec.Windows, spec.Blackouts)
	all := spec.UrgentOrDefault().All
	if err != nil || all == nil {
		return schedule, err
	}
	other := Schedule{compiled: true, rules: schedule.rules, blackouts: schedule.blackouts}
	if slices.Contains(all.Ignore, v1alpha1.UrgentIgnoresWindows) {
		other.rules = nil
	}
	if slices.Contains(all.Ignore, v1alpha1.UrgentIgnoresBlackouts) {
		other.blackouts = nil
	}
	schedule.urgency = &urgency{until: all.Until.UTC(), schedule: other}
	return schedule, nil
}

// Compile checks windows and blackouts and loads their zones. No windows: always open. The API server has refused most
// of what is an error here, but it may know other time zones than this process does. With an error the Schedule is the
// zero one.
func Compile(windows []v1alpha1.Window, blackouts []v1alpha1.Blackout) (Schedule, error) {
	zones := zones{}
	rules, err := compileEach("window", windows, func(w v1alpha1.Window) string { return w.Name }, zones.rule)
	if err != nil {
		return Schedule{}, err
	}
	spans, err := compileEach("blackout", blackouts, func(b v1alpha1.Blackout) string { return b.Name }, zones.span)
	if err != nil {
		return Schedule{}, err
	}
	skipped := func(s span) bool { return !s.from.Before(s.to) } // its zone skipped all its dates
	return Schedule{compiled: true, rules: rules, blackouts: slices.DeleteFunc(spans, skipped)}, nil
}

// Zone is the time zone in which people read the policy's times: that of its first window. UTC where it has none.
func (s Schedule) Zone() *time.Location {
	if len(s.rules) == 0 {
		return time.UTC
	}
	return s.rules[0].clock.zone
}

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
	// Urgent reports whether it is open under spec.urgent.all.
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

// urgently is the state while spec.urgent.all is in force. Its openings and closings take the schedule after it into account.
func (s Schedule) urgently(now time.Time) State {
	until, after := s.urgency.until, s.regular(s.urgency.until)
	state := s.urgency.schedule.regular(now)
	state.Always = len(s.rules) == 0
	if state.Open {
		state.Urgent = true
		if state.Name == "" {
			state.Name = urgentName
		}
		state.ClosesAt = s.across(now, state.ClosesAt, after.Open, after.ClosesAt)
	} else {
		state.OpensAt = s.across(now, state.OpensAt, !after.Open, after.OpensAt)
	}
	change := timing.Earliest(state.ClosesAt, state.OpensAt)
	state.Next = timing.Earliest(timing.Earliest(state.Next, until), change)
	return state
}

// across is when a state ends: before until, or at until where the schedule after it is in another state, or when that one ends.
func (s Schedule) across(now, end time.Time, goesOn bool, ends time.Time) time.Time {
	until := s.urgency.until
	switch {
	case !end.IsZero() && end.Before(until):
		return end
	case !goesOn:
		return inSight(now, until)
	}
	return inSight(now, ends)
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

// covered is the first instant from t on at which none of the windows is open, or some instant after the limit. It stays with one
// window as long as only that one is open, so a daily window of 24h costs one step for a day.
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
