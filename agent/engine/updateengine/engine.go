// Package updateengine receives from update_engine of Flatcar and CoreOS, com.coreos.update1 on the system bus, whether an
// update waits for a reboot. It reads GetStatus and listens to StatusUpdate; it never calls AttemptUpdate or ResetStatus.
package updateengine

import (
	"cmp"
	"context"
	"fmt"
	"time"

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
	// canonical test signal (locksmithctl send-need-reboot) comes from another sender; so may a forged one.
	RequireEngineSender bool
}

// Run implements source.Engine. It outlasts restarts of update_engine and of the bus, and the absence of both.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) {
	before := e.Before
	if e.RequireEngineSender && !before.Until.IsZero() {
		before = engine.Report{} // It came from another sender, whose broadcast would not be received any more.
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

// What has been received so far and one more thing received make what is known now:
//
//	           another sender reports             the engine reports
//	           NEED_REBOOT       anything else      NEED_REBOOT    anything else
//	none       broadcast         none               confirmed      none
//	broadcast  broadcast         broadcast          confirmed      broadcast
//	confirmed  confirmed         confirmed          confirmed      none
//
// As long as the engine has not been at NEED_REBOOT, its status reports nothing about a need that another sender announced. That is why
// such a need outlives the engine's IDLE. It ends by itself after broadcastLasts. A real need is in the engine's status, which confirms
// it: it is read every few minutes, and whenever the engine comes back.

// broadcastLasts is how long a need lasts that no engine confirms. A signal of the day still counts in the window of the next
// night. Repeating it does not prolong it: the Node would have to be written each time.
const broadcastLasts = 24 * time.Hour

// need is whether a reboot is needed, and who reported it.
type need int

const (
	// none: no reboot was asked for.
	none need = iota
	// broadcast: another sender asked for one, and the engine has not reported it itself.
	broadcast
	// confirmed: the engine itself asked for one.
	confirmed
)

// state is everything known about update_engine.
type state struct {
	need need
	// version staged, while there is a need. Empty: unknown.
	version string
	// until is when a need ends that only a broadcast reported. Zero: there is no such need.
	until time.Time
}

// input is one thing that was received. Without a status, time has passed and no more.
type input struct {
	// at is when.
	at     time.Time
	status updatestatus.Status
	// fromEngine reports that the owner of the engine's name sent the status: its reply or its broadcast.
	fromEngine bool
}

// resumed is the state after a restart of the agent in the same boot, made from what it had reported before. The host's clock
// may have been set meanwhile: a need of a broadcast lasts no longer than a new one would. From now on the monotonic clock counts.
func resumed(before engine.Report, now time.Time) state {
	s := state{}
	if before.State == engine.Needed {
		s.need, s.version = confirmed, before.Version
	}
	if s.need == confirmed && !before.Until.IsZero() {
		s.need, s.until = broadcast, now.Add(min(before.Until.Sub(now), broadcastLasts))
	}
	return s
}

// next is the state after one more thing was received.
func next(s state, in input) state {
	if s.need == broadcast && !in.at.Before(s.until) {
		s.need, s.version, s.until = none, "", time.Time{}
	}
	switch {
	case in.fromEngine:
		return s.after(in.status)
	case needsReboot(in.status):
		return s.afterOther(in.status, in.at)
	}
	return s
}

func needsReboot(st updatestatus.Status) bool { return st.Operation == updatestatus.UpdatedNeedReboot }

// after is the state after the engine itself sent its status.
func (s state) after(st updatestatus.Status) state {
	switch {
	case needsReboot(st):
		// A restarted engine still needs the reboot and has forgotten the version.
		s.need, s.version, s.until = confirmed, cmp.Or(st.Version, s.version), time.Time{}
	case s.need == confirmed:
		s.need, s.version = none, ""
	}
	return s
}

// afterOther is the state after another sender announced a need. The first version it names stays, and so does its end. So that sender
// cannot make the report, and the Node, change over and over.
func (s state) afterOther(st updatestatus.Status, at time.Time) state {
	if s.need == none {
		s.need, s.until = broadcast, at.Add(broadcastLasts)
	}
	if s.need == broadcast {
		s.version = cmp.Or(s.version, st.Version)
	}
	return s
}

// report is what the state reports to others.
func (s state) report() engine.Report {
	what, into := "an update", ""
	if s.version != "" {
		what, into = "version "+s.version, " into version "+s.version
	}
	switch s.need {
	case confirmed:
		return engine.Staged(Name, s.version, fmt.Sprintf("update_engine has installed %s; it runs after a reboot.", what))
	case broadcast:
		r := engine.Staged(Name, s.version, fmt.Sprintf("A StatusUpdate broadcast asks for a reboot%s; update_engine itself does not.", into))
		r.Until = s.until.UTC().Truncate(time.Second)
		return r
	case none:
	}
	return engine.UpToDate(Name, "update_engine has no update that waits for a reboot.")
}
