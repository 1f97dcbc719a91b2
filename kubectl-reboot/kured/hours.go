package kured

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

const (
	minute = 60
	day    = 24 * 60 * minute
)

// hours are a stretch of the day in seconds since midnight: from is included, to is not. Overnight, to is before from.
type hours struct {
	from, to  int
	overnight bool
	// cut reports that the last second, which kured includes, is left out.
	cut bool
	// rounded reports that 23:59 was taken for the end of the day.
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

// windows are the same as the hours on the days. None: always open.
func (h hours) windows(days []v1alpha1.Day, zone string) []v1alpha1.Window {
	everyDay := len(days) == len(week)
	if everyDay {
		days = nil
	}
	window := func(name string, from, seconds int) v1alpha1.Window {
		return v1alpha1.Window{
			Name: name, Days: days, TimeZone: zone, Start: fmt.Sprintf("%02d:%02d", from/3600, from/minute%60),
			Duration: metav1.Duration{Duration: time.Duration(seconds) * time.Second},
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

// parseTime reads a time of day in any of the ways that kured reads it, in seconds since midnight.
func parseTime(name, text string) (int, error) {
	for _, layout := range []string{"15:04", "15:04:05", "03:04pm", "15", "03pm", "3pm"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Hour()*3600 + t.Minute()*minute + t.Second(), nil
		}
	}
	return 0, fmt.Errorf("%s %q is no time of day that kured knows, such as 22:00 or 10pm", name, text)
}
