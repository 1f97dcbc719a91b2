package kured

import (
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// schedule: kured's window is open while this very moment's weekday is one of the days and its time of day lies between
// start and end, both included. A window of a policy starts on its days and lasts.
func schedule(c *conversion) error {
	days, err := parseDays(c.flags.days.values)
	if err != nil {
		return err
	}
	hours, err := parseHours(c.flags.start, c.flags.end)
	if err != nil {
		return err
	}
	zone, err := windowZone(c)
	if err != nil {
		return err
	}
	windows := hours.windows(days, zone)
	c.policy.Spec.Windows = windows
	switch {
	case len(days) == 0:
		c.policy.Spec.Windows = nil
		c.policy.Spec.Pause = &v1alpha1.Pause{Reason: "kured had no day on which it might reboot: --reboot-days was empty"}
		carryHours(c, "pause: without a day kured never reboots")
	case len(windows) == 0:
		carryHours(c, "no windows: always open")
	default:
		carryHours(c, hours.describe(windows))
		commentNights(c, hours, windows, len(days) == len(week))
		clockChanges(c, zone)
	}
	return nil
}

// carryHours reports what became of all flags of the schedule that are set, or of none.
func carryHours(c *conversion, how string) {
	reported := false
	for _, name := range []string{"start-time", "end-time", "reboot-days", "time-zone"} {
		if c.isSet(name) {
			c.carried(name, how)
			reported = true
		}
	}
	if !reported {
		c.report.carried = append(c.report.carried, line{"--reboot-days, --start-time and --end-time are not set", how})
	}
}

// commentNights: a window that crosses midnight, on some days only, is in two halves at kured's.
func commentNights(c *conversion, hours hours, windows []v1alpha1.Window, everyDay bool) {
	if !hours.overnight || hours.to == 0 || everyDay {
		return
	}
	c.comments["windows"] = []string{
		"kured asks for the weekday of this very moment: the hours before midnight and those after it each stand by",
		"themselves, on the same days. If you meant nights that begin on these days, one window says so:",
		fmt.Sprintf("{name: nights, days: [%s], start: %q, duration: %s, timeZone: %s}",
			joinDays(windows[0].Days), windows[0].Start, short(hours.length()), windows[0].TimeZoneOrDefault()),
	}
	c.report.open = append(c.report.open, line{
		"the hours cross midnight",
		"kured's weekdays are those of the moment, so that the small hours of a night belong to the day they fall on. The windows do the same; " +
			"if you meant nights that begin on these days, take the one window of the comment",
	})
}

func clockChanges(c *conversion, zone string) {
	if zone != "" {
		c.report.carried = append(c.report.carried, line{
			"zone " + zone, "a window lasts for its duration, also when clocks change: on such a day it may end an hour beside kured's",
		})
	}
}
