package step

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// client returns the FleetLock client that finalizes the host's update and reboots the host, or an
// empty string if the agent reboots it. Until the engines have reported, it uses what they reported
// to an earlier process in this boot.
func client(o Observation) string {
	for _, r := range o.Engines {
		if r.State == engine.Needed && r.Client != "" {
			return r.Client
		}
	}
	if o.Engines != nil || o.Before == nil || o.Before.BootID != o.BootID {
		return ""
	}
	for _, r := range o.Before.Reported {
		if r.Asks && r.Client != "" {
			return r.Client
		}
	}
	return ""
}

// clientUntil returns the end of the time that a FleetLock client has to reboot the host after the
// point of no return. It is half of reboot.timeout, so that a reboot by the agent is in time, too.
// Zincati may take ten minutes if users are logged in.
func clientUntil(o Observation) time.Time {
	passed := o.Record.Last().At.Time
	if passed.After(o.Now) && !o.SeenAt.IsZero() { // The host's clock was set back.
		passed = o.SeenAt
	}
	return passed.Add(o.Settings().Reboot.TimeoutOrDefault() / 2)
}

// goesDown returns the sentence about a host past the point of no return.
func goesDown(o Observation) string {
	name := client(o)
	if name == "" {
		return down
	}
	return fmt.Sprintf("%s finalizes the update and reboots the host, up to ten minutes later if users are logged in. If it has not by %s, the agent does.",
		name, timing.Instant(clientUntil(o)))
}
