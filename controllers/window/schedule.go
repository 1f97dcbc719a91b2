package window

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// urgentName is the name of the window that spec.urgent.all opens.
const urgentName = "urgent"

// horizon is the time for which State reports openings and closings in advance. Later ones are
// reported when they come closer.
const horizon = 400 * 24 * time.Hour

// Schedule holds the compiled windows and blackouts of one policy. It never changes, so goroutines
// may share it. The zero Schedule never opens, so a caller that overlooks an error of Compile does
// not reboot anything.
type Schedule struct {
	compiled  bool
	rules     []rule
	blackouts []span
	// urgency is the schedule of spec.urgent.all, or nil.
	urgency *urgency
}

// urgency is a schedule that applies until an instant.
type urgency struct {
	until    time.Time
	schedule Schedule
}

// Of compiles the windows and blackouts of a policy, and those that remain under spec.urgent.all.
// An error in one that is ignored counts, too.
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

// Compile compiles windows and blackouts. Without windows the schedule is always open. The API
// server has already rejected most errors, but it may know other time zones than this process. With
// an error it returns the zero Schedule.
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
	skipped := func(s span) bool { return s.yearly == nil && !s.from.Before(s.to) } // if its zone skipped all of its dates
	return Schedule{compiled: true, rules: rules, blackouts: slices.DeleteFunc(spans, skipped)}, nil
}

// Zone returns the time zone for showing the policy's times to people, which is that of the first
// window, or UTC without windows.
func (s Schedule) Zone() *time.Location {
	if len(s.rules) == 0 {
		return time.UTC
	}
	return s.rules[0].clock.zone
}

// State says what the windows and blackouts permit at one instant, and until Next. All instants are
// in UTC.
type State struct {
	// Open reports whether a reboot may start.
	Open bool
	// Always reports whether the policy has no windows, so that only blackouts close it.
	Always bool
	// Name is the name of the blackout in force, or else of the open window. If there are several,
	// it is the first in the policy's list. It is empty if neither applies.
	Name string
	// Blackout reports whether a blackout is in force, and BlackoutReason is its reason.
	Blackout       bool
	BlackoutReason string
	// ClosesAt is the end of the windows that touch or overlap, or the start of the next blackout.
	// It is zero if the policy is closed, or stays open for more than 400 days.
	ClosesAt time.Time
	// OpensAt is the next opening. It is zero if the policy is open, or stays closed for more than
	// 400 days.
	OpensAt time.Time
	// Urgent reports whether it is open under spec.urgent.all.
	Urgent bool
	// Next is the next instant at which any field changes, or zero if that is more than 400 days
	// ahead.
	Next time.Time
}

// At returns the state at now.
func (s Schedule) At(now time.Time) State {
	if s.compiled && s.urgency != nil && now.Before(s.urgency.until) {
		return s.urgently(now)
	}
	return s.regular(now)
}

// regular returns the state by windows and blackouts alone.
func (s Schedule) regular(now time.Time) State {
	if !s.compiled {
		return State{}
	}
	s.rules = slices.Clone(s.rules) // the clocks have caches, and goroutines may share a Schedule
	s.blackouts = s.blackoutsAround(now)
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

// closed completes the state of a closed policy. next is the time when the blackout in force
// changes.
func (s Schedule) closed(state State, now, next time.Time) State {
	opening := s.opening(now)
	state.OpensAt = inSight(now, opening)
	state.Next = timing.Earliest(next, visibleAt(now, opening))
	return state
}

// open completes the state of an open policy. next is the time when the name changes.
func open(state State, now, closing, next time.Time) State {
	state.Open = true
	state.ClosesAt = inSight(now, closing)
	state.Next = timing.Earliest(next, visibleAt(now, closing))
	return state
}

// urgently returns the state while spec.urgent.all is in force. Its openings and closings also
// depend on the schedule after that.
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

// across returns the end of a state. That is its own end if it comes before until, or until if the
// later schedule is in another state then, or else the end of the later state.
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

// inSight returns the instant if it is within the horizon, or zero.
func inSight(now, instant time.Time) time.Time {
	if instant.After(now.Add(horizon)) {
		return time.Time{}
	}
	return instant
}

// visibleAt returns the time when the instant changes the state: the instant itself, or the time
// when it comes within the horizon.
func visibleAt(now, instant time.Time) time.Time {
	if instant.After(now.Add(horizon)) {
		return instant.Add(-horizon)
	}
	return instant
}

// Below, the zero time means never.

// blackoutsAround resolves the blackouts that repeat every year, from before now until the first
// that begins after the horizon.
func (s Schedule) blackoutsAround(now time.Time) []span {
	if !slices.ContainsFunc(s.blackouts, func(b span) bool { return b.yearly != nil }) {
		return s.blackouts
	}
	var spans []span
	for _, b := range s.blackouts {
		if b.yearly == nil {
			spans = append(spans, b)
			continue
		}
		for year := now.Year() - 1; ; year++ {
			period := b.yearly(year)
			if !period.from.Before(period.to) {
				continue // a year without 29 February
			}
			if spans = append(spans, period); period.from.After(now.Add(horizon)) {
				break
			}
		}
	}
	return spans
}

// blackoutAt returns the index of the first blackout in force at t, or the number of blackouts.
func (s Schedule) blackoutAt(t time.Time) int {
	for i, b := range s.blackouts {
		if b.holds(t) {
			return i
		}
	}
	return len(s.blackouts)
}

// nextBlackout returns the start of the next of the first n blackouts after t.
func (s Schedule) nextBlackout(t time.Time, n int) time.Time {
	var next time.Time
	for _, b := range s.blackouts[:n] {
		if b.from.After(t) {
			next = timing.Earliest(next, b.from)
		}
	}
	return next
}

// ruleAt returns the index of the first window open at t, or the number of windows.
func (s Schedule) ruleAt(t time.Time) int {
	for i := range s.rules {
		if s.rules[i].openUntil(t).After(t) {
			return i
		}
	}
	return len(s.rules)
}

// nextStart returns the time when the next of the first n windows starts after t.
func (s Schedule) nextStart(t time.Time, n int) time.Time {
	var next time.Time
	for i := range s.rules[:n] {
		if start, ok := s.rules[i].nextStart(t); ok {
			next = timing.Earliest(next, start)
		}
	}
	return next
}

// opening returns the first instant from t on at which a window is open and no blackout is in
// force. Each blackout ends only once, and after it comes the end, another blackout, or a start. So
// the number of rounds is limited.
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

// closing returns the time when the windows that are open at t close, or the start of the blackout
// if that is earlier.
func (s Schedule) closing(t, blackout time.Time) time.Time {
	limit := timing.Earliest(blackout, t.Add(horizon))
	if end := covered(s.rules, t, limit); !end.After(limit) {
		return end
	}
	return blackout
}

// nextName returns the time when another window than the i-th, which is the first open one at t,
// gives the state its name.
func (s Schedule) nextName(t time.Time, i int) time.Time {
	limit := t.Add(horizon)
	next := s.nextStart(t, i)
	if end := covered(s.rules[i:i+1], t, limit); !end.After(limit) {
		return timing.Earliest(next, end)
	}
	return next
}

// covered returns the first instant from t on at which all of the windows are closed, or some
// instant after the limit. It stays with one window as long as only that one is open, so a daily
// window of 24h costs one step per day.
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
