package kured

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

// schedule converts kured's window, which is open on certain weekdays between a start and an end
// time, both included. A policy's window has days on which it starts, and a duration.
func schedule(c *conversion) error {
	days, err := parseDays(c.flags.days)
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

// carryHours reports all flags of the schedule that are set, or that none is.
func carryHours(c *conversion, how string) {
	reported := false
	for _, name := range []string{"start-time", "end-time", "reboot-days", "time-zone"} {
		if c.isSet(name) {
			c.carried(name, how)
			reported = true
		}
	}
	if !reported {
		c.report.carry("--reboot-days, --start-time and --end-time are not set", how)
	}
}

// commentNights adds a comment if the window crosses midnight on some days only, because kured
// splits such a night in two.
func commentNights(c *conversion, hours hours, windows []v1alpha1.Window, everyDay bool) {
	if !hours.overnight || hours.to == 0 || everyDay {
		return
	}
	c.comments["windows"] = []string{
		"kured checks the weekday of the current moment, so the hours before and after midnight are",
		"separate windows, on the same days. If you meant nights that begin on these days, use one window:",
		fmt.Sprintf("{name: nights, days: [%s], start: %q, duration: %s, timeZone: %s}",
			message.Names(windows[0].Days, len(week)), windows[0].Start, moment.Short(hours.length()), windows[0].TimeZoneOrDefault()),
	}
	c.report.leave("the hours cross midnight",
		"kured checks the weekday of the current moment, so the hours after midnight belong to the next day. The windows do the same; "+
			"if you meant nights that begin on these days, take the one window of the comment")
}

func clockChanges(c *conversion, zone string) {
	if zone != "" {
		c.report.carry("zone "+zone, "a window lasts for its duration, even if clocks change, so on such a day it may end an hour earlier or later than kured's")
	}
}

// week is in the order in which kured numbers its days.
var week = []v1alpha1.Day{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// parseDays parses days in every form that kured accepts: 0 to 6 from Sunday, su, sun or sunday. It
// returns them in order from Monday on.
func parseDays(names []string) ([]v1alpha1.Day, error) {
	var named [7]bool
	for _, name := range names {
		if name == "" {
			continue
		}
		i, err := dayNumber(name)
		if err != nil {
			return nil, err
		}
		named[i] = true
	}
	var days []v1alpha1.Day
	for i := range week {
		if n := (i + 1) % len(week); named[n] {
			days = append(days, week[n])
		}
	}
	return days, nil
}

func dayNumber(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(week) {
		return n, nil
	}
	for n := range week {
		full := time.Weekday(n).String()
		if lower := strings.ToLower(name); strings.EqualFold(name, full) || lower == strings.ToLower(full[:3]) || lower == strings.ToLower(full[:2]) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("--reboot-days %q is not a day that kured knows, such as mon", name)
}

// zoneName matches the time zones that a RebootPolicy accepts.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

// windowZone returns the time zone of the windows, or "" for UTC.
func windowZone(c *conversion) (string, error) {
	name := c.flags.zone
	if name == "Local" {
		return localZone(c), nil
	}
	if _, err := time.LoadLocation(name); err != nil {
		return "", fmt.Errorf("--time-zone %q is not a time zone, so kured does not start", name)
	}
	if name == "" || name == "UTC" {
		return "", nil
	}
	if !zoneName.MatchString(name) || len(name) > 64 {
		return "", fmt.Errorf("--time-zone %q: a policy takes names such as Europe/Berlin; give the zone by such a name", name)
	}
	return name, nil
}

// localZone returns the container's time zone: UTC, unless its variable TZ or a file of the host
// says otherwise.
func localZone(c *conversion) string {
	name := strings.TrimPrefix(c.kured.variables().values["TZ"], ":")
	if _, err := time.LoadLocation(name); err == nil && zoneName.MatchString(name) {
		c.report.carry("--time-zone=Local", "timeZone "+name+", from the container's variable TZ")
		if name == "UTC" { // the default
			return ""
		}
		return name
	}
	c.report.leave("--time-zone=Local",
		"UTC is assumed, which is the zone of kured's image. If the pod has the host's /etc/localtime, give the windows its timeZone")
	return ""
}

const (
	minute = 60
	day    = 24 * 60 * minute
)

// hours is a part of the day in seconds since midnight, from from (included) to to (excluded). If
// overnight, to is less than from.
type hours struct {
	from, to  int
	overnight bool
	// cut means that the last second, which kured includes, is left out.
	cut bool
	// rounded means that 23:59 was taken for the end of the day.
	rounded bool
}

func parseHours(start, end string) (hours, error) {
	from, err := parseTime("--start-time", start)
	if err != nil {
		return hours{}, err
	}
	last, err := parseTime("--end-time", end)
	if err != nil {
		return hours{}, err
	}
	h := hours{from: (from + minute - 1) / minute * minute, to: last, overnight: from > last}
	switch {
	case last == day-minute:
		h.to, h.rounded = day, true
	case last%minute == minute-1:
		h.to = last + 1
	default:
		h.cut = true
	}
	if h.length() < minute*time.Second || h.from == day {
		return h, fmt.Errorf("--start-time %s and --end-time %s leave less than a minute a day, in which kured almost never looks: correct them first", start, end)
	}
	return h, nil
}

func (h hours) length() time.Duration {
	seconds := h.to - h.from
	if h.overnight {
		seconds += day
	}
	return time.Duration(seconds) * time.Second
}

func (h hours) describe(windows []v1alpha1.Window) string {
	each := make([]string, len(windows))
	for i, w := range windows {
		each[i] = fmt.Sprintf("%s from %s for %s", w.Name, w.Start, moment.Short(w.Duration.Duration))
	}
	how := "windows: " + strings.Join(each, ", ")
	switch {
	case h.rounded:
		how += ". 23:59 is taken for the end of the day"
	case h.cut:
		how += ". The end is exclusive: kured's is one second later"
	}
	return how
}

// windows returns windows for the hours on the given days, or nil if they are always open.
func (h hours) windows(days []v1alpha1.Day, zone string) []v1alpha1.Window {
	everyDay := len(days) == len(week)
	if everyDay {
		days = nil
	}
	window := func(name string, from, seconds int) v1alpha1.Window {
		return v1alpha1.Window{
			Name: name, Days: days, TimeZone: zone, Start: fmt.Sprintf("%02d:%02d", from/3600, from/minute%60),
			Duration: v1alpha1.Duration{Duration: time.Duration(seconds) * time.Second},
		}
	}
	switch {
	case everyDay && h.from == 0 && h.to == day:
		return nil
	case !h.overnight || everyDay:
		return []v1alpha1.Window{window(program, h.from, int(h.length()/time.Second))}
	case h.to == 0:
		return []v1alpha1.Window{window("before-midnight", h.from, day-h.from)}
	}
	return []v1alpha1.Window{window("before-midnight", h.from, day-h.from), window("after-midnight", 0, h.to)}
}

// parseTime parses a time of day in every form that kured accepts, and returns the seconds since
// midnight.
func parseTime(name, text string) (int, error) {
	for _, layout := range []string{"15:04", "15:04:05", "03:04pm", "15", "03pm", "3pm"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Hour()*3600 + t.Minute()*minute + t.Second(), nil
		}
	}
	return 0, fmt.Errorf("%s %q is not a time of day that kured knows, such as 22:00 or 10pm", name, text)
}
