package window_test

import "testing"

// What laws did to zones: changes for good, dates skipped and repeated, offsets in seconds; and the far future, whose
// rules are computed.
func TestAt_History(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		// Laws that changed the clocks for good.
		"half an hour skipped in Pyongyang": {
			daily("23:45", "1h", "Asia/Pyongyang", on("Fri")), "2018-05-04 00:00", "2018-05-06 00:00",
			[]open{{from: "2018-05-04 15:00", to: "2018-05-04 16:00"}},
		},
		// History with offsets in seconds: Berlin was 53:28 ahead, New York 4:56:02 behind until noon came twice.
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
		// A fixed date in the far future, where the zone's rules are computed.
		"gap in the year 2400": {
			daily("02:30", "1h", "Europe/Berlin"), "2400-03-25 12:00", "2400-03-26 12:00", []open{{from: "2400-03-26 01:00", to: "2400-03-26 02:00"}},
		},
		// By the zone's rules, not by a table: tables end with 2037.
		"last day of a leap year": {
			daily("18:30", "1h", "America/New_York"), "2040-12-30 12:00", "2041-01-02 00:00",
			[]open{
				{from: "2040-12-30 23:30", to: "2040-12-31 00:30"},
				{from: "2040-12-31 23:30", to: "2041-01-01 00:30"},
				{from: "2041-01-01 23:30", to: "2041-01-02 00:00"},
			},
		},
		// Samoa left 29 December 2011 at 10:00Z for the 31st, Kwajalein 20 August 1993 at 12:00Z for the 22nd.
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
		// Kwajalein set its clocks back 23 hours at the end of 30 September 1969, Juneau a whole day on 19 October 1867.
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
