package cosupdateengine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
)

// operation is what update_engine is doing: update_engine.Operation of Chromium OS' system_api.
type operation int32

const (
	// The first and the last one. What lies between them and is not named here reports only that nothing is staged: a download
	// overwrites what was.
	opError               operation = -1
	opIdle                operation = 0
	opCheckingForUpdate   operation = 1
	opUpdatedNeedReboot   operation = 6
	opReportingErrorEvent operation = 7
	opUpdatedButDeferred  operation = 12
)

// isKnown distinguishes an operation from a number that reports nothing, which is no evidence that a need has gone.
func (o operation) isKnown() bool { return opError <= o && o <= opUpdatedButDeferred }

// parseOperation reads an operation as GetStatus spells it.
func parseOperation(text string) (operation, error) {
	names := []string{ // From opError on.
		"ERROR", "IDLE", "CHECKING_FOR_UPDATE", "UPDATE_AVAILABLE", "DOWNLOADING", "VERIFYING", "FINALIZING",
		"UPDATED_NEED_REBOOT", "REPORTING_ERROR_EVENT", "ATTEMPTING_ROLLBACK", "DISABLED", "NEED_PERMISSION_TO_UPDATE",
		"CLEANUP_PREVIOUS_UPDATE", "UPDATED_BUT_DEFERRED",
	}
	name, found := strings.CutPrefix(text, "UPDATE_STATUS_")
	if i := slices.Index(names, name); found && i >= 0 {
		return opError + operation(i), nil
	}
	return 0, fmt.Errorf("unknown operation %.64q", text)
}

// status is what matters of update_engine.StatusResult.
type status struct {
	operation operation
	// version staged or on its way. Empty: unknown.
	version string
	// install reports that downloadable content (DLC) goes through the operations and the system's own image does not: that
	// never needs a reboot.
	install bool
	// attemptError is the error code of the last attempt. 0: none, or unknown.
	attemptError int32
}

func (s status) needsReboot() bool { return s.operation == opUpdatedNeedReboot && !s.install }

// checks reports whether update_engine asks its server for an update of the system, or reports to it that this failed. With repeated
// updates on it does so while one waits for its reboot, which it reports again afterwards. A download that fails comes after another
// operation.
func (s status) checks() bool {
	return (s.operation == opCheckingForUpdate || s.operation == opReportingErrorEvent) && !s.install
}

// decodePlain reads the body of GetStatus and StatusUpdate, which cannot distinguish installs and errors.
func decodePlain(body []any) (status, error) {
	decoded, err := updatestatus.Decode(body)
	if err != nil {
		return status{}, err
	}
	op, err := parseOperation(decoded.Operation)
	if err != nil {
		return status{}, err
	}
	return status{operation: op, version: decoded.Version}, nil
}
