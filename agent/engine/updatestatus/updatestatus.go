// Package updatestatus reads the status that every update_engine hands out as five values, xdssx: Chromium OS's, and
// those of CoreOS and Flatcar, which descend from it.
package updatestatus

import (
	"errors"
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// Status is what matters of the body of GetStatus and StatusUpdate: last checked, progress, operation, version, size.
type Status struct {
	// Operation is what update_engine is doing, as it spells it: UPDATE_STATUS_ and a name. It may be any text.
	Operation string
	// Version staged or on its way. Empty: unknown.
	Version string
}

// Decode reads a body, and refuses whatever update_engine would not send. dbus.Store is no help: it converts what it can,
// so that a number becomes the text of one character.
func Decode(body []any) (Status, error) {
	if len(body) != 5 {
		return Status{}, fmt.Errorf("%d values instead of 5", len(body))
	}
	_, checkedOK := body[0].(int64)
	_, progressOK := body[1].(float64)
	operation, operationOK := body[2].(string)
	text, textOK := body[3].(string)
	_, sizeOK := body[4].(int64)
	if !checkedOK || !progressOK || !operationOK || !textOK || !sizeOK {
		return Status{}, errors.New("types other than xdssx")
	}
	version, err := Version(text)
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
