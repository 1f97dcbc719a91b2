// Package fleetlock decides how FleetLock clients, such as Zincati of Fedora CoreOS, are answered.
// Every answer is derived from the client's Node and the ledger, so that any replica of the manager
// can give it, even after a restart.
//
// https://coreos.github.io/zincati/development/fleetlock/protocol/
package fleetlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/reboot-operator/reboot-operator/api/protocol"
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
	// Unlike encoding/json, this decoder distinguishes capital letters and finds duplicate keys.
	duplicates, err := json.UnmarshalStrict(body, &content, json.DisallowDuplicateFields)
	if err != nil || len(duplicates) > 0 {
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

// recordEvery is the age at which a request is recorded again. Even if a client asks right before
// that and is then held, its next request comes within protocol.FleetLockLasts.
const recordEvery = 20 * time.Minute

// Record returns the request to write on the Node of a client that asks for a reboot. It is nil if
// the Node shows it already, or if an engine of the agent reports for the client, as rpm-ostree does
// for Zincati.
func Record(node *corev1.Node, id string, now time.Time) *protocol.FleetLockRequest {
	boot := node.Status.NodeInfo.BootID
	if boot == "" || isReported(node, boot) {
		return nil
	}
	last, err := protocol.ParseFleetLock(node.Annotations)
	if err == nil && last.Counts(boot, now) && now.Before(last.At.Add(recordEvery)) {
		return nil
	}
	return &protocol.FleetLockRequest{BootID: boot, ID: id, At: metav1.NewTime(now)}
}

// isReported reports whether an engine asks for a reboot on behalf of the host's client.
func isReported(node *corev1.Node, boot string) bool {
	engines, err := protocol.ParseEngines(node.Annotations)
	return err == nil && engines != nil && engines.BootID == boot && slices.ContainsFunc(engines.Reported, func(e protocol.EngineRecord) bool {
		return e.Asks && e.Client != "" && e.Name != protocol.FleetLockEngine
	})
}
