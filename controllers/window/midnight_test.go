package window_test

import "testing"

// Clock changes that skip or repeat midnight, where the date is at stake.
func TestAt_ClockChangesAtMidnight(t *testing.T) {
	testOpenings(t, map[string]openingsCase{
		// Havana: 2026-03-08 00:00 -> 01:00 at 05:00Z, 2026-11-01 01:00 -> 00:00 at 05:00Z.
		"midnight skipped in Havana": {
			daily("00:00", "1h", "America/Havana"), "2026-03-07 12:00", "2026-03-09 12:00",
			[]open{{from: "2026-03-08 05:00", to: "2026-03-08 06:00"}, {from: "2026-03-09 04:00", to: "2026-03-09 05:00"}},
		},
		// Clocks set back over midnight: Saturday the 24th from 23:00 on comes twice, and Sunday begins an hour late.
		"evening repeated in Beirut": {
			daily("23:30", "20m", "Asia/Beirut"), "2026-10-24 12:00", "2026-10-25 12:00", []open{{from: "2026-10-24 20:30", to: "2026-10-24 20:50"}},
		},
		// At 00:01 on Sunday the clocks of St. John's went back to 23:01 on Saturday, at 02:31Z.
		"Sunday interrupted in St. John's": {
			daily("00:00", "2h", "America/St_Johns", on("Sun")), "2010-11-06 00:00", "2010-11-08 00:00",
			[]open{{from: "2010-11-07 02:30", to: "2010-11-07 04:30"}},
		},
		// The gap from 23:00 to midnight: the start is on Saturday, the first instant after the gap on Sunday.
		"gap before midnight in Nuuk counts for the day of the start": {
			daily("23:30", "1h", "America/Nuuk", on("Sat")), "2026-03-28 00:00", "2026-03-30 12:00",
			[]open{{from: "2026-03-29 01:00", to: "2026-03-29 02:00"}},
		},
		"gap before midnight in Nuuk is none of Sunday's": {
			daily("23:30", "1h", "America/Nuuk", on("Sun")), "2026-03-28 00:00", "2026-03-30 12:00",
			[]open{{from: "2026-03-30 00:30", to: "2026-03-30 01:30"}},
		},
	})
}
