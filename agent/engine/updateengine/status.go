package updateengine

import (
	"errors"
	"fmt"
	"strings"
)

// operation is what update_engine is doing, as it spells it on the bus.
type operation string

// The operations of update_engine 0.4.10. VERIFYING is defined there and never set.
const (
	opIdle                operation = "UPDATE_STATUS_IDLE"
	opCheckingForUpdate   operation = "UPDATE_STATUS_CHECKING_FOR_UPDATE"
	opUpdateAvailable     operation = "UPDATE_STATUS_UPDATE_AVAILABLE"
	opDownloading         operation = "UPDATE_STATUS_DOWNLOADING"
	opVerifying           operation = "UPDATE_STATUS_VERIFYING"
	opFinalizing          operation = "UPDATE_STATUS_FINALIZING"
	opUpdatedNeedReboot   operation = "UPDATE_STATUS_UPDATED_NEED_REBOOT"
	opReportingErrorEvent operation = "UPDATE_STATUS_REPORTING_ERROR_EVENT"
)

// isKnown tells an operation from a word that says nothing. "unknown status", which update_engine falls back to, is no
// evidence that a need has gone.
func (o operation) isKnown() bool {
	switch o {
	case opIdle, opCheckingForUpdate, opUpdateAvailable, opDownloading, opVerifying, opFinalizing, opUpdatedNeedReboot,
		opReportingErrorEvent:
		return true
	}
	return false
}

// maxVersionBytes is several times what any version has. Anybody on the host may broadcast, and the version ends up in
// the Node.
const maxVersionBytes = 64

// status is what matters of the body of GetStatus and StatusUpdate, which have the same signature, xdssx: last checked,
// progress, operation, version, size.
type status struct {
	operation operation
	// version staged or on its way. Empty: unknown, which update_engine also writes as 0.0.0.
	version string
}

func (s status) needsReboot() bool { return s.operation == opUpdatedNeedReboot }

// decode reads a body, and refuses whatever update_engine would not send. dbus.Store is no help: it converts what it can,
// so that a number becomes the text of one character.
func decode(body []any) (status, error) {
	if len(body) != 5 {
		return status{}, fmt.Errorf("%d values instead of 5", len(body))
	}
	_, checkedOK := body[0].(int64)
	_, progressOK := body[1].(float64)
	op, opOK := body[2].(string)
	version, versionOK := body[3].(string)
	_, sizeOK := body[4].(int64)
	if !checkedOK || !progressOK || !opOK || !versionOK || !sizeOK {
		return status{}, errors.New("types other than xdssx")
	}
	if !operation(op).isKnown() {
		return status{}, fmt.Errorf("unknown operation %.64q", op)
	}
	if version != "" && !isVersion(version) {
		return status{}, fmt.Errorf("%.64q is no version", version)
	}
	if version == "0.0.0" {
		version = ""
	}
	return status{operation: operation(op), version: version}, nil
}

// isVersion takes what versions of Flatcar and CoreOS are made of, such as 4081.2.0 or 4116.0.0+nightly-20241018-2100. A
// text with blanks could pass for a sentence of ours in the Node's condition.
func isVersion(version string) bool {
	const ends = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(version) <= maxVersionBytes && strings.Trim(version, ends+"._+~-") == "" &&
		strings.TrimRight(version, ends) != version
}
