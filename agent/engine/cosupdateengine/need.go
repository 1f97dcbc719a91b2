package cosupdateengine

import (
	"cmp"
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// title is what people call the service: Flatcar's has the same name and may be reported beside it.
const title = "COS update_engine"

// state is everything known about update_engine.
type state struct {
	// status it reported last; that of an idle engine before it reported any.
	status status
	// unreachable is a sentence that states why the engine cannot be asked. Empty: it answered last time.
	unreachable string
}

// input is one thing that was received.
type input struct {
	// unreachable reports that the engine could not be asked, and why; nothing else counts then.
	unreachable string
	status      status
}

// resumed is the state after a restart of the agent in the same boot, made from what it had reported before.
func resumed(before engine.Report) state {
	s := state{unreachable: title + " has not been asked yet."}
	if before.State == engine.Needed {
		s.status = status{operation: opUpdatedNeedReboot, version: before.Version}
	}
	return s
}

// next is the state after one more thing was received. A need falls when the engine reports something else, and not before: it
// is in the boot loader, not in the engine's process, and outlives the engine and the bus. That the engine checks for a newer
// update reports nothing about the one that is staged.
func next(s state, in input) state {
	if in.unreachable != "" {
		s.unreachable = in.unreachable
		return s
	}
	next := in.status
	switch {
	case s.status.needsReboot() && next.checks():
		next = s.status
	case s.status.needsReboot() && next.needsReboot():
		// A restarted engine still needs the reboot and has forgotten the version.
		next.version = cmp.Or(next.version, s.status.version)
	}
	return state{status: next}
}

// report is what the state reports to others.
func (s state) report() engine.Report {
	switch {
	case s.status.needsReboot():
		return engine.Staged(Name, s.status.version, fmt.Sprintf("%s has installed %s; it runs after a reboot.", title, s.status.what()))
	case s.unreachable != "":
		return engine.Unreachable(Name, s.unreachable)
	}
	return engine.UpToDate(Name, title+" "+s.status.noNeed())
}

// what is being installed, for people.
func (s status) what() string {
	if s.version == "" {
		return "an update"
	}
	return "version " + s.version
}

// noNeed states why there is no need: the rest of a sentence about the engine.
func (s status) noNeed() string {
	switch s.operation {
	case opError:
		return fmt.Sprintf("reports an error (ERROR%s); no update waits for a reboot.", s.code())
	case opReportingErrorEvent:
		return fmt.Sprintf("reports that its last attempt failed (REPORTING_ERROR_EVENT%s); no update waits for a reboot.", s.code())
	case opUpdatedButDeferred:
		return fmt.Sprintf("has deferred %s (UPDATED_BUT_DEFERRED); a reboot would not apply it.", s.what())
	default:
		return "has no update that waits for a reboot."
	}
}

// code returns the error code of the last attempt where there is one.
func (s status) code() string {
	if s.attemptError == 0 {
		return ""
	}
	return fmt.Sprintf(", error code %d", s.attemptError)
}
