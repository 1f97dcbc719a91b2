package step

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// WithFleetLock adds a report about the host's FleetLock client to those of the engines. It changes
// nothing if no client has asked, or until all engines have reported.
func WithFleetLock(reports []engine.Report, o Observation) []engine.Report {
	if reports == nil || o.FleetLock == nil {
		return reports
	}
	name := "FleetLock client " + o.FleetLock.ID
	if !o.FleetLock.Counts(o.BootID, o.Now) {
		return append(reports, engine.UpToDate(protocol.FleetLockEngine, name+" does not ask for a reboot."))
	}
	return append(reports, engine.Report{
		Engine: protocol.FleetLockEngine, State: engine.Needed, Reason: v1alpha1.ReasonFleetLockRequested, Client: name,
		Message: engine.Shorten(name + " asks for a reboot."),
	})
}

// fleetLockEnds returns when a request of the host's FleetLock client ends by itself, or the zero time.
func fleetLockEnds(o Observation) time.Time {
	if !o.FleetLock.Counts(o.BootID, o.Now) {
		return time.Time{}
	}
	return o.FleetLock.At.Add(protocol.FleetLockLasts)
}

// client returns the FleetLock client that reboots the host, and whether it also finalizes the
// host's update. If the name is empty, the agent reboots the host. Until the engines have reported,
// it uses what they reported to an earlier process in this boot.
func client(o Observation) (name string, finalizes bool) {
	for _, r := range o.Engines {
		if r.State == engine.Needed && r.Client != "" {
			return r.Client, r.Engine != protocol.FleetLockEngine
		}
	}
	if o.Engines != nil || o.Before == nil || o.Before.BootID != o.BootID {
		return "", false
	}
	for _, r := range o.Before.Reported {
		if r.Asks && r.Client != "" {
			return r.Client, r.Name != protocol.FleetLockEngine
		}
	}
	return "", false
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
	name, finalizes := client(o)
	switch {
	case name == "":
		return down
	case finalizes:
		return fmt.Sprintf("%s finalizes the update and reboots the host, up to ten minutes later if users are logged in. If it has not by %s, the agent does.",
			name, timing.Instant(clientUntil(o)))
	}
	return fmt.Sprintf("%s reboots the host. If it has not by %s, the agent does.", name, timing.Instant(clientUntil(o)))
}
