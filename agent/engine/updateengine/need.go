package updateengine

import (
	"cmp"
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// This file decides, and does nothing else: what has been heard so far and one more thing heard make what is known now.
//
//	           a stranger says                 the engine says
//	           NEED_REBOOT       anything else      NEED_REBOOT    anything else
//	none       latched           none               confirmed      none
//	latched    latched           latched            confirmed      latched
//	confirmed  confirmed         confirmed          confirmed      none
//
// The engine leaving NEED_REBOOT is the only way down: as long as it has not been there, it says nothing about a need that
// somebody else announced. That is why a latched need outlives the engine's IDLE. Only an administrator can drop it.

// need is whether a reboot is needed, and on whose word.
type need int

const (
	// none: nobody asked for a reboot.
	none need = iota
	// latched: a broadcast asked for one, and the engine has not said so itself.
	latched
	// confirmed: the engine itself asked for one.
	confirmed
)

// state is everything known about update_engine.
type state struct {
	need need
	// version staged, while there is a need. Empty: unknown.
	version string
	// unreachable is a sentence that says why the engine cannot be asked. Empty: it answered last time.
	unreachable string
}

// input is one thing that was heard.
type input struct {
	// unreachable says that the engine could not be asked, and why; nothing else counts then.
	unreachable string
	status      status
	// fromEngine says that the status is the word of the owner of the engine's name: its reply or its broadcast.
	fromEngine bool
}

// resumed is the state after a restart of the agent in the same boot, made from what it had reported before.
func resumed(before engine.Report) state {
	s := state{unreachable: "update_engine has not been asked yet."}
	if before.State == engine.Needed {
		s.need, s.version = confirmed, before.Version
	}
	if s.need == confirmed && before.Latched {
		s.need = latched
	}
	return s
}

// next is the state after one more thing was heard.
func next(s state, in input) state {
	switch {
	case in.unreachable != "":
		// A need is in the boot loader, not in the engine's process: it outlives the engine and the bus.
		s.unreachable = in.unreachable
	case in.fromEngine:
		s.unreachable = ""
		return s.told(in.status)
	case in.status.needsReboot():
		return s.overheard(in.status)
	}
	return s
}

// told is the state after the engine itself said its status.
func (s state) told(st status) state {
	switch {
	case st.needsReboot():
		// A restarted engine still needs the reboot and has forgotten the version.
		s.need, s.version = confirmed, cmp.Or(st.version, s.version)
	case s.need == confirmed:
		s.need, s.version = none, ""
	}
	return s
}

// overheard is the state after a stranger announced a need. The first version it names stays: a stranger must not be able
// to make the report, and so the Node, change over and over.
func (s state) overheard(st status) state {
	if s.need != confirmed {
		s.need, s.version = latched, cmp.Or(s.version, st.version)
	}
	return s
}

// forgotten is the state after an administrator dropped what no engine confirms.
func (s state) forgotten() state {
	if s.need == latched {
		s.need, s.version = none, ""
	}
	return s
}

// report is what the state says to others.
func (s state) report() engine.Report {
	r := engine.Report{Engine: Name, State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: s.version}
	switch {
	case s.need == confirmed && s.version != "":
		r.Message = fmt.Sprintf("update_engine has installed version %s; it runs after a reboot.", s.version)
	case s.need == confirmed:
		r.Message = "update_engine has installed an update; it runs after a reboot."
	case s.need == latched && s.version != "":
		r.Latched = true
		r.Message = fmt.Sprintf("A StatusUpdate broadcast asks for a reboot into version %s; update_engine itself does not.", s.version)
	case s.need == latched:
		r.Latched = true
		r.Message = "A StatusUpdate broadcast asks for a reboot; update_engine itself does not."
	case s.unreachable != "":
		r.State, r.Reason, r.Message = engine.Unknown, v1alpha1.ReasonEngineUnreachable, s.unreachable
	default:
		r.State, r.Reason, r.Message = engine.NotNeeded, v1alpha1.ReasonUpToDate, "update_engine has no update that waits for a reboot."
	}
	r.Message = engine.Shorten(r.Message)
	return r
}
