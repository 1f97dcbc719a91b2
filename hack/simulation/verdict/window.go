package verdict

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// mayGrant tells whether there is an instant in a stretch of time at which a policy may grant.
func mayGrant(spec *v1alpha1.RebootPolicySpec, from, to time.Time) bool {
	if spec.ModeOrDefault() == v1alpha1.ModeDryRun {
		return false
	}
	for at := to; !at.Before(from); at = at.Add(-time.Second) {
		paused := spec.Pause != nil && (spec.Pause.Until == nil || at.Before(spec.Pause.Until.Time))
		if !paused && isOpen(spec, at) {
			return true
		}
	}
	return false
}

// isOpen tells whether a window is open, and no blackout.
func isOpen(spec *v1alpha1.RebootPolicySpec, at time.Time) bool {
	for _, b := range spec.Blackouts {
		zone, err := time.LoadLocation(b.TimeZoneOrDefault())
		if day := at.In(zone).Format(time.DateOnly); err != nil || b.From <= day && day < b.To {
			return false
		}
	}
	if len(spec.Windows) == 0 {
		return true
	}
	return slices.ContainsFunc(spec.Windows, func(w v1alpha1.Window) bool { return isIn(w, at) })
}

// isIn looks for a day on which the window began and has not ended yet. weeksOfMonth is not known here.
func isIn(w v1alpha1.Window, at time.Time) bool {
	zone, err := time.LoadLocation(w.TimeZoneOrDefault())
	if err != nil {
		return false
	}
	local := at.In(zone)
	for back := range int(w.Duration.Hours()/24) + 3 {
		noon := time.Date(local.Year(), local.Month(), local.Day()-back, 12, 0, 0, 0, zone)
		if len(w.Days) > 0 && !slices.Contains(w.Days, v1alpha1.Day(noon.Format("Mon"))) {
			continue
		}
		begin, found := begins(noon, w.Start)
		if found && !at.Before(begin) && at.Before(begin.Add(w.Duration.Duration)) {
			return true
		}
	}
	return false
}

// begins is the first instant of a day at which the clocks show a time of day, or a later one.
func begins(noon time.Time, start string) (time.Time, bool) {
	clock, err := time.Parse("15:04", start)
	if err != nil {
		return time.Time{}, false
	}
	wanted := 60*clock.Hour() + clock.Minute()
	for at := noon.Add(-15 * time.Hour); at.Before(noon.Add(15 * time.Hour)); at = at.Add(time.Minute) {
		if at.Day() == noon.Day() && 60*at.Hour()+at.Minute() >= wanted {
			return at, true
		}
	}
	return time.Time{}, false
}
