// Package timing computes times and pauses.
package timing

import (
	"slices"
	"time"
)

// Earliest returns the earliest of the times. A zero time means never and does not count.
func Earliest(instants ...time.Time) time.Time {
	var first time.Time
	for _, t := range instants {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// Latest returns the latest of the times.
func Latest(instants ...time.Time) time.Time { return slices.MaxFunc(instants, time.Time.Compare) }

// Backoff returns the pause after a number of failures in a row: first, doubled with each further
// failure, and at most limit.
func Backoff(failures int, first, limit time.Duration) time.Duration {
	for range failures - 1 {
		if first *= 2; first >= limit {
			return limit
		}
	}
	return first
}

// Instant formats a time for people, such as Mon 2006-01-02 15:04:05 UTC. It is absolute, so that
// messages do not change by themselves, and `kubectl reboot` shows it in the reader's time zone.
func Instant(t time.Time) string { return InstantIn(t, time.UTC) }

// InstantIn does what Instant does, in another time zone.
func InstantIn(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("Mon 2006-01-02 15:04:05 MST")
}
