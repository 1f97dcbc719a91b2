package plan

import (
	"time"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// instant writes a time the way people read it in a status, in the zone of the policy's first window.
func (s Snapshot) instant(t time.Time) string { return timing.Instant(t.In(s.Schedule.Zone())) }

// instant writes a time of a record, whose policy may be any.
func instant(t time.Time) string { return timing.Instant(t.UTC()) }
