package window

import "time"

// span is a blackout of a policy, resolved: from is in it, to is not.
type span struct {
	name, reason string
	from, to     time.Time
}

// newSpan resolves the dates by the clocks of the zone.
func newSpan(name, reason string, from, to date, zone *time.Location) span {
	c := clock{zone: zone}
	return span{
		name:   name,
		reason: reason,
		from:   time.Unix(c.first(from.at(0)), 0).UTC(),
		to:     time.Unix(c.first(to.at(0)), 0).UTC(),
	}
}

// holds is whether the blackout is in force at t.
func (s span) holds(t time.Time) bool { return !t.Before(s.from) && t.Before(s.to) }
