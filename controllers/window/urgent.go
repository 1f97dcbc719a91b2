package window

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// UrgentName is the name of the window that spec.urgent opens.
const UrgentName = "urgent"

// urgency is the schedule that holds until an instant.
type urgency struct {
	until    time.Time
	schedule Schedule
}

// Of compiles the windows and blackouts of a policy, and what spec.urgent ignores of them. An error in one that is ignored is
// an error, too.
func Of(spec *v1alpha1.RebootPolicySpec) (Schedule, error) {
	schedule, err := Compile(spec.Windows, spec.Blackouts)
	if err != nil || spec.Urgent == nil {
		return schedule, err
	}
	other := Schedule{compiled: true, rules: schedule.rules, blackouts: schedule.blackouts}
	if slices.Contains(spec.Urgent.Ignore, v1alpha1.UrgentIgnoresWindows) {
		other.rules = nil
	}
	if slices.Contains(spec.Urgent.Ignore, v1alpha1.UrgentIgnoresBlackouts) {
		other.blackouts = nil
	}
	schedule.urgency = &urgency{until: spec.Urgent.Until.UTC(), schedule: other}
	return schedule, nil
}

// urgently is the state while spec.urgent is in force. Its openings and closings take the schedule after it into account.
func (s Schedule) urgently(now time.Time) State {
	until, after := s.urgency.until, s.regular(s.urgency.until)
	state := s.urgency.schedule.regular(now)
	state.Always = len(s.rules) == 0
	if state.Open {
		state.Urgent = true
		if state.Name == "" {
			state.Name = UrgentName
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
