package updateengine

import (
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
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

// isKnown distinguishes an operation from a text that reports nothing. "unknown status", which update_engine falls back to, is no
// evidence that a need has gone.
func (o operation) isKnown() bool {
	switch o {
	case opIdle, opCheckingForUpdate, opUpdateAvailable, opDownloading, opVerifying, opFinalizing, opUpdatedNeedReboot,
		opReportingErrorEvent:
		return true
	}
	return false
}

// status is what matters of the body of GetStatus and StatusUpdate, which is the same.
type status struct {
	operation operation
	// version staged or on its way. Empty: unknown, which update_engine also writes as 0.0.0.
	version string
}

func (s status) needsReboot() bool { return s.operation == opUpdatedNeedReboot }

// decode reads a body, and refuses whatever update_engine would not send.
func decode(body []any) (status, error) {
	decoded, err := updatestatus.Decode(body)
	if err != nil {
		return status{}, err
	}
	s := status{operation: operation(decoded.Operation), version: decoded.Version}
	if !s.operation.isKnown() {
		return status{}, fmt.Errorf("unknown operation %.64q", decoded.Operation)
	}
	return s, nil
}
