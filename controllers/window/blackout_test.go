package window_test

import (
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Blackouts win over windows, last from midnight to midnight of their zone, and end before their last date.
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
		// Havana skipped midnight: the 8th began at 1:00, which is 05:00Z. On 1 November midnight came twice.
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
