package window_test

import (
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Zones apart from full hours, zones whose winter or Ramadan time is the exception, with a negative saving, and names.
func TestAt_Zones(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		// Berlin: 2026-03-29 02:00 -> 03:00 at 01:00Z, 2026-10-25 03:00 -> 02:00 at 01:00Z.
		"gap in Berlin": {
			[]v1alpha1.Window{daily("02:30", "1h", "Europe/Berlin")},
			"2026-03-29 00:00", "2026-03-29 23:00",
			[]open{{from: "2026-03-29 01:00", to: "2026-03-29 02:00"}},
		},
		"overlap in Berlin": {
			[]v1alpha1.Window{daily("02:30", "1h", "Europe/Berlin")},
			"2026-10-25 00:00", "2026-10-25 23:00",
			[]open{{from: "2026-10-25 00:30", to: "2026-10-25 01:30"}},
		},
		// Zones whose winter or Ramadan time is the exception, with a negative saving.
		"gap in Dublin": {
			[]v1alpha1.Window{daily("01:30", "1h", "Europe/Dublin")},
			"2026-03-28 12:00", "2026-03-29 12:00",
			[]open{{from: "2026-03-29 01:00", to: "2026-03-29 02:00"}},
		},
		"overlap in Dublin": {
			[]v1alpha1.Window{daily("01:30", "1h", "Europe/Dublin")},
			"2026-10-24 12:00", "2026-10-25 12:00",
			[]open{{from: "2026-10-25 00:30", to: "2026-10-25 01:30"}},
		},
		"overlap before Ramadan in Casablanca": {
			[]v1alpha1.Window{daily("02:30", "1h", "Africa/Casablanca")},
			"2026-02-14 12:00", "2026-02-15 12:00",
			[]open{{from: "2026-02-15 01:30", to: "2026-02-15 02:30"}},
		},
		"gap after Ramadan in Casablanca": {
			[]v1alpha1.Window{daily("02:30", "1h", "Africa/Casablanca")},
			"2026-03-21 12:00", "2026-03-22 12:00",
			[]open{{from: "2026-03-22 02:00", to: "2026-03-22 03:00"}},
		},
		"Kolkata": {
			[]v1alpha1.Window{daily("22:00", "1h", "Asia/Kolkata", on("Mon"))},
			"2026-06-01 00:00", "2026-06-03 00:00",
			[]open{{from: "2026-06-01 16:30", to: "2026-06-01 17:30"}},
		},
		"Kathmandu": {
			[]v1alpha1.Window{daily("22:00", "1h", "Asia/Kathmandu", on("Mon"))},
			"2026-06-01 00:00", "2026-06-03 00:00",
			[]open{{from: "2026-06-01 16:15", to: "2026-06-01 17:15"}},
		},
		"gap in Chatham": {
			[]v1alpha1.Window{daily("03:00", "1h", "Pacific/Chatham", on("Sun"))},
			"2026-09-26 00:00", "2026-09-28 00:00",
			[]open{{from: "2026-09-26 14:00", to: "2026-09-26 15:00"}},
		},
		"overlap in Chatham": {
			[]v1alpha1.Window{daily("03:00", "1h", "Pacific/Chatham", on("Sun"))},
			"2026-04-04 00:00", "2026-04-06 00:00",
			[]open{{from: "2026-04-04 13:15", to: "2026-04-04 14:15"}},
		},
		"zone absent is UTC": {
			[]v1alpha1.Window{daily("22:00", "1h", "")},
			"2026-06-01 00:00", "2026-06-02 00:00",
			[]open{{from: "2026-06-01 22:00", to: "2026-06-01 23:00"}},
		},
		"Etc/GMT+5 is five hours behind": {
			[]v1alpha1.Window{daily("22:00", "1h", "Etc/GMT+5")},
			"2026-06-01 00:00", "2026-06-02 00:00",
			[]open{{from: "2026-06-01 03:00", to: "2026-06-01 04:00"}},
		},
		"old name of a zone": {
			[]v1alpha1.Window{daily("22:00", "1h", "Europe/Kiev")},
			"2026-06-01 00:00", "2026-06-02 00:00",
			[]open{{from: "2026-06-01 19:00", to: "2026-06-01 20:00"}},
		},
		"new name of a zone": {
			[]v1alpha1.Window{daily("22:00", "1h", "Europe/Kyiv")},
			"2026-06-01 00:00", "2026-06-02 00:00",
			[]open{{from: "2026-06-01 19:00", to: "2026-06-01 20:00"}},
		},
	})
}
