package window_test

import "testing"

// Days, weeks of the month and leap days.
func TestAt_Calendar(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		"every day over midnight (behaviour 30)": {
			daily("22:00", "4h", ""), "2026-06-01 00:00", "2026-06-03 00:00",
			[]open{
				{from: "2026-06-01 00:00", to: "2026-06-01 02:00"},
				{from: "2026-06-01 22:00", to: "2026-06-02 02:00"},
				{from: "2026-06-02 22:00", to: "2026-06-03 00:00"},
			},
		},
		"from Saturday into Sunday (behaviour 31)": {
			daily("23:00", "6h", "UTC", on("Sat")), "2026-06-01 00:00", "2026-06-15 00:00",
			[]open{{from: "2026-06-06 23:00", to: "2026-06-07 05:00"}, {from: "2026-06-13 23:00", to: "2026-06-14 05:00"}},
		},
		"from Sunday over the end of the year into Monday (behaviour 31)": {
			daily("23:00", "6h", "UTC", on("Sun")), "2028-12-26 00:00", "2029-01-07 12:00",
			[]open{{from: "2028-12-31 23:00", to: "2029-01-01 05:00"}},
		},
		"second Sunday": {
			daily("02:00", "4h", "UTC", on("Sun"), weeks(2)), "2026-05-01 00:00", "2026-08-01 00:00",
			[]open{
				{from: "2026-05-10 02:00", to: "2026-05-10 06:00"},
				{from: "2026-06-14 02:00", to: "2026-06-14 06:00"},
				{from: "2026-07-12 02:00", to: "2026-07-12 06:00"},
			},
		},
		"last Sunday of months with four and with five": {
			daily("02:00", "4h", "UTC", on("Sun"), weeks(-1)), "2026-02-01 00:00", "2026-05-01 00:00",
			[]open{
				{from: "2026-02-22 02:00", to: "2026-02-22 06:00"},
				{from: "2026-03-29 02:00", to: "2026-03-29 06:00"},
				{from: "2026-04-26 02:00", to: "2026-04-26 06:00"},
			},
		},
		"fifth Sunday, which most months lack": {
			daily("02:00", "4h", "UTC", on("Sun"), weeks(5)), "2026-01-01 00:00", "2026-07-01 00:00",
			[]open{{from: "2026-03-29 02:00", to: "2026-03-29 06:00"}, {from: "2026-05-31 02:00", to: "2026-05-31 06:00"}},
		},
		"fourth and last Sunday of a month with four start once": {
			daily("02:00", "4h", "UTC", on("Sun"), weeks(4, -1)), "2026-02-15 00:00", "2026-04-01 00:00",
			[]open{
				{from: "2026-02-22 02:00", to: "2026-02-22 06:00"},
				{from: "2026-03-22 02:00", to: "2026-03-22 06:00"},
				{from: "2026-03-29 02:00", to: "2026-03-29 06:00"},
			},
		},
		"first week without days is the first seven dates": {
			daily("00:00", "24h", "UTC", weeks(1)), "2026-05-15 00:00", "2026-06-15 00:00",
			[]open{{from: "2026-06-01 00:00", to: "2026-06-08 00:00"}},
		},
		"February of a common year has no fifth weekday": {daily("12:00", "1h", "UTC", weeks(5)), "2027-02-01 00:00", "2027-03-29 12:00", nil},
		"week is counted where the window is": {
			daily("00:30", "1h", "Asia/Tokyo", on("Mon"), weeks(1)), "2026-05-20 00:00", "2026-06-20 00:00",
			[]open{{from: "2026-05-31 15:30", to: "2026-05-31 16:30"}},
		},
	})
}
