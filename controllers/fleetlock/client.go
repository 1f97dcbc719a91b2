package fleetlock

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// appID is Zincati's application ID, the one by which its documentation computes the ID of a node:
// systemd-id128 machine-id --app-specific=de35106b6ec24688b63afddaa156679b.
const appID = "de35106b6ec24688b63afddaa156679b"

// MachineIDs returns the ids by which a client may identify this Node: its name, and the
// app-specific ID computed from the machine ID that the kubelet reports.
func MachineIDs(node *corev1.Node) []string {
	return append(appSpecific(node.Status.NodeInfo.MachineID), Normalize(node.Name))
}

// FirmwareIDs returns the ids by which a client may identify this Node if no other one matches,
// because some kubelets report the host's machine ID in systemUUID.
func FirmwareIDs(node *corev1.Node) []string {
	return appSpecific(node.Status.NodeInfo.SystemUUID)
}

// Normalize returns an id as MachineIDs and FirmwareIDs spell it. An ID of 128 bits may have dashes
// and capital letters.
func Normalize(id string) string {
	if raw, ok := parseID(id); ok {
		return hex.EncodeToString(raw)
	}
	return id
}

// appSpecific returns what sd_id128_get_machine_app_specific(3) computes from a machine ID, or
// nothing if it is not an ID.
func appSpecific(machineID string) []string {
	key, ok := parseID(machineID)
	if !ok || !slices.ContainsFunc(key, func(b byte) bool { return b != 0 }) {
		return nil
	}
	message, _ := parseID(appID)
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	id := mac.Sum(nil)[:16]
	id[6] = id[6]&0x0f | 0x40 // a random UUID, version 4
	id[8] = id[8]&0x3f | 0x80
	return []string{hex.EncodeToString(id)}
}

// parseID reads an ID of 128 bits, with or without dashes.
func parseID(text string) ([]byte, bool) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	return raw, err == nil && len(raw) == 16
}

// Client returns the Node of a client. byMachine and byFirmware are the Nodes that have the id
// among their MachineIDs and FirmwareIDs. The Answer is a refusal unless exactly one Node matches.
func Client(id string, byMachine, byFirmware []corev1.Node) (*corev1.Node, Answer) {
	nodes := byMachine
	if len(nodes) == 0 {
		nodes = byFirmware
	}
	switch len(nodes) {
	case 0:
		return nil, refuse(v1alpha1.ReasonUnknownClient, fmt.Sprintf(
			"No Node has the name %s, or a machine ID from which this app-specific ID is derived. See identity.node_uuid of Zincati, and status.nodeInfo.machineID of the Node.", id))
	case 1:
		return &nodes[0], Answer{}
	}
	return nil, refuse(v1alpha1.ReasonAmbiguousClient, fmt.Sprintf(
		"%d Nodes have the ID %s: %s. Give each cloned machine a new /etc/machine-id.", len(nodes), id,
		message.List(nodes, maxNamed, func(n corev1.Node) string { return n.Name })))
}

// maxNamed is the largest number of Nodes in a message.
const maxNamed = 3

// ComesFrom reports whether an IP address is one of the Node's, however either is written.
func ComesFrom(node *corev1.Node, address string) bool {
	from, ok := parseIP(address)
	return ok && slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		own, ok := parseIP(a.Address)
		return ok && own == from
	})
}

// parseIP reads an address of IPv4 or IPv6, without its zone.
func parseIP(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	return ip.Unmap().WithZone(""), err == nil
}
