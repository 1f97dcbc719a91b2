// Package updatestatus reads the status of every update_engine: five values, xdssx. Chromium OS has one, and CoreOS and Flatcar have
// theirs from it.
package updatestatus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// Operation is what update_engine is doing: update_engine.Operation of Chromium OS' system_api. CoreOS and Flatcar have those from
// 0, which is idle, to ReportingErrorEvent. One that is not named here reports only that nothing is staged: a download overwrites what was.
type Operation int32

const (
	// Error is the first one.
	Error Operation = -1
	// CheckingForUpdate means the server is asked for an update.
	CheckingForUpdate Operation = 1
	// UpdatedNeedReboot means an update is staged.
	UpdatedNeedReboot Operation = 6
	// ReportingErrorEvent means the server gets to know that an attempt failed.
	ReportingErrorEvent Operation = 7
	// UpdatedButDeferred means a reboot would not apply the update. It is the last one.
	UpdatedButDeferred Operation = 12
)

// IsKnown distinguishes an operation from a number that reports nothing, which is no evidence that a need has gone.
func (o Operation) IsKnown() bool { return Error <= o && o <= UpdatedButDeferred }

// parseOperation reads an operation as update_engine spells it. "unknown status", which it falls back to, is not one.
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

// Status is what matters of the body of GetStatus and StatusUpdate: last checked, progress, operation, version, size.
type Status struct {
	Operation Operation
	// Version staged or on its way. Empty: unknown.
	Version string
}

// Decode reads a body, and refuses whatever update_engine would not send. dbus.Store would accept too much: it converts what it can, so
// that a number becomes the text of one character.
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

// Version reads a version field. It returns "" for what update_engine reports while it knows none: 0.0.0, or 0.0.0.0 on
// Chromium OS. Text that is no version is an error.
func Version(text string) (string, error) {
	if text == "" || text == "0.0.0" || text == "0.0.0.0" {
		return "", nil
	}
	if !engine.IsVersion(text) {
		return "", fmt.Errorf("%.64q is no version", text)
	}
	return text, nil
}
