// Package updatestatus decodes the status of update_engine: five values of the D-Bus types xdssx.
// Chromium OS introduced it, and CoreOS and Flatcar inherited it.
package updatestatus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// Operation is the current activity of update_engine, as in update_engine.Operation of Chromium OS'
// system_api. CoreOS and Flatcar know only the values from 0 (idle) to ReportingErrorEvent. An
// operation without a constant here means that nothing is staged: a download overwrites what was
// staged before.
type Operation int32

const (
	// Error is the lowest operation.
	Error Operation = -1
	// CheckingForUpdate means update_engine is querying its server for an update.
	CheckingForUpdate Operation = 1
	// UpdatedNeedReboot means an update is staged.
	UpdatedNeedReboot Operation = 6
	// ReportingErrorEvent means update_engine is reporting a failed attempt to its server.
	ReportingErrorEvent Operation = 7
	// UpdatedButDeferred means a reboot would not apply the update. It is the highest operation.
	UpdatedButDeferred Operation = 12
)

// IsKnown reports whether the number is an operation at all. An unknown number does not prove that
// a need is gone.
func (o Operation) IsKnown() bool { return Error <= o && o <= UpdatedButDeferred }

// parseOperation reads an operation as update_engine spells it. Its fallback "unknown status" is an
// error.
func parseOperation(text string) (Operation, error) {
	names := []string{ // From Error on.
		"ERROR", "IDLE", "CHECKING_FOR_UPDATE", "UPDATE_AVAILABLE", "DOWNLOADING", "VERIFYING", "FINALIZING",
		"UPDATED_NEED_REBOOT", "REPORTING_ERROR_EVENT", "ATTEMPTING_ROLLBACK", "DISABLED", "NEED_PERMISSION_TO_UPDATE",
		"CLEANUP_PREVIOUS_UPDATE", "UPDATED_BUT_DEFERRED",
	}
	name, found := strings.CutPrefix(text, "UPDATE_STATUS_")
	if i := slices.Index(names, name); found && i >= 0 {
		return Error + Operation(i), nil
	}
	return 0, fmt.Errorf("unknown operation %.64q", text)
}

// Status holds the part of GetStatus and StatusUpdate that matters. The body has last checked,
// progress, operation, version and size.
type Status struct {
	Operation Operation
	// Version is the version that is staged or being installed, or empty if it is unknown.
	Version string
}

// Decode reads a body and refuses everything that update_engine would not send. dbus.Store would
// accept too much: it converts types, so that a number becomes a text of one character.
func Decode(body []any) (Status, error) {
	if len(body) != 5 {
		return Status{}, fmt.Errorf("%d values instead of 5", len(body))
	}
	_, checkedOK := body[0].(int64)
	_, progressOK := body[1].(float64)
	spelled, operationOK := body[2].(string)
	text, textOK := body[3].(string)
	_, sizeOK := body[4].(int64)
	if !checkedOK || !progressOK || !operationOK || !textOK || !sizeOK {
		return Status{}, errors.New("types other than xdssx")
	}
	version, err := Version(text)
	if err != nil {
		return Status{}, err
	}
	operation, err := parseOperation(spelled)
	if err != nil {
		return Status{}, err
	}
	return Status{Operation: operation, Version: version}, nil
}

// Version validates a version field. It returns "" for the placeholders of an unknown version:
// 0.0.0, or 0.0.0.0 on Chromium OS. It returns an error for text that cannot be a version.
func Version(text string) (string, error) {
	if text == "" || text == "0.0.0" || text == "0.0.0.0" {
		return "", nil
	}
	if !engine.IsVersion(text) {
		return "", fmt.Errorf("%.64q is not a version", text)
	}
	return text, nil
}
