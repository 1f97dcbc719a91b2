package plan

import "time"

// instant writes a time the way people read it in a status, in the zone of the policy's first window; it is absolute, so that a
// message does not change by itself.
func (s Snapshot) instant(t time.Time) string { return written(t.In(s.Schedule.Zone())) }

// instant writes a time of a record, whose policy may be any.
func instant(t time.Time) string { return written(t.UTC()) }

func written(t time.Time) string { return t.Format("Mon 2006-01-02 15:04:05 MST") }
