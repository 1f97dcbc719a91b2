package cosupdateengine

import "github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"

// status is what matters of update_engine.StatusResult.
type status struct {
	operation updatestatus.Operation
	// version staged or on its way. Empty: unknown.
	version string
	// install reports that downloadable content (DLC) goes through the operations and the system's own image does not: that
	// never needs a reboot.
	install bool
	// attemptError is the error code of the last attempt. 0: none, or unknown.
	attemptError int32
}

func (s status) needsReboot() bool {
	return s.operation == updatestatus.UpdatedNeedReboot && !s.install
}

// checks reports whether update_engine asks its server for an update of the system, or reports to it that this failed. With repeated
// updates on it does so while one waits for its reboot, which it reports again afterwards. A download that fails comes after another
// operation.
func (s status) checks() bool {
	return (s.operation == updatestatus.CheckingForUpdate || s.operation == updatestatus.ReportingErrorEvent) && !s.install
}

// decodePlain reads the body of GetStatus and StatusUpdate, which cannot distinguish installs and errors.
func decodePlain(body []any) (status, error) {
	decoded, err := updatestatus.Decode(body)
	return status{operation: decoded.Operation, version: decoded.Version}, err
}
