package window_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

func blackout(name, from, to, zone string) v1alpha1.Blackout {
	return v1alpha1.Blackout{Name: name, From: from, To: to, TimeZone: zone, Reason: "because of " + name}
}

// stateCase is a row of the tables of states. The times of the policy and of now are in UTC.
type stateCase struct {
	windows   []v1alpha1.Window
	blackouts []v1alpha1.Blackout
	now       string
	want      window.State
}

// isOpen, isClosed and blackedOut return states of a policy with windows. Their times are in UTC,
// or empty for none.
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

// The state depends only on the instant, and not on its zone or on earlier calls. So a clock that
// jumps back or a new leader gets the same state.
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

// Goroutines may share a Schedule. The race detector checks that.
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

// Windows that touch or overlap each other or themselves.
func TestAt_Union(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		"daily window of 24h is closed in the 25th hour": {
			daily("00:00", "24h", "Europe/Berlin"), "2026-10-20 12:00", "2026-10-27 12:00",
			[]open{{from: "2026-10-20 12:00", to: "2026-10-25 22:00"}, {from: "2026-10-25 23:00", to: "2026-10-27 12:00"}},
		},
		"daily window of 24h overlaps itself on the day of 23h": {
			daily("00:00", "24h", "Europe/Berlin"), "2026-03-27 12:00", "2026-03-31 12:00",
			[]open{{from: "2026-03-27 12:00", to: "2026-03-31 12:00"}},
		},
		"week of 168h is closed in the 169th hour": {
			daily("00:00", "168h", "Europe/Berlin", on("Mon")), "2026-10-20 00:00", "2026-11-01 00:00",
			[]open{{from: "2026-10-20 00:00", to: "2026-10-25 22:00"}, {from: "2026-10-25 23:00", to: "2026-11-01 00:00"}},
		},
		"week of 168h lasts into the ninth date where summer time begins": {
			daily("23:30", "168h", "Europe/Berlin", on("Sat"), weeks(-1)), "2026-03-28 00:00", "2026-04-25 00:00",
			[]open{{from: "2026-03-28 22:30", to: "2026-04-04 22:30"}},
		},
		"fractions of a second": {
			daily("06:00", "1500ms", "UTC"), "2026-01-01 00:00", "2026-01-02 00:00", []open{{from: "2026-01-01 06:00", to: "2026-01-01 06:00:01.5"}},
		},
	})
}

