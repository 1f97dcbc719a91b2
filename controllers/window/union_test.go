package window_test

import "testing"

// Windows that touch and overlap, each other or themselves.
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
