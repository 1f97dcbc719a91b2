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
		"week is counted in the time zone of the window": {
			daily("00:30", "1h", "Asia/Tokyo", on("Mon"), weeks(1)), "2026-05-20 00:00", "2026-06-20 00:00",
			[]open{{from: "2026-05-31 15:30", to: "2026-05-31 16:30"}},
		},
	})
}

// A start that a clock change skips or repeats, and windows around it. The start follows the wall
// clock, and the length is elapsed time (behaviour 32).
func TestAt_ClockChanges_Behaviour32(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		// New York: 2026-03-08 02:00 -> 03:00 at 07:00Z, 2026-11-01 02:00 -> 01:00 at 06:00Z.
		"start inside the gap is the first instant after it": {
			daily("02:30", "1h", "America/New_York"), "2026-03-07 12:00", "2026-03-09 12:00",
			[]open{{from: "2026-03-08 07:00", to: "2026-03-08 08:00"}, {from: "2026-03-09 06:30", to: "2026-03-09 07:30"}},
		},
		"start with the gap is the first instant after it": {
			daily("02:00", "1h", "America/New_York"), "2026-03-07 12:00", "2026-03-09 12:00",
			[]open{{from: "2026-03-08 07:00", to: "2026-03-08 08:00"}, {from: "2026-03-09 06:00", to: "2026-03-09 07:00"}},
		},
		"window wholly inside the gap is not lost": {
			daily("02:15", "30m", "America/New_York", on("Sun")), "2026-03-02 00:00", "2026-03-16 00:00",
			[]open{{from: "2026-03-08 07:00", to: "2026-03-08 07:30"}, {from: "2026-03-15 06:15", to: "2026-03-15 06:45"}},
		},
		"start inside the overlap is the first of the two, once": {
			daily("01:30", "15m", "America/New_York"), "2026-10-31 12:00", "2026-11-02 12:00",
			[]open{{from: "2026-11-01 05:30", to: "2026-11-01 05:45"}, {from: "2026-11-02 06:30", to: "2026-11-02 06:45"}},
		},
		"window around the overlap keeps its length": {
			daily("00:30", "3h", "America/New_York"), "2026-11-01 00:00", "2026-11-01 23:00",
			[]open{{from: "2026-11-01 04:30", to: "2026-11-01 07:30"}},
		},
		// Lord Howe: 2026-10-04 02:00 -> 02:30 at 2026-10-03 15:30Z, 2026-04-05 02:00 -> 01:30 at 2026-04-04 15:00Z.
		"gap of half an hour": {
			daily("02:15", "10m", "Australia/Lord_Howe"), "2026-10-03 00:00", "2026-10-05 00:00",
			[]open{{from: "2026-10-03 15:30", to: "2026-10-03 15:40"}, {from: "2026-10-04 15:15", to: "2026-10-04 15:25"}},
		},
	})
}

// Clock changes that skip or repeat midnight and so affect the date.
func TestAt_ClockChangesAtMidnight(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		// Havana: 2026-03-08 00:00 -> 01:00 at 05:00Z, 2026-11-01 01:00 -> 00:00 at 05:00Z.
		"midnight skipped in Havana": {
			daily("00:00", "1h", "America/Havana"), "2026-03-07 12:00", "2026-03-09 12:00",
			[]open{{from: "2026-03-08 05:00", to: "2026-03-08 06:00"}, {from: "2026-03-09 04:00", to: "2026-03-09 05:00"}},
		},
		// Clocks set back over midnight: Saturday the 24th repeats the hour from 23:00, and Sunday
		// begins an hour late.
		"evening repeated in Beirut": {
			daily("23:30", "20m", "Asia/Beirut"), "2026-10-24 12:00", "2026-10-25 12:00", []open{{from: "2026-10-24 20:30", to: "2026-10-24 20:50"}},
		},
		// At 00:01 on Sunday, 02:31Z, the clocks of St. John's went back to 23:01 on Saturday.
		"Sunday interrupted in St. John's": {
			daily("00:00", "2h", "America/St_Johns", on("Sun")), "2010-11-06 00:00", "2010-11-08 00:00",
			[]open{{from: "2010-11-07 02:30", to: "2010-11-07 04:30"}},
		},
		// The gap is from 23:00 to midnight. The start is on Saturday, and the first instant after
		// the gap is on Sunday.
		"gap before midnight in Nuuk counts for the day of the start": {
			daily("23:30", "1h", "America/Nuuk", on("Sat")), "2026-03-28 00:00", "2026-03-30 12:00",
			[]open{{from: "2026-03-29 01:00", to: "2026-03-29 02:00"}},
		},
		"gap before midnight in Nuuk does not belong to Sunday": {
			daily("23:30", "1h", "America/Nuuk", on("Sun")), "2026-03-28 00:00", "2026-03-30 12:00",
			[]open{{from: "2026-03-30 00:30", to: "2026-03-30 01:30"}},
		},
	})
}