// Blackouts win over windows. They last from midnight to midnight of their zone, and end before
// their last date.
func TestAt_Blackouts(t *testing.T) {
	nightly := []v1alpha1.Window{daily("22:00", "4h", "UTC")}
	freeze := []v1alpha1.Blackout{blackout("freeze", "2026-12-19", "2027-01-04", "UTC")}
	overlapping := []v1alpha1.Blackout{
		blackout("late", "2026-06-05", "2026-06-10", "UTC"),
		blackout("early", "2026-06-01", "2026-06-07", "UTC"),
		blackout("touching", "2026-06-10", "2026-06-12", "UTC"),
	}
	testStates(t, map[string]stateCase{
		"one that begins inside a window cuts it": {
			windows: nightly, blackouts: freeze, now: "2026-12-18 22:30", want: isOpen("w", "2026-12-19 00:00", "2026-12-19 00:00"),
		},
		"one in force closes an open window": {
			windows: nightly, blackouts: freeze, now: "2026-12-19 00:00", want: blackedOut("freeze", "2027-01-04 00:00", "2027-01-04 00:00"),
		},
		"one that ends inside a window leaves the rest": {
			windows: nightly, blackouts: freeze, now: "2027-01-04 00:00", want: isOpen("w", "2027-01-04 02:00", "2027-01-04 02:00"),
		},
		"one that ends outside the windows opens with the next": {
			windows: []v1alpha1.Window{daily("08:00", "1h", "UTC")}, blackouts: freeze, now: "2026-12-24 18:00",
			want: blackedOut("freeze", "2027-01-04 08:00", "2027-01-04 00:00"),
		},
		"one that begins while closed changes the state": {
			windows: nightly, blackouts: freeze, now: "2026-12-18 12:00", want: isClosed("2026-12-18 22:00", "2026-12-18 22:00"),
		},
		"one that begins before the next window": {
			windows: []v1alpha1.Window{daily("08:00", "1h", "UTC")}, blackouts: freeze, now: "2026-12-18 12:00",
			want: isClosed("2027-01-04 08:00", "2026-12-19 00:00"),
		},
		"no windows are open until one begins": {
			blackouts: freeze, now: "2026-12-18 12:00", want: always(isOpen("", "2026-12-19 00:00", "2026-12-19 00:00")),
		},
		"no windows are closed while one is in force": {
			blackouts: freeze, now: "2026-12-20 12:00", want: always(blackedOut("freeze", "2027-01-04 00:00", "2027-01-04 00:00")),
		},
		"no windows are open for good after the last": {blackouts: freeze, now: "2027-01-04 00:00", want: always(isOpen("", "", ""))},
		"several open with the end of their union": {
			blackouts: overlapping, now: "2026-06-02 00:00", want: always(blackedOut("early", "2026-06-12 00:00", "2026-06-05 00:00")),
		},
		"of several the first in the list gives its name": {
			blackouts: overlapping, now: "2026-06-06 00:00", want: always(blackedOut("late", "2026-06-12 00:00", "2026-06-10 00:00")),
		},
		// Havana skipped midnight, so the 8th began at 1:00, which is 05:00Z. On 1 November
		// midnight was repeated.
		"first date begins after the gap": {
			blackouts: []v1alpha1.Blackout{blackout("b", "2026-03-08", "2026-11-01", "America/Havana")}, now: "2026-03-08 04:59",
			want: always(isOpen("", "2026-03-08 05:00", "2026-03-08 05:00")),
		},
		"last date begins with the first of two midnights": {
			blackouts: []v1alpha1.Blackout{blackout("b", "2026-03-08", "2026-11-01", "America/Havana")}, now: "2026-03-08 05:00",
			want: always(blackedOut("b", "2026-11-01 04:00", "2026-11-01 04:00")),
		},
		"begins with the date, not with the evening that Beirut repeats": {
			blackouts: []v1alpha1.Blackout{blackout("b", "2026-10-25", "2026-10-26", "Asia/Beirut")}, now: "2026-10-24 21:30",
			want: always(isOpen("", "2026-10-24 22:00", "2026-10-24 22:00")),
		},
		"none on the date that Samoa skipped": {
			blackouts: []v1alpha1.Blackout{blackout("b", "2011-12-30", "2011-12-31", "Pacific/Apia")}, now: "2011-12-30 09:59",
			want: always(isOpen("", "", "")),
		},
		"one of a year and more hides the opening until it is in sight": {
			blackouts: []v1alpha1.Blackout{blackout("b", "2026-01-01", "2028-01-01", "UTC")}, now: "2026-02-01 00:00",
			want: always(blackedOut("b", "", "2026-11-27 00:00")), // 400 days before the end
		},
		"the opening is in sight 400 days before": {
			blackouts: []v1alpha1.Blackout{blackout("b", "2026-01-01", "2028-01-01", "UTC")}, now: "2026-11-27 00:00",
			want: always(blackedOut("b", "2028-01-01 00:00", "2028-01-01 00:00")),
		},
		"one in the far future hides the closing until it is in sight": {
			blackouts: []v1alpha1.Blackout{blackout("b", "9998-01-01", "9999-12-31", "UTC")}, now: "2026-02-01 00:00",
			want: always(isOpen("", "", "9996-11-27 00:00")),
		},
		"one to the end of all dates": {
			windows:   nightly,
			blackouts: []v1alpha1.Blackout{blackout("b", "0000-01-01", "9999-12-31", "America/New_York")}, now: "2026-02-01 00:00",
			want: blackedOut("b", "", "9998-11-26 22:00"), // 400 days before the first window after it
		},
		"one far ahead of a window that is open for good": {
			windows:   []v1alpha1.Window{daily("06:00", "24h", "UTC")},
			blackouts: []v1alpha1.Blackout{blackout("b", "2028-01-01", "2028-02-01", "UTC")}, now: "2026-02-01 00:00",
			want: isOpen("w", "", "2026-11-27 00:00"),
		},
		"one ahead in sight of a window that is open for good": {
			windows:   []v1alpha1.Window{daily("06:00", "24h", "UTC")},
			blackouts: []v1alpha1.Blackout{blackout("b", "2026-05-01", "2028-02-01", "UTC")}, now: "2026-02-01 00:00",
			want: isOpen("w", "2026-05-01 00:00", "2026-05-01 00:00"),
		},
	})
}

