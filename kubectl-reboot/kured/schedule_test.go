package kured

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

func TestSchedule(t *testing.T) {
	weekend := []v1alpha1.Day{"Sat", "Sun"}
	for name, tc := range map[string]struct {
		args []string
		want []v1alpha1.Window
	}{
		"the defaults are always open":                {nil, nil},
		"the chart's last minute is always open, too": {[]string{"--start-time=0:00", "--end-time=23:59"}, nil},
		"every day by other names":                    {[]string{"--reboot-days=0,1,2,3,4,5,SATURDAY"}, nil},
		"whole days":                                  {[]string{"--reboot-days=sat,su"}, []v1alpha1.Window{makeWindow("kured", weekend, "00:00", "24h", "")}},
		"hours":                                       {[]string{"--start-time=9am", "--end-time=05:30pm", "--time-zone=Asia/Tokyo"}, []v1alpha1.Window{makeWindow("kured", nil, "09:00", "8h30m", "Asia/Tokyo")}},
		"an end with a second 59 is kept":             {[]string{"--start-time=1", "--end-time=2:59:59"}, []v1alpha1.Window{makeWindow("kured", nil, "01:00", "2h", "")}},
		"a start with seconds is later":               {[]string{"--start-time=1:00:01", "--end-time=2:00"}, []v1alpha1.Window{makeWindow("kured", nil, "01:01", "59m", "")}},
		"nights, every day":                           {[]string{"--start-time=22:00", "--end-time=4:00"}, []v1alpha1.Window{makeWindow("kured", nil, "22:00", "6h", "")}},
		"nights, on some days": {[]string{"--start-time=22:00", "--end-time=4:00", "--reboot-days=sa,su"}, []v1alpha1.Window{
			makeWindow("before-midnight", weekend, "22:00", "2h", ""), makeWindow("after-midnight", weekend, "00:00", "4h", ""),
		}},
		"evenings": {[]string{"--start-time=22:00", "--end-time=0:00", "--reboot-days=sa,su"}, []v1alpha1.Window{makeWindow("before-midnight", weekend, "22:00", "2h", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := convert(makeInstallation(tc.args...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.policy.Spec.Windows); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func makeWindow(name string, days []v1alpha1.Day, start, duration, zone string) v1alpha1.Window {
	w := v1alpha1.Window{Name: name, Days: days, Start: start, TimeZone: zone}
	var err error
	if w.Duration.Duration, err = time.ParseDuration(duration); err != nil {
		panic(err)
	}
	return w
}

func TestZone(t *testing.T) {
	for name, tc := range map[string]struct {
		zone, variable, want string
	}{
		"none":                         {"", "", ""},
		"UTC":                          {"UTC", "", ""},
		"a name":                       {"Europe/Berlin", "", "Europe/Berlin"},
		"the container's":              {"Local", "", ""},
		"the container's zone from TZ": {"Local", "Europe/Berlin", "Europe/Berlin"},
		"the container's zone from TZ with a colon": {"Local", ":UTC", ""},
		"an invalid TZ of the container":            {"Local", "CET-1CEST,M3.5.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := makeInstallation("--time-zone="+tc.zone, "--start-time=1:00")
			k.container.Env = append(k.container.Env, corev1.EnvVar{Name: "TZ", Value: tc.variable})
			c, err := convert(k)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.policy.Spec.Windows[0].TimeZone; got != tc.want {
				t.Errorf("zone %q, want %q", got, tc.want)
			}
			assumed := slices.ContainsFunc(c.report.open, func(l line) bool { return strings.Contains(l.how, "UTC is assumed") })
			if want := tc.zone == "Local" && tc.want == "" && tc.variable != ":UTC"; assumed != want {
				t.Errorf("UTC is reported to be assumed: %t, want %t", assumed, want)
			}
		})
	}
}

// kuredOpen is kured's own rule. The weekday must be one of the days, and the time of day must be
// between start and end, including the second of the end. If the end is before the start, times
// after the start or before the end match.
func kuredOpen(t time.Time, days []time.Weekday, start, end int) bool {
	now := t.Hour()*3600 + t.Minute()*60 + t.Second()
	if !slices.Contains(days, t.Weekday()) {
		return false
	}
	if start > end {
		return now >= start || now <= end
	}
	return now >= start && now <= end
}

// The windows must be open at the same times as kured's, except in the last minute if the end has
// no seconds.
func TestSchedule_IsKureds(t *testing.T) {
	zones := map[string]time.Time{
		"UTC":           time.Date(2026, 5, 31, 0, 0, 0, 0, time.UTC),
		"Europe/Berlin": time.Date(2026, 10, 4, 0, 0, 0, 0, load(t, "Europe/Berlin")), // two weeks without a clock change
	}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin"}).Draw(t, "zone")
		days := rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID[int]).Draw(t, "days")
		start, end := drawTime(t, "start"), drawTime(t, "end")
		args := []string{"--time-zone=" + zone, "--start-time=" + clockTime(start), "--end-time=" + clockTime(end)}
		var weekdays []time.Weekday
		for _, d := range days {
			args = append(args, fmt.Sprintf("--reboot-days=%d", d))
			weekdays = append(weekdays, time.Weekday(d))
		}
		c, err := convert(makeInstallation(args...))
		if err != nil {
			if !strings.Contains(err.Error(), "less than a minute a day") {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		schedule, err := window.Compile(c.policy.Spec.Windows, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 14 * 24 * 60 {
			now := zones[zone].Add(time.Duration(i) * time.Minute)
			got, want := schedule.At(now).Open, kuredOpen(now, weekdays, start, end)
			if last := now.Hour()*3600 + now.Minute()*60; want && last == end && end%60 != 59 && end != day-60 {
				continue // the second that is cut off
			}
			if got != want {
				t.Fatalf("at %s the windows are open: %t, kured: %t\n%+v", now, got, want, c.policy.Spec.Windows)
			}
		}
	})
}

func load(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// drawTime draws seconds since midnight, mostly whole minutes and often the ends of the day.
func drawTime(t *rapid.T, label string) int {
	return rapid.OneOf(
		rapid.SampledFrom([]int{0, 59, day - 1, day - 60, 12 * 3600}),
		rapid.Map(rapid.IntRange(0, 24*60-1), func(m int) int { return m * 60 }),
		rapid.Map(rapid.IntRange(0, 24*60-1), func(m int) int { return m*60 + 59 }),
		rapid.IntRange(0, day-1),
	).Draw(t, label)
}

func clockTime(seconds int) string {
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}
