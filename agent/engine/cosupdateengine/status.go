package cosupdateengine

import (
	"cmp"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
)

// status holds the part of update_engine.StatusResult that matters.
type status struct {
	operation updatestatus.Operation
	// version is the version that is staged or being installed, or empty if it is unknown.
	version string
	// install is true if the operation installs downloadable content (DLC) instead of a system
	// image. DLC never needs a reboot.
	install bool
	// attemptError is the error code of the last attempt, or 0 if it succeeded or the code is
	// unknown.
	attemptError int32
}

func (s status) needsReboot() bool {
	return s.operation == updatestatus.UpdatedNeedReboot && !s.install
}

// checks reports whether update_engine is checking for a system update, or reporting that a check
// failed. With repeated updates on, it does both while a staged update waits for its reboot, and
// reports the staged update again afterwards. A failed download comes after another operation.
func (s status) checks() bool {
	return (s.operation == updatestatus.CheckingForUpdate || s.operation == updatestatus.ReportingErrorEvent) && !s.install
}

// resumed returns the status after a restart of the agent in the same boot, from the agent's last
// report.
func resumed(before engine.Report) status {
	if before.State != engine.Needed {
		return status{}
	}
	return status{operation: updatestatus.UpdatedNeedReboot, version: before.Version}
}

// next returns the status after the engine reported another one. A need ends when the engine
// reports something else, except for a check: checking for a newer update says nothing about the
// staged one.
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

// report returns the status as a report.
func (s status) report() engine.Report {
	if s.needsReboot() {
		return engine.Staged(Name, s.version, fmt.Sprintf("%s has installed %s; it runs after a reboot.", title, s.update()))
	}
	return engine.UpToDate(Name, title+" "+s.noNeed())
}

// update names the update for people.
func (s status) update() string {
	if s.version == "" {
		return "an update"
	}
	return "version " + s.version
}

// noNeed explains why a reboot is not needed, as the rest of a sentence about the engine.
func (s status) noNeed() string {
	switch s.operation {
	case updatestatus.Error:
		return fmt.Sprintf("reports an error (ERROR%s); no update waits for a reboot.", s.code())
	case updatestatus.ReportingErrorEvent:
		return fmt.Sprintf("reports that its last attempt failed (REPORTING_ERROR_EVENT%s); no update waits for a reboot.", s.code())
	case updatestatus.UpdatedButDeferred:
		return fmt.Sprintf("has deferred %s (UPDATED_BUT_DEFERRED); a reboot would not apply it.", s.update())
	default:
		return "has no update that waits for a reboot."
	}
}

// code returns the error code of the last attempt for a message, or an empty text.
func (s status) code() string {
	if s.attemptError == 0 {
		return ""
	}
	return fmt.Sprintf(", error code %d", s.attemptError)
}

// decodePlain reads the body of GetStatus and StatusUpdate, which do not tell installs and errors
// apart.
func decodePlain(body []any) (status, error) {
	decoded, err := updatestatus.Decode(body)
	return status{operation: decoded.Operation, version: decoded.Version}, err
}

// maxResultBytes is far more than a real status has.
const maxResultBytes = 64 << 10

// decodeAdvanced reads the body of GetStatusAdvanced and StatusUpdateAdvanced: one byte array that
// holds a protobuf message.
func decodeAdvanced(body []any) (status, error) {
	if len(body) != 1 {
		return status{}, fmt.Errorf("%d values instead of 1", len(body))
	}
	message, ok := body[0].([]byte)
	if !ok {
		return status{}, errors.New("the value is not an array of bytes")
	}
	if len(message) > maxResultBytes {
		return status{}, fmt.Errorf("a message of %d bytes", len(message))
	}
	return decodeResult(message)
}

// decodeResult reads update_engine.StatusResult, proto3. A missing field is zero, so an idle engine
// sends no operation. The last of several values counts, and unknown fields are ignored.
func decodeResult(message []byte) (status, error) {
	var s status
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return status{}, fmt.Errorf("a tag: %w", protowire.ParseError(n))
		}
		message = message[n:]
		if want, known := wireType(number); known && wire != want {
			return status{}, fmt.Errorf("field %d has wire type %d instead of %d", number, wire, want)
		}
		if n = protowire.ConsumeFieldValue(number, wire, message); n < 0 {
			return status{}, fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		if err := s.set(number, message[:n]); err != nil {
			return status{}, err
		}
		message = message[n:]
	}
	if !s.operation.IsKnown() {
		return status{}, fmt.Errorf("unknown operation %d", s.operation)
	}
	return s, nil
}

// Fields of update_engine.StatusResult.
const (
	fieldLastCheckedTime  protowire.Number = 1
	fieldProgress         protowire.Number = 2
	fieldCurrentOperation protowire.Number = 3
	fieldNewVersion       protowire.Number = 4
	fieldNewSize          protowire.Number = 5
	fieldIsInstall        protowire.Number = 7
	fieldLastAttemptError protowire.Number = 10
)

// wireType returns the wire type of a field, and whether the field is known.
func wireType(number protowire.Number) (wire protowire.Type, known bool) {
	switch number {
	case fieldLastCheckedTime, fieldCurrentOperation, fieldNewSize, fieldIsInstall, fieldLastAttemptError:
		return protowire.VarintType, true
	case fieldProgress:
		return protowire.Fixed64Type, true
	case fieldNewVersion:
		return protowire.BytesType, true
	default:
		return 0, false
	}
}

// set stores the value of one field. The value is complete and has the wire type of the field.
func (s *status) set(number protowire.Number, value []byte) error {
	varint, _ := protowire.ConsumeVarint(value)
	switch number {
	case fieldCurrentOperation:
		s.operation = updatestatus.Operation(varint)
	case fieldIsInstall:
		s.install = protowire.DecodeBool(varint)
	case fieldLastAttemptError:
		s.attemptError = int32(varint)
	case fieldNewVersion:
		text, _ := protowire.ConsumeBytes(value)
		version, err := updatestatus.Version(string(text))
		s.version = version
		return err
	default: // The others report nothing about a reboot.
	}
	return nil
}
