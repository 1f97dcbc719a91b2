package window_test

import "testing"

// A start that a clock change skips or repeats, and windows around it (behaviour 32: the wall clock's start is kept,
// and the length is elapsed time).
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
