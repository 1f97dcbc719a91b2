package moment_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

func TestAt(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 23, 16, 48, 0, 0, berlin)
	cases := map[string]time.Time{
		"22:00 CET":                 time.Date(2026, 11, 23, 22, 0, 0, 0, berlin),
		"00:30 CET":                 time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC), // today in Berlin, yesterday in London
		"Tue 04:00 CET":             time.Date(2026, 11, 24, 4, 0, 0, 0, berlin),
		"Sun 09:05 CET":             time.Date(2026, 11, 22, 9, 5, 0, 0, berlin),
		"Mon 30 Nov 22:00 CET":      time.Date(2026, 11, 30, 22, 0, 0, 0, berlin), // a Monday too: only the date tells them apart
		"Mon 4 Jan 2027 00:00 CET":  time.Date(2027, 1, 4, 0, 0, 0, 0, berlin),
		"Tue 23 Nov 2027 16:48 CET": now.AddDate(1, 0, 0),
	}
	for want, instant := range cases {
		if got := moment.At(instant, now, berlin); got != want {
			t.Errorf("At(%v) is %q, want %q", instant, got, want)
		}
	}
	if got, want := moment.Exact(now, time.UTC), "Mon 2026-11-23 15:48:00 UTC"; got != want {
		t.Errorf("Exact is %q, want %q", got, want)
	}
}

func TestLocal(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for sentence, want := range map[string]string{
		"The drain may take until Sat 2026-11-21 15:45:30 UTC; then it ends.": "The drain may take until Sat 2026-11-21 16:45:30 CET; then it ends.",
		"scheduled for 2026-07-21 23:00:00 UTC: shutdown -c":                  "scheduled for Wed 2026-07-22 01:00:00 CEST: shutdown -c",
		"may start Mon 2026-11-23 22:00:00 EST":                               "may start Mon 2026-11-23 22:00:00 EST",
		"build 2026-11-21 99:45:30 UTC":                                       "build 2026-11-21 99:45:30 UTC",
		"nothing":                                                             "nothing",
	} {
		if got := moment.Local(sentence, berlin); got != want {
			t.Errorf("%q is %q, want %q", sentence, got, want)
		}
	}
}

func TestEnds_HaveSecondsWithinOneMinute(t *testing.T) {
	now := time.Date(2026, 11, 23, 16, 48, 0, 0, time.UTC)
	start := time.Date(2026, 11, 23, 22, 0, 5, 0, time.UTC)
	for took, want := range map[time.Duration]string{
		40 * time.Second:             "22:00:05 UTC to 22:00:45 UTC",
		time.Minute:                  "22:00 UTC to 22:01 UTC",
		56 * time.Second:             "22:00 UTC to 22:01 UTC",
		2*time.Hour + 40*time.Second: "22:00 UTC to Tue 00:00 UTC",
	} {
		from, to := moment.Ends(start, start.Add(took), now, time.UTC)
		if got := from + " to " + to; got != want {
			t.Errorf("%s: %q, want %q", took, got, want)
		}
	}
	if from, to := moment.Ends(start.AddDate(0, 0, 1), start.AddDate(0, 0, 1), now, time.UTC); from != "Tue 22:00:05 UTC" || to != "22:00:05 UTC" {
		t.Errorf("tomorrow: %q to %q", from, to)
	}
}

func TestSpanAndUntil(t *testing.T) {
	now := time.Date(2026, 11, 23, 16, 48, 0, 0, time.UTC)
	cases := map[time.Duration]struct{ span, until string }{
		0:                            {"0s", "now"},
		-time.Hour:                   {"0s", "now"},
		48 * time.Second:             {"48s", "in 48s"},
		5*time.Hour + 12*time.Minute: {"5h12m", "in 5h12m"},
		53 * time.Hour:               {"2d5h", "in 2d5h"},
	}
	for d, want := range cases {
		if got := moment.Span(d); got != want.span {
			t.Errorf("Span(%v) is %q, want %q", d, got, want.span)
		}
		if got := moment.Until(now.Add(d), now); got != want.until {
			t.Errorf("Until(%v) is %q, want %q", d, got, want.until)
		}
	}
}

func TestLength(t *testing.T) {
	cases := map[time.Duration]string{
		90 * time.Second: "1m30s", 30 * time.Minute: "30m", 6 * time.Hour: "6h", 90 * time.Minute: "1h30m", 24 * time.Hour: "24h",
		120 * time.Hour: "5d", 121 * time.Hour: "121h", 10 * time.Second: "10s", 0: "0s", 20 * time.Minute: "20m", time.Hour + time.Second: "1h0m1s",
	}
	for d, want := range cases {
		if got := moment.Length(d); got != want {
			t.Errorf("Length(%v) is %q, want %q", d, got, want)
		}
	}
}
