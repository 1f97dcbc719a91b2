// Package updateengine watches the update_engine of Flatcar and CoreOS, com.coreos.update1 on the
// system bus, for an update that waits for a reboot. It reads GetStatus and listens to
// StatusUpdate. It never calls AttemptUpdate or ResetStatus.
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

	// RequireEngineSender ignores a StatusUpdate that update_engine did not send itself. By default
	// every sender counts, because the usual test signal (locksmithctl send-need-reboot) comes from
	// another sender. A forged signal counts too.
	RequireEngineSender bool
}

// Run implements source.Engine. It survives restarts and the absence of both update_engine and the
// bus.
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

// take applies an input to the state and reports the result.
func (l *listener) take(in input) {
	in.at = l.clock.Now()
	l.state = next(l.state, in)
	l.changes.Update(l.state.report())
}

// Receive handles a StatusUpdate.
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

// Lost reports that update_engine cannot be queried. A broadcast need still expires on time.
func (l *listener) Lost(why string, presence engine.Presence) {
	l.changes.Reach(presence, why)
	l.take(input{})
}

// The state changes with each status received, depending on who sent it:
//
//              another sender reports             the engine reports
//              NEED_REBOOT       anything else      NEED_REBOOT    anything else
//   none       broadcast         none               confirmed      none
//   broadcast  broadcast         broadcast          confirmed      broadcast
//   confirmed  confirmed         confirmed          confirmed      none
//
// If the engine itself has never been at NEED_REBOOT, its status says nothing about a need that
// another sender announced. Such a need therefore outlives the engine's IDLE and expires after
// broadcastLasts. A real need is in the engine's status, which is read every few minutes and
// whenever the engine comes back.

// broadcastLasts is the lifetime of a need that the engine does not confirm: long enough for a
// signal sent by day to count in the next night's window. Repeating the signal does not extend it,
// because each extension would be a write of the Node.
const broadcastLasts = 24 * time.Hour

// need says whether a reboot is needed, and who reported it.
type need int

const (
	// none means nobody asked for a reboot.
	none need = iota
	// broadcast means another sender asked for a reboot, and the engine has not confirmed it.
	broadcast
	// confirmed means the engine itself asked for a reboot.
	confirmed
)

// state is everything known about update_engine.
type state struct {
	need need
	// version is the staged version while there is a need, or empty if it is unknown.
	version string
	// until is the end of a need that only a broadcast reported, else zero.
	until time.Time
}

// input is one event. Without a status it means only that time has passed.
type input struct {
	// at is the time of the event.
	at     time.Time
	status updatestatus.Status
	// fromEngine is true if the owner of the engine's name sent the status, as a reply or a
	// broadcast.
	fromEngine bool
}

// resumed returns the state after a restart of the agent in the same boot, from the agent's last
// report. The host's clock may have changed since, so a broadcast need never lasts longer than a
// new one would. From here on the monotonic clock counts.
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

// next returns the state after one more event.
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

// after returns the state after the engine itself sent its status.
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

// afterOther returns the state after another sender announced a need. The first version it names
// stays, and so does the expiry, so that this sender cannot change the Node again and again.
func (s state) afterOther(st updatestatus.Status, t time.Time) state {
	if s.need == none {
		s.need, s.until = broadcast, t.Add(broadcastLasts)
	}
	if s.need == broadcast {
		s.version = cmp.Or(s.version, st.Version)
	}
	return s
}

// report returns the state as a report.
func (s state) report() engine.Report {
	update, into := "an update", ""
	if s.version != "" {
		update, into = "version "+s.version, " into version "+s.version
	}
	switch s.need {
	case confirmed:
		return engine.Staged(Name, s.version, fmt.Sprintf("update_engine has installed %s; it runs after a reboot.", update))
	case broadcast:
		r := engine.Staged(Name, s.version, fmt.Sprintf("A StatusUpdate broadcast asks for a reboot%s; update_engine itself does not.", into))
		r.Until = s.until.UTC().Truncate(time.Second)
		return r
	case none:
	}
	return engine.UpToDate(Name, "update_engine has no update that waits for a reboot.")
}