// Changes of zones by law: permanent changes, skipped and repeated dates, offsets in seconds, and
// the far future, whose rules are computed.
func TestAt_History(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		// Permanent changes of the clocks.
		"half an hour skipped in Pyongyang": {
			daily("23:45", "1h", "Asia/Pyongyang", on("Fri")), "2018-05-04 00:00", "2018-05-06 00:00",
			[]open{{from: "2018-05-04 15:00", to: "2018-05-04 16:00"}},
		},
		// Offsets in seconds: Berlin was 53:28 ahead, and New York 4:56:02 behind until noon was
		// repeated.
		"local mean time": {
			daily("22:00", "2h", "Europe/Berlin"), "1890-06-01 12:00", "1890-06-02 12:00",
			[]open{{from: "1890-06-01 21:06:32", to: "1890-06-01 23:06:32"}},
		},
		"gap at the end of local mean time": {
			daily("00:05", "1h", "Europe/Berlin"), "1893-03-31 12:00", "1893-04-01 12:00",
			[]open{{from: "1893-03-31 23:06:32", to: "1893-04-01 00:06:32"}},
		},
		"overlap at the end of local mean time": {
			daily("12:00", "1h", "America/New_York"), "1883-11-18 00:00", "1883-11-19 00:00",
			[]open{{from: "1883-11-18 16:56:02", to: "1883-11-18 17:56:02"}},
		},
		// A fixed date in the far future, for which the zone's rules are computed.
		"gap in the year 2400": {
			daily("02:30", "1h", "Europe/Berlin"), "2400-03-25 12:00", "2400-03-26 12:00", []open{{from: "2400-03-26 01:00", to: "2400-03-26 02:00"}},
		},
		// Computed by the zone's rules, because tables end with 2037.
		"last day of a leap year": {
			daily("18:30", "1h", "America/New_York"), "2040-12-30 12:00", "2041-01-02 00:00",
			[]open{
				{from: "2040-12-30 23:30", to: "2040-12-31 00:30"},
				{from: "2040-12-31 23:30", to: "2041-01-01 00:30"},
				{from: "2041-01-01 23:30", to: "2041-01-02 00:00"},
			},
		},
		// Samoa skipped from 29 December 2011, 10:00Z, to the 31st, and Kwajalein from 20 August
		// 1993, 12:00Z, to the 22nd.
		"no start on the date that Samoa skipped": {
			daily("02:00", "1h", "Pacific/Apia"), "2011-12-29 00:00", "2011-12-31 13:00",
			[]open{
				{from: "2011-12-29 12:00", to: "2011-12-29 13:00"},
				{from: "2011-12-30 12:00", to: "2011-12-30 13:00"},
				{from: "2011-12-31 12:00", to: "2011-12-31 13:00"},
			},
		},
		"no start on the Friday that Samoa skipped": {
			daily("00:00", "1h", "Pacific/Apia", on("Fri")), "2011-12-22 00:00", "2012-01-08 00:00",
			[]open{{from: "2011-12-23 10:00", to: "2011-12-23 11:00"}, {from: "2012-01-05 10:00", to: "2012-01-05 11:00"}},
		},
		"window around the date that Samoa skipped keeps its length": {
			daily("23:00", "3h", "Pacific/Apia", on("Thu")), "2011-12-29 00:00", "2011-12-31 00:00",
			[]open{{from: "2011-12-30 09:00", to: "2011-12-30 12:00"}},
		},
		"week around the date that Samoa skipped": {
			daily("00:00", "168h", "Pacific/Apia", on("Sun")), "2011-12-25 10:00", "2012-01-02 00:00",
			[]open{{from: "2011-12-25 10:00", to: "2012-01-02 00:00"}},
		},
		// Kwajalein set its clocks back 23 hours at the end of 30 September 1969, and Juneau set
		// them back a whole day on 19 October 1867.
		"one start on the date that Kwajalein repeated": {
			daily("12:00", "1h", "Pacific/Kwajalein"), "1969-09-29 12:00", "1969-10-02 12:00",
			[]open{{from: "1969-09-30 01:00", to: "1969-09-30 02:00"}, {from: "1969-10-02 00:00", to: "1969-10-02 01:00"}},
		},
		"one start on the date that Juneau repeated": {
			daily("09:00", "1h", "America/Juneau", on("Sat")), "1867-10-18 00:00", "1867-10-21 00:00",
			[]open{{from: "1867-10-18 17:57:41", to: "1867-10-18 18:57:41"}},
		},
		"open when the clocks of Juneau show the day before": {
			daily("15:00", "2h", "America/Juneau", on("Sat")), "1867-10-18 00:00", "1867-10-21 00:00",
			[]open{{from: "1867-10-18 23:57:41", to: "1867-10-19 01:57:41"}},
		},
	})
}
