package kured

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// week is in the order in which kured numbers its days.
var week = []v1alpha1.Day{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// parseDays reads days in any of the ways that kured reads them: 0 to 6 from Sunday, su, sun, sunday. In the order of a
// week that begins on Monday; empty where none is named.
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
	return 0, fmt.Errorf("--reboot-days %q is no day that kured knows, such as mon", name)
}

func joinDays(days []v1alpha1.Day) string {
	names := make([]string, len(days))
	for i, d := range days {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}
