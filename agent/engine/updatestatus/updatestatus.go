// Package updatestatus reads the status that every update_engine hands out as five values, xdssx: Chromium OS's, and
// those of CoreOS and Flatcar, which descend from it.
package updatestatus

import (
	"errors"
	"fmt"
	"strings"
)

// Status is what matters of the body of GetStatus and StatusUpdate: last checked, progress, operation, version, size.
type Status struct {
	// Operation is what update_engine is doing, as it spells it: UPDATE_STATUS_ and a word. It may be any text.
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

// maxVersionBytes is several times what any version has. Anybody on the host may broadcast, and the version ends up in
// the Node.
const maxVersionBytes = 64

// Version reads a version field. It returns "" for what update_engine reports while it knows none: 0.0.0, or 0.0.0.0 on
// Chromium OS. Text that is no version is an error.
func Version(text string) (string, error) {
	if text == "" || text == "0.0.0" || text == "0.0.0.0" {
		return "", nil
	}
	if !isVersion(text) {
		return "", fmt.Errorf("%.64q is no version", text)
	}
	return text, nil
}

// isVersion takes what versions are made of, such as 4081.2.0 or 4116.0.0+nightly-20241018-2100. A text with blanks could
// pass for a sentence of ours in the Node's condition.
func isVersion(version string) bool {
	const ends = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(version) <= maxVersionBytes && strings.Trim(version, ends+"._+~-") == "" &&
		strings.TrimRight(version, ends) != version
}
