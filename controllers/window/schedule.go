package window

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Schedule is the windows and blackouts of one policy, checked and with their zones loaded. It never changes, so
// goroutines may share it. The zero Schedule never opens: a caller that overlooks an error of Compile reboots nothing.
type Schedule struct {
	compiled  bool
	rules     []rule
	blackouts []span
	// urgency is the schedule of spec.urgent. Nil: there is none.
	urgency *urgency
}

// Zone is the time zone in which people read the policy's times: that of its first window. UTC where it has none.
func (s Schedule) Zone() *time.Location {
	if len(s.rules) == 0 {
		return time.UTC
	}
	return s.rules[0].clock.zone
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
