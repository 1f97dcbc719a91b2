// Package updateengine receives from update_engine of Flatcar and CoreOS, com.coreos.update1 on the system bus, whether an
// update waits for a reboot. It reads GetStatus and listens to StatusUpdate; it never calls AttemptUpdate or ResetStatus.
package updateengine

import (
	"context"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "update-engine"

// https://github.com/flatcar/update_engine/blob/flatcar-master/update_engine.xml, except that the object is registered
// at this path and not at the one written there.
const (
	busName      = "com.coreos.update1"
	objectPath   = dbus.ObjectPath("/com/coreos/update1")
	busInterface = "com.coreos.update1.Manager"
	getStatus    = "GetStatus"
	statusUpdate = "StatusUpdate"
)

// Engine watches update_engine. It implements engine.Engine.
type Engine struct {
	// Connect opens the system bus. Required.
	Connect host.Connect
	// Clock times the polls and the pauses before connecting again. Required.
	Clock clock.Clock
	// RequireEngineSender ignores a StatusUpdate of anybody but update_engine. By default each counts, because the
	// canonical test signal (locksmithctl send-need-reboot) comes from a stranger; so may a forged one.
	RequireEngineSender bool
	// Before is what this engine had reported when the agent was restarted within the same boot: a need in it lasts until
	// update_engine reports otherwise, or until its end. Zero: nothing, as after a boot.
	Before engine.Report
	// Optional reports a host that has not had an update_engine in this boot as Absent: nobody named it.
	Optional bool
	// Again makes the engine look once more. Optional.
	Again engine.Again
	// Malformed is called for each StatusUpdate or reply that cannot be read and is ignored. Optional.
	Malformed func()
	// Reachable is called with whether update_engine answers, at first and on each change. Optional.
	Reachable func(bool)
}

var _ engine.Engine = (*Engine)(nil)

// Name is "update-engine".
func (e *Engine) Name() string { return Name }

// Run reports until ctx ends, and then returns nil. It outlasts restarts of update_engine and of the bus, and the absence
// of both.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) error {
	l := &listener{
		clock:     e.Clock,
		state:     resumed(e.before(), e.Clock.Now()),
		changes:   engine.Changes{Report: report, Reachable: e.Reachable, Optional: e.Optional, Seen: e.Before.State != ""},
		ownerOnly: e.RequireEngineSender,
	}
	// Anybody's StatusUpdate is subscribed to: the bus would drop the broadcast of locksmithctl.
	watch := service.Watch{
		Engine: Name, Title: "update_engine", Name: busName, Path: objectPath, Interface: busInterface,
		Signals: []string{statusUpdate}, Connect: e.Connect, Clock: e.Clock, Again: e.Again, Malformed: e.Malformed,
	}
	watch.Run(ctx, l)
	return nil
}

// before leaves out a latched need that would not be latched any more.
func (e *Engine) before() engine.Report {
	if e.RequireEngineSender && !e.Before.Until.IsZero() {
		return engine.Report{}
	}
	return e.Before
}
