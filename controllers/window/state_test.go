package window_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

func blackout(name, from, to, zone string) v1alpha1.Blackout {
	return v1alpha1.Blackout{Name: name, From: from, To: to, TimeZone: zone, Reason: "because of " + name}
}

// stateCase is a row of the tables of whole states. The instants of the policy and of now are in UTC.
type stateCase struct {
	windows   []v1alpha1.Window
	blackouts []v1alpha1.Blackout
	now       string
	want      window.State
}

// isOpen, isClosed and blackedOut are states, always one of a policy without windows. Their instants are in UTC; empty: none.
func isOpen(name, closes, next string) window.State {
	return window.State{Open: true, Name: name, ClosesAt: at(closes), Next: at(next)}
}

func isClosed(opens, next string) window.State {
	return window.State{OpensAt: at(opens), Next: at(next)}
}

func blackedOut(name, opens, next string) window.State {
	return window.State{Name: name, Blackout: true, BlackoutReason: "because of " + name, OpensAt: at(opens), Next: at(next)}
}

func always(s window.State) window.State {
	s.Always = true
	return s
}

func testStates(t *testing.T, cases map[string]stateCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := compile(t, tc.windows, tc.blackouts...).At(at(tc.now))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("At(%s) (-want +got):\n%s", tc.now, diff)
			}
		})
	}
}

func TestAt(t *testing.T) {
	nightly := []v1alpha1.Window{daily("22:00", "4h", "UTC")}
	// On Mondays a from 10:00 to 13:00, b from 9:00 to 11:00, c from 13:00 to 14:00.
	several := []v1alpha1.Window{
		daily("10:00", "3h", "UTC", named("a"), on("Mon")),
		daily("09:00", "2h", "UTC", named("b"), on("Mon")),
		daily("13:00", "1h", "UTC", named("c"), on("Mon")),
	}
	testStates(t, map[string]stateCase{
		"no windows are always open":        {now: "2026-06-01 12:00", want: always(isOpen("", "", ""))},
		"open in the middle (behaviour 30)": {windows: nightly, now: "2026-06-01 23:00", want: isOpen("w", "2026-06-02 02:00", "2026-06-02 02:00")},
		"open at the start":                 {windows: nightly, now: "2026-06-01 22:00", want: isOpen("w", "2026-06-02 02:00", "2026-06-02 02:00")},
		"closed a nanosecond before the start": {
			windows: nightly, now: "2026-06-01 21:59:59.999999999", want: isClosed("2026-06-01 22:00", "2026-06-01 22:00"),
		},
		"open a nanosecond before the end (behaviour 30)": {
			windows: nightly, now: "2026-06-02 01:59:59.999999999", want: isOpen("w", "2026-06-02 02:00", "2026-06-02 02:00"),
		},
		"closed at the end (behaviour 30)": {windows: nightly, now: "2026-06-02 02:00", want: isClosed("2026-06-02 22:00", "2026-06-02 22:00")},
		"closes with the union of windows that overlap and touch (behaviour 33)": {
			windows: several, now: "2026-06-01 09:30", want: isOpen("b", "2026-06-01 14:00", "2026-06-01 10:00"),
		},
		"the first in the list gives its name": {
			windows: several, now: "2026-06-01 10:30", want: isOpen("a", "2026-06-01 14:00", "2026-06-01 13:00"),
		},
		"the seam of windows that touch is open": {
			windows: several, now: "2026-06-01 13:00", want: isOpen("c", "2026-06-01 14:00", "2026-06-01 14:00"),
		},
		"opens with the earliest window": {windows: several, now: "2026-06-01 14:00", want: isClosed("2026-06-08 09:00", "2026-06-08 09:00")},
		"24 hours daily never close":     {windows: []v1alpha1.Window{daily("06:00", "24h", "UTC")}, now: "2026-06-01 06:00", want: isOpen("w", "", "")},
		"168 hours weekly never close": {
			windows: []v1alpha1.Window{daily("06:00", "168h", "UTC", on("Mon"))}, now: "2026-06-01 05:59", want: isOpen("w", "", ""),
		},
		"two windows of 12 hours never close, and take turns": {
			windows: []v1alpha1.Window{
				daily("06:00", "12h", "UTC", named("day")), daily("18:00", "12h", "UTC", named("night")),
			},
			now:  "2026-06-01 07:00",
			want: isOpen("day", "", "2026-06-01 18:00"),
		},
		"24 hours daily close where summer time ends": {
			windows: []v1alpha1.Window{daily("00:00", "24h", "Europe/Berlin")}, now: "2026-06-01 06:00",
			want: isOpen("w", "2026-10-25 22:00", "2026-10-25 22:00"),
		},
		"closed inside the gap until it ends": {
			windows: []v1alpha1.Window{daily("02:30", "1h", "America/New_York")}, now: "2026-03-08 06:59:59",
			want: isClosed("2026-03-08 07:00", "2026-03-08 07:00"),
		},
	})
}

// A caller that overlooks the error of Compile must not reboot anything.
func TestAt_ZeroScheduleIsClosed(t *testing.T) {
	if diff := cmp.Diff(window.State{}, window.Schedule{}.At(at("2026-06-01 12:00"))); diff != "" {
		t.Errorf("At of the zero Schedule (-want +got):\n%s", diff)
	}
}

// The answer depends on the instant alone: not on its zone, nor on what was asked before. So a clock that jumps back,
// and a new leader at the edge, get the same one.
func TestAt_DependsOnTheInstantAlone(t *testing.T) {
	windows := []v1alpha1.Window{daily("02:30", "30m", "Europe/Berlin", on("Sun"))}
	asked := compile(t, windows)
	tokyo := time.FixedZone("", 9*60*60)
	for _, now := range []string{"2026-03-29 01:10", "2026-10-25 00:40", "2026-03-29 01:00", "1890-01-01 00:00", "2026-03-29 01:30"} {
		t.Run(now, func(t *testing.T) {
			fresh := compile(t, windows)
			if diff := cmp.Diff(fresh.At(at(now)), asked.At(at(now).In(tokyo))); diff != "" {
				t.Errorf("fresh and asked before (-fresh +asked):\n%s", diff)
			}
		})
	}
}

// Goroutines may share a Schedule; the race detector watches.
func TestAt_Concurrently(t *testing.T) {
	t.Parallel()
	s := compile(t, []v1alpha1.Window{daily("02:30", "30m", "Europe/Berlin")}, blackout("b", "2026-03-29", "2026-04-01", ""))
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := range 100 {
				s.At(at("2026-01-01 00:00").AddDate(0, 0, i))
			}
		})
	}
}
