package cosupdateengine

import (
	"cmp"
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
)

// title is what people call the service: Flatcar's has the same name and may be reported beside it.
const title = "COS update_engine"

// resumed is the status after a restart of the agent in the same boot, made from what it had reported before.
func resumed(before engine.Report) status {
	if before.State != engine.Needed {
		return status{}
	}
	return status{operation: updatestatus.UpdatedNeedReboot, version: before.Version}
}

// next is what counts after the engine has reported a status. A need falls when the engine reports something else. That it checks
// for a newer update, in vain or not, reports nothing about the one that is staged.
func (s status) next(received status) status {
	switch {
	case s.needsReboot() && received.checks():
		return s
	case s.needsReboot() && received.needsReboot():
		// A restarted engine still needs the reboot and has forgotten the version.
		received.version = cmp.Or(received.version, s.version)
	}
	return received
}

// report is what the status reports to others.
func (s status) report() engine.Report {
	if s.needsReboot() {
		return engine.Staged(Name, s.version, fmt.Sprintf("%s has installed %s; it runs after a reboot.", title, s.what()))
	}
	return engine.UpToDate(Name, title+" "+s.noNeed())
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
	case updatestatus.Error:
		return fmt.Sprintf("reports an error (ERROR%s); no update waits for a reboot.", s.code())
	case updatestatus.ReportingErrorEvent:
		return fmt.Sprintf("reports that its last attempt failed (REPORTING_ERROR_EVENT%s); no update waits for a reboot.", s.code())
	case updatestatus.UpdatedButDeferred:
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
