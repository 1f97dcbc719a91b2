// Package updateengine receives from update_engine of Flatcar and CoreOS, com.coreos.update1 on the system bus, whether an
// update waits for a reboot. It reads GetStatus and listens to StatusUpdate; it never calls AttemptUpdate or ResetStatus.
package updateengine

import (
	"context"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
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

// Engine watches update_engine.
type Engine struct {
	service.Bus

	// RequireEngineSender ignores a StatusUpdate that update_engine did not send itself. By default each counts, because the
	// canonical test signal (locksmithctl send-need-reboot) comes from a stranger; so may a forged one.
	RequireEngineSender bool
}

// Run implements source.Engine. It outlasts restarts of update_engine and of the bus, and the absence of both.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) {
	before := e.Before
	if e.RequireEngineSender && !before.Until.IsZero() {
		before = engine.Report{} // It came from a stranger, whose broadcast would not be received any more.
	}
	service.Watch{
		Bus: e.Bus, Title: "update_engine", Name: busName, Path: objectPath, Interface: busInterface,
		Signals: []string{statusUpdate}, OwnerOnly: e.RequireEngineSender,
	}.Run(ctx, &listener{clock: e.Clock, state: resumed(before, e.Clock.Now()), changes: e.Changes(report)})
}

// listener keeps the state across connections and reports what changes.
type listener struct {
	clock   clock.PassiveClock
	state   state
	changes engine.Changes
}

// take makes a state of the one before and reports it.
func (l *listener) take(in input) {
	in.at = l.clock.Now()
	l.state = next(l.state, in)
	l.changes.Update(l.state.report())
}

// Receive takes a StatusUpdate.
func (l *listener) Receive(_ string, body []any, fromOwner bool) error {
	received, err := updatestatus.Decode(body)
	if err != nil {
		return err
	}
	if fromOwner {
		l.changes.Reach(engine.Answering, "")
	}
	l.take(input{status: received, fromEngine: fromOwner})
	return nil
}

// Read calls GetStatus.
func (l *listener) Read(ctx context.Context, call service.Call) error {
	return call(ctx, getStatus, func(body []any) error { return l.Receive(statusUpdate, body, true) })
}

// Lost reports that update_engine cannot be asked. A need of a broadcast still ends after its time.
func (l *listener) Lost(why string, presence engine.Presence) {
	l.changes.Reach(presence, why)
	l.take(input{})
}
