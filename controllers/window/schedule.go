package window

import (
	"fmt"
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
	rules, err := compileWindows(windows, zones)
	if err != nil {
		return Schedule{}, err
	}
	spans, err := compileBlackouts(blackouts, zones)
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{compiled: true, rules: rules, blackouts: spans}, nil
}

func compileWindows(windows []v1alpha1.Window, zones zones) ([]rule, error) {
	rules, seen := make([]rule, 0, len(windows)), names{}
	for _, w := range windows {
		if err := seen.add(w.Name); err != nil {
			return nil, fmt.Errorf("window %q: %w", w.Name, err)
		}
		r, err := compileRule(w, zones)
		if err != nil {
			return nil, fmt.Errorf("window %q: %w", w.Name, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func compileBlackouts(blackouts []v1alpha1.Blackout, zones zones) ([]span, error) {
	spans, seen := make([]span, 0, len(blackouts)), names{}
	for _, b := range blackouts {
		if err := seen.add(b.Name); err != nil {
			return nil, fmt.Errorf("blackout %q: %w", b.Name, err)
		}
		s, err := compileBlackout(b, zones)
		if err != nil {
			return nil, fmt.Errorf("blackout %q: %w", b.Name, err)
		}
		if s.from.Before(s.to) { // otherwise its zone skipped all its dates
			spans = append(spans, s)
		}
	}
	return spans, nil
}
