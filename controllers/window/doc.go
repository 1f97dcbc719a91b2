// Package window decides when reboots may start. It evaluates the windows and blackouts of a
// RebootPolicy for an instant.
//
// [Compile] loads time zones, once per policy. After that [Schedule.At] is a pure function of the
// instant. So a clock that jumps, a new leader and an edited policy get the same answer for the
// same instant.
//
// # Windows
//
//   - A window starts on each civil date that matches its days and weeksOfMonth, at the first
//     instant at which the clocks of its zone read start or later. If a clock change skips the
//     start, the window starts at the first instant after the gap. If a clock change repeats it,
//     the window starts once, at the first of the two.
//   - days are the days on which the window starts, even if it ends on a later one. The n-th week
//     of the month is the n-th such weekday of the month, and -1 is the last one.
//   - A window does not start on a date that its zone skipped. For example, Samoa went from 29 to
//     31 December 2011.
//   - The duration is elapsed time, so a clock change does not change the length of a window. A
//     daily window of 24h therefore does not cover the 25th hour of the day on which summer time
//     ends.
//   - The start is inside the window, and the end is outside. Several windows form a union: if one
//     starts at the instant at which another ends, the policy stays open. Without windows it is
//     always open.
//
// # Blackouts
//
// A blackout lasts from the first instant of its first date to the first instant of its end date,
// by the clocks of its zone. If midnight is skipped, the date begins with the first instant after
// the gap. Blackouts win over windows.
//
// Dates without a year repeat every year. If the end is an earlier day of the year than the
// beginning, it is in the next year. In a year without 29 February, that date is 1 March.
//
// # Time zones
//
// This package does not use cron expressions. Cron libraries lose or repeat runs when clocks
// change, and some never return for a date that a zone skipped. [time.Date] does not help either,
// because it does not say which side of a gap or overlap it chooses. This package needs only the
// offset of a zone and how long it holds.
//
// The rules of zones come from $ZONEINFO, the system's zoneinfo, or the copy embedded by
// time/tzdata, in this order.
package window
