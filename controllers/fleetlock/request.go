// Package fleetlock decides how FleetLock clients, such as Zincati of Fedora CoreOS, are answered.
// Every answer is derived from the client's Node and the ledger, so that any replica of the manager
// can give it, even after a restart.
//
// https://coreos.github.io/zincati/development/fleetlock/protocol/
package fleetlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MaxBodyBytes bounds what is read of a request. One of Zincati has about 80 bytes.
const MaxBodyBytes = 4 << 10

// maxWordBytes bounds an id and a group. A Node's name, which may be an id, is at most as long.
const maxWordBytes = 253

// Request holds the parameters of a client.
type Request struct {
	// ID identifies the client.
	ID string
	// Group is the client's reboot group. It is ignored, because policies select Nodes by their
	// labels.
	Group string
}

// Parse reads the body of a request. Its error is a sentence for the client.
func Parse(body []byte) (Request, error) {
	var content struct {
		Params *struct {
			ID    *string `json:"id"`
			Group *string `json:"group"`
		} `json:"client_params"`
	}
	if len(body) > MaxBodyBytes {
		return Request{}, fmt.Errorf("the body has more than %d bytes", MaxBodyBytes)
	}
	if err := json.Unmarshal(body, &content); err != nil {
		return Request{}, errors.New(`the body is not JSON such as {"client_params": {"id": "...", "group": "default"}}`)
	}
	params := content.Params
	if params == nil || params.ID == nil || params.Group == nil {
		return Request{}, errors.New("the body needs client_params with id and group")
	}
	if !isWord(*params.ID, "._:-") {
		return Request{}, fmt.Errorf("client_params.id must be 1 to %d letters, digits, dots, dashes, colons and underscores", maxWordBytes)
	}
	if !isWord(*params.Group, ".-") {
		return Request{}, fmt.Errorf("client_params.group must be 1 to %d letters, digits, dots and dashes", maxWordBytes)
	}
	return Request{ID: *params.ID, Group: *params.Group}, nil
}

// isWord reports whether text consists of at least one letter, digit or other given character.
func isWord(text, others string) bool {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return text != "" && len(text) <= maxWordBytes && strings.Trim(text, alphanumeric+others) == ""
}
