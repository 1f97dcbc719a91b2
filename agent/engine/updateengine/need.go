package updateengine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// This file decides, and does nothing else: what has been received so far and one more thing received make what is known now.
//
//	           a stranger reports                 the engine reports
//	           NEED_REBOOT       anything else      NEED_REBOOT    anything else
//	none       latched           none               confirmed      none
//	latched    latched           latched            confirmed      latched
//	confirmed  confirmed         confirmed          confirmed      none
//
// As long as the engine has not been at NEED_REBOOT, its status reports nothing about a need that somebody else announced. That is
// why a latched need outlives the engine's IDLE. It ends by itself after latchLasts: a real need is in the engine's status, which
// is read every few minutes and whenever the engine comes back, and confirms it.

// latchLasts is how long a need lasts that no engine confirms. A signal of the day still counts in the window of the next night.
// Repeating it does not prolong it: the Node would have to be written each time.
const latchLasts = 24 * time.Hour

// need is whether a reboot is needed, and on whose word.
type need int

const (
	// none: nobody asked for a reboot.
	none need = iota
	// latched: a broadcast asked for one, and the engine has not reported it itself.
	latched
	// confirmed: the engine itself asked for one.
	confirmed
)

// state is everything known about update_engine.
type state struct {
	need need
	// version staged, while there is a need. Empty: unknown.
	version string
	// until is when a latched need ends. Zero: the need is not latched.
	until time.Time
	// unreachable is a sentence that states why the engine cannot be asked. Empty: it answered last time.
	unreachable string
}

// input is one thing that was received.
type input struct {
	// at is when.
	at time.Time
	// unreachable reports that the engine could not be asked, and why; nothing else counts then.
	unreachable string
	status      status
	// fromEngine reports that the status is the word of the owner of the engine's name: its reply or its broadcast.
	fromEngine bool
}

// resumed is the state after a restart of the agent in the same boot, made from what it had reported before. Somebody may have
// set the host's clock meanwhile: a latched need lasts no longer than a new one would.
func resumed(before engine.Report, now time.Time) state {
	s := state{unreachable: "update_engine has not been asked yet."}
	if before.State == engine.Needed {
		s.need, s.version = confirmed, before.Version
	}
	if s.need == confirmed && !before.Until.IsZero() {
		s.need, s.until = latched, timing.Earliest(before.Until, now.Add(latchLasts))
	}
	return s
}

// next is the state after one more thing was received.
func next(s state, in input) state {
	if s.need == latched && !in.at.Before(s.until) {
		s.need, s.version, s.until = none, "", time.Time{}
	}
	switch {
	case in.unreachable != "":
		// A need is in the boot loader, not in the engine's process: it outlives the engine and the bus.
		s.unreachable = in.unreachable
	case in.fromEngine:
		s.unreachable = ""
		return s.after(in.status)
	case in.status.needsReboot():
		return s.overheard(in.status, in.at)
	}
	return s
}

// after is the state after the engine itself sent its status.
func (s state) after(st status) state {
	switch {
	case st.needsReboot():
		// A restarted engine still needs the reboot and has forgotten the version.
		s.need, s.version, s.until = confirmed, cmp.Or(st.version, s.version), time.Time{}
	case s.need == confirmed:
		s.need, s.version = none, ""
	}
	return s
}

// overheard is the state after a stranger announced a need. The first version it names stays, and so does its end: a stranger
// must not be able to make the report, and so the Node, change over and over.
func (s state) overheard(st status, at time.Time) state {
	if s.need == none {
		s.need, s.until = latched, at.Add(latchLasts)
	}
	if s.need == latched {
		s.version = cmp.Or(s.version, st.version)
	}
	return s
}

// report is what the state reports to others.
func (s state) report() engine.Report {
	r := engine.Report{
		Engine: Name, State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged,
		Version: s.version, Until: s.until.UTC().Truncate(time.Second),
	}
	switch {
	case s.need == confirmed && s.version != "":
		r.Message = fmt.Sprintf("update_engine has installed version %s; it runs after a reboot.", s.version)
	case s.need == confirmed:
		r.Message = "update_engine has installed an update; it runs after a reboot."
	case s.need == latched && s.version != "":
		r.Message = fmt.Sprintf("A StatusUpdate broadcast asks for a reboot into version %s; update_engine itself does not.", s.version)
	case s.need == latched:
		r.Message = "A StatusUpdate broadcast asks for a reboot; update_engine itself does not."
	case s.unreachable != "":
		r.State, r.Reason, r.Message = engine.Unknown, v1alpha1.ReasonEngineUnreachable, s.unreachable
	default:
		r.State, r.Reason, r.Message = engine.NotNeeded, v1alpha1.ReasonUpToDate, "update_engine has no update that waits for a reboot."
	}
	r.Message = engine.Shorten(r.Message)
	return r
}
