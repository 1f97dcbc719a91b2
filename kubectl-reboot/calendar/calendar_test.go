package calendar_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

func windows(list ...v1alpha1.Window) func(*v1alpha1.RebootPolicy) {
	return Spec(func(s *v1alpha1.RebootPolicySpec) { s.Windows = append(s.Windows, list...) })
}

func window(name, start string, hours int, zone string, days ...v1alpha1.Day) v1alpha1.Window {
	return v1alpha1.Window{
		Name: name, Start: start, Days: days, TimeZone: zone, Duration: v1alpha1.Duration{Duration: time.Duration(hours) * time.Hour},
	}
}

func blackout(name, from, to, reason string) func(*v1alpha1.RebootPolicy) {
	return Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Blackouts = append(s.Blackouts, v1alpha1.Blackout{Name: name, From: from, To: to, TimeZone: "Europe/Berlin", Reason: reason})
	})
}

func paused(until *metav1.Time) func(*v1alpha1.RebootPolicy) {
	return Spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{Reason: "Black Friday", Until: until} })
}

func day(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestLines(t *testing.T) {
	const berlin = "Europe/Berlin"
	cases := map[string]struct {
		policy v1alpha1.RebootPolicy
		now    time.Time
		next   int
		look   terminal.Look
	}{
		"weeknights":      {Policy("w", Weeknights, blackout("freeze", "2026-11-26", "2026-12-01", "Black Friday")), Now, 5, terminal.Look{Width: 80}},
		"weeknights-wide": {Policy("w", Weeknights, blackout("freeze", "2026-11-26", "2026-12-01", "Black Friday")), Now, 5, terminal.Look{Wide: true}},
		"colour":          {Policy("w", Weeknights, blackout("freeze", "2026-11-26", "2026-12-01", "")), Now, 5, terminal.Look{Width: 120, Theme: terminal.Theme{Color: true}}},
		"open-now":        {Policy("w", Weeknights), Now.Add(8 * time.Hour), 2, terminal.Look{}},
		"clocks-forward": {
			Policy("w", windows(window("skipped", "02:30", 1, berlin), window("across", "23:00", 5, berlin, "Sat"))), day("2026-03-28"), 3, terminal.Look{},
		},
		"clocks-back": {
			Policy("w", windows(window("twice", "02:30", 1, berlin), window("across", "23:00", 3, berlin, "Sat"))), day("2026-10-24"), 3, terminal.Look{},
		},
		"skipped-start": {Policy("w", windows(window("early", "02:30", 1, berlin))), day("2026-03-28"), 2, terminal.Look{}},
		"second-of-a-zone": {
			Policy("w", windows(window("first", "22:00", 1, berlin, "Mon"), window("skipped", "02:30", 1, berlin, "Sun"))), day("2026-03-28"), 1, terminal.Look{},
		},
		"second-is-not-skipped": {
			Policy("w", windows(window("first", "22:00", 1, berlin, "Mon"), window("after", "03:00", 1, berlin, "Sun"))), day("2026-03-28"), 1, terminal.Look{},
		},
		"second-comes-twice": {
			Policy("w", windows(window("first", "22:00", 1, berlin, "Mon"), window("twice", "02:30", 1, berlin, "Sun"))), day("2026-10-24"), 1, terminal.Look{},
		},
		"two-zones":            {Policy("w", windows(window("berlin", "22:00", 2, berlin), window("auckland", "22:00", 2, "Pacific/Auckland"))), Now, 4, terminal.Look{}},
		"union":                {Policy("w", windows(window("early", "20:00", 2, ""), window("late", "21:00", 4, ""), window("touches", "01:00", 1, ""))), Now, 2, terminal.Look{}},
		"blackout-cuts":        {Policy("w", Weeknights, blackout("freeze", "2026-11-24", "2026-11-25", "")), Now, 2, terminal.Look{}},
		"always":               {Policy("w"), Now, 10, terminal.Look{}},
		"always-with-blackout": {Policy("w", blackout("freeze", "2026-12-19", "2027-01-04", "year end")), Now, 10, terminal.Look{Zone: time.UTC}},
		"all-day-every-day":    {Policy("w", windows(window("daily", "00:00", 24, ""))), Now, 3, terminal.Look{}},
		"halted":               {Policy("w", Halted("2 nodes failed"), paused(nil)), Now, 10, terminal.Look{}},
		"dry-run":              {Policy("w", Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })), Now, 1, terminal.Look{}},
		"paused":               {Policy("w", paused(nil)), Now, 10, terminal.Look{}},
		"paused-until":         {Policy("w", paused(new(Ago(-20*time.Hour))), Weeknights), Now, 2, terminal.Look{Width: 80, Zone: time.UTC}},
		"paused-no-longer":     {Policy("w", paused(new(Ago(time.Hour)))), Now, 10, terminal.Look{}},
		"never":                {Policy("w", windows(window("rare", "00:00", 1, "")), blackout("for-good", "2020-01-01", "2200-01-01", "")), Now, 3, terminal.Look{}},
		"invalid":              {Policy("w", windows(window("here", "00:00", 1, "Local"))), Now, 3, terminal.Look{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lines := calendar.Of(&tc.policy, tc.now, tc.next).Lines(tc.look, tc.now)
			terminaltest.Golden(t, name, lines)
			if tc.look.Width > 0 && !tc.look.Theme.Color {
				terminaltest.Fits(t, tc.look.Width, lines)
			}
		})
	}
}
