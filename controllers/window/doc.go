// Package window reports when reboots may start: it resolves the windows and blackouts of a RebootPolicy for an instant.
//
// It is pure. [Compile] loads time zones, once for each policy. [Schedule.At] is a function of the instant alone. A clock that jumps, a
// new leader and an edited policy all get the same answer for the same instant.
//
// # Windows
//
//   - A window starts on each civil date that its days and weeksOfMonth select: at the first instant at which the
//     clocks of its zone read start or later. So a start that a clock change skips is the first instant after the
//     gap. One that a clock change repeats is the first of the two, once.
//   - days are the days on which the window starts, whatever day it ends on. The n-th week of the month is the n-th
//     such weekday, counted from the first of the month; -1 is the last one.
//   - A date that the zone never had has no start: Samoa went from 29 to 31 December 2011.
//   - The duration is elapsed time, so a window keeps its length across a clock change. A daily window of 24h
//     therefore leaves open the 25th hour of the day on which summer time ends.
//   - The start belongs to the window, the end does not. Several windows form a union: where one ends at the instant
//     at which another starts, nothing closes. No windows at all: always open.
//
// # Blackouts
//
// A blackout begins with the first instant of its first date and ends with that of its end date, by the clocks of its zone. Where
// midnight is skipped, the date begins with the first instant after the gap. Blackouts win over windows.
//
// # Time zones
//
// There is no cron expression here. The cron libraries lose or repeat runs when clocks change, and some never return for a date that a
// zone skipped. [time.Date] does not help either. It does not state which side of a gap or overlap it picks. The resolver needs only
// the offset of a zone and how long it holds.
//
// The rules of zones come from $ZONEINFO, the system's zoneinfo, or the copy embedded by time/tzdata, in this order.
package window
