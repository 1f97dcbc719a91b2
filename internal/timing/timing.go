// Package timing computes instants and pauses.
package timing

import (
	"slices"
	"time"
)

// Earliest is the earliest of the instants. A zero instant means never and does not count.
func Earliest(instants ...time.Time) time.Time {
	var first time.Time
	for _, t := range instants {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// Latest is the latest of the instants.
func Latest(instants ...time.Time) time.Time { return slices.MaxFunc(instants, time.Time.Compare) }

// Backoff is the pause after some failures in a row: first, doubled with each failure after the first, and at most limit.
func Backoff(failures int, first, limit time.Duration) time.Duration {
	for range failures - 1 {
		if first *= 2; first >= limit {
			return limit
		}
	}
	return first
}

// Instant writes a time for people: Mon 2006-01-02 15:04:05 UTC. It is absolute, so that a message does not change by itself, and
// `kubectl reboot` shows it in the reader's zone.
func Instant(t time.Time) string { return InstantIn(t, time.UTC) }

// InstantIn is Instant in another zone.
func InstantIn(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("Mon 2006-01-02 15:04:05 MST")
}