// Blackouts without a year are the same every year.
func TestAt_YearlyBlackouts(t *testing.T) {
	christmas := []v1alpha1.Blackout{blackout("christmas", "12-20", "01-06", "Europe/Berlin")}
	yearly := func(from, to string) []v1alpha1.Blackout { return []v1alpha1.Blackout{blackout("b", from, to, "")} }
	testStates(t, map[string]stateCase{
		"begins this year": {
			blackouts: christmas, now: "2026-12-01 00:00", want: always(isOpen("", "2026-12-19 23:00", "2026-12-19 23:00")),
		},
		"ends next year": {
			blackouts: christmas, now: "2026-12-19 23:00", want: always(blackedOut("christmas", "2027-01-05 23:00", "2027-01-05 23:00")),
		},
		"began last year": {
			blackouts: christmas, now: "2031-01-01 00:00", want: always(blackedOut("christmas", "2031-01-05 23:00", "2031-01-05 23:00")),
		},
		"begins again after its end": {
			blackouts: christmas, now: "2031-01-05 23:00", want: always(isOpen("", "2031-12-19 23:00", "2031-12-19 23:00")),
		},
		"with a window that opens after it": {
			windows: []v1alpha1.Window{daily("08:00", "1h", "UTC")}, blackouts: christmas, now: "2026-12-24 18:00",
			want: blackedOut("christmas", "2027-01-06 08:00", "2027-01-05 23:00"),
		},
		"on a leap day in a leap year": {
			blackouts: yearly("02-29", "03-01"), now: "2028-02-29 12:00", want: always(blackedOut("b", "2028-03-01 00:00", "2028-03-01 00:00")),
		},
		"on a leap day in another year, which has none: until the next is in sight": {
			blackouts: yearly("02-29", "03-01"), now: "2029-02-28 12:00", want: always(isOpen("", "", "2031-01-25 00:00")),
		},
		"up to a leap day in another year, which has none": {
			blackouts: yearly("02-20", "02-29"), now: "2027-02-28 12:00", want: always(blackedOut("b", "2027-03-01 00:00", "2027-03-01 00:00")),
		},
		"all year but for a day": {
			blackouts: yearly("07-02", "07-01"), now: "2026-07-02 00:00", want: always(blackedOut("b", "2027-07-01 00:00", "2027-07-01 00:00")),
		},
	})
}

