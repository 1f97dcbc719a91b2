// Package cosupdateengine receives from update_engine of Container-Optimized OS, org.chromium.UpdateEngine on the system
// bus, whether an update waits for a reboot. It reads the status and listens to it; it never asks for an update, a reset
// or a reboot.
package cosupdateengine

import (
	"context"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "cos-update-engine"

// https://chromium.googlesource.com/aosp/platform/system/update_engine/ (dbus_bindings). Platforms up to about 2020 have
// GetStatus and StatusUpdate, at first alone and then beside the advanced ones.
const (
	busName              = "org.chromium.UpdateEngine"
	objectPath           = dbus.ObjectPath("/org/chromium/UpdateEngine")
	busInterface         = "org.chromium.UpdateEngineInterface"
	getStatusAdvanced    = "GetStatusAdvanced"
	getStatus            = "GetStatus"
	statusUpdateAdvanced = "StatusUpdateAdvanced"
	statusUpdate         = "StatusUpdate"
)

// Engine watches update_engine of COS. It implements engine.Engine.
type Engine struct {
	// Connect opens the system bus. Required.
	Connect host.Connect
	// Clock times the polls and the pauses before connecting again. Required.
	Clock clock.Clock
	// Before is what this engine had reported when the agent was restarted within the same boot: a need in it lasts until
	// update_engine reports otherwise. Zero: nothing, as after a boot.
	Before engine.Report
	// Optional reports a host that has not had an update_engine in this boot as Absent: nobody named it.
	Optional bool
	// Again makes the engine look once more. Optional.
	Again engine.Again
	// Malformed is called for each signal or reply that cannot be read and is ignored. Optional.
	Malformed func()
	// Reachable is called with whether update_engine answers, at first and on each change. Optional.
	Reachable func(bool)
}

var _ engine.Engine = (*Engine)(nil)

// Name is "cos-update-engine".
func (e *Engine) Name() string { return Name }

// Run reports until ctx ends, and then returns nil. It outlasts restarts of update_engine and of the bus, and the absence
// of both.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) error {
	l := &listener{state: resumed(e.Before), changes: engine.Changes{
		Report: report, Reachable: e.Reachable, Optional: e.Optional, Seen: e.Before.State != "",
	}}
	// The owner alone counts: whoever wants to test an agent has update_engine_client --set_status=6, which makes
	// update_engine itself say it.
	watch := service.Watch{
		Engine: Name, Title: title, Name: busName, Path: objectPath, Interface: busInterface,
		Signals: []string{statusUpdateAdvanced, statusUpdate}, OwnerOnly: true,
		Connect: e.Connect, Clock: e.Clock, Again: e.Again, Malformed: e.Malformed,
	}
	watch.Run(ctx, l)
	return nil
}