// urgent returns the schedule of a spec that is urgent until an instant.
func urgent(t testing.TB, until string, windows []v1alpha1.Window, blackouts []v1alpha1.Blackout, ignore ...v1alpha1.UrgentIgnore) window.Schedule {
	t.Helper()
	s, err := window.Of(&v1alpha1.RebootPolicySpec{Windows: windows, Blackouts: blackouts, Urgent: &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{
		Until: metav1.NewTime(at(until)), Reason: "CVE", Ignore: ignore,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAt_Urgent shows that ignored windows and blackouts do not count until the end of the urgency,
// and count again afterwards.
func TestAt_Urgent(t *testing.T) {
	nightly := []v1alpha1.Window{daily("22:00", "4h", "UTC")}
	freeze := []v1alpha1.Blackout{blackout("freeze", "2026-06-02", "2026-06-04", "UTC")}
	const windows, blackouts = v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts
	cases := map[string]struct {
		schedule window.Schedule
		now      string
		want     window.State
	}{
		"opens at once, until then": {
			urgent(t, "2026-06-01 18:00", nightly, nil, windows), "2026-06-01 12:00",
			window.State{Open: true, Urgent: true, Name: "urgent", ClosesAt: at("2026-06-01 18:00"), Next: at("2026-06-01 18:00")},
		},
		"is over at the end": {
			urgent(t, "2026-06-01 18:00", nightly, nil, windows), "2026-06-01 18:00",
			window.State{OpensAt: at("2026-06-01 22:00"), Next: at("2026-06-01 22:00")},
		},
		"continues in the window that is open at the end": {
			urgent(t, "2026-06-01 23:00", nightly, nil, windows), "2026-06-01 12:00",
			window.State{Open: true, Urgent: true, Name: "urgent", ClosesAt: at("2026-06-02 02:00"), Next: at("2026-06-01 23:00")},
		},
		"keeps blackouts that it does not ignore": {
			urgent(t, "2026-06-05 12:00", nightly, freeze, windows), "2026-06-02 12:00",
			window.State{Name: "freeze", Blackout: true, BlackoutReason: "because of freeze", OpensAt: at("2026-06-04 00:00"), Next: at("2026-06-04 00:00")},
		},
		"keeps windows that it does not ignore": {
			urgent(t, "2026-06-03 12:00", nightly, freeze, blackouts), "2026-06-02 12:00",
			window.State{OpensAt: at("2026-06-02 22:00"), Next: at("2026-06-02 22:00")},
		},
		"a blackout that it ignores does not close, before it is over": {
			urgent(t, "2026-06-03 00:00", nightly, freeze, blackouts), "2026-06-02 23:00",
			window.State{Open: true, Urgent: true, Name: "w", ClosesAt: at("2026-06-03 00:00"), Next: at("2026-06-03 00:00")},
		},
		"the next opening is after the blackout that counts again": {
			urgent(t, "2026-06-02 12:00", nightly, freeze, blackouts), "2026-06-02 11:00",
			window.State{OpensAt: at("2026-06-04 00:00"), Next: at("2026-06-02 12:00")},
		},
		"a pause alone changes no hour": {
			urgent(t, "2026-06-01 18:00", nightly, nil, v1alpha1.UrgentIgnoresPause), "2026-06-01 12:00",
			window.State{OpensAt: at("2026-06-01 22:00"), Next: at("2026-06-01 18:00")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.schedule.At(at(tc.now))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// noChange is the one announcement that may be wrong, because Next includes the end of spec.urgent
// even if it does not change anything.
const noChange = "nothing changes at Next"

// TestAt_UrgentKeepsItsPromises is like TestAt_KeepsItsPromises. It also shows that the policy is
// open exactly if the windows and blackouts that are not ignored allow it.
func TestAt_UrgentKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows, blackouts, now := drawPolicy(t)
		ignore := rapid.SampledFrom([][]v1alpha1.UrgentIgnore{
			{v1alpha1.UrgentIgnoresWindows}, {v1alpha1.UrgentIgnoresBlackouts}, {v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts},
		}).Draw(t, "ignore")
		until := now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(30*24*time.Hour)).Draw(t, "until")))
		s, err := window.Of(&v1alpha1.RebootPolicySpec{
			Windows: windows, Blackouts: blackouts, Urgent: &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: metav1.NewTime(until), Ignore: ignore}},
		})
		if err != nil {
			t.Fatal(err)
		}
		allowed, otherwise := windows, blackouts
		for _, limit := range ignore {
			if limit == v1alpha1.UrgentIgnoresWindows {
				allowed = nil
			} else {
				otherwise = nil
			}
		}
		before, err := window.Compile(allowed, otherwise)
		if err != nil {
			t.Fatal(err)
		}
		after, err := window.Compile(windows, blackouts)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			state, judge := s.At(now), after
			if now.Before(until) {
				judge = before
			}
			if state.Open != judge.At(now).Open || state.Urgent != (state.Open && now.Before(until)) {
				t.Fatalf("At(%v) = %+v, urgent until %v without %v", now, state, until, ignore)
			}
			if promise := broken(s, now, state); promise != "" && (promise != noChange || !now.Before(until)) {
				t.Fatalf("%s\nAt(%v) = %+v, urgent until %v without %v\nwindows %+v\nblackouts %+v", promise, now, state, until, ignore, windows, blackouts)
			}
			if state.Next.IsZero() {
				return
			}
			now = state.Next
		}
	})
}
