package host

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

// SocketOf returns the socket that a D-Bus address names, below root. It takes only a socket of this host: a D-Bus library
// also takes addresses that dial another host or run a program.
func SocketOf(address, root string) (string, error) {
	pairs, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix || strings.ContainsAny(address, ";\x00") {
		return "", fmt.Errorf("address %.128q is no socket of this host", address)
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		key, escaped, _ := strings.Cut(pair, "=")
		value, err := dbus.UnescapeBusAddressValue(escaped)
		switch {
		case err != nil || strings.ContainsRune(value, 0):
			return "", fmt.Errorf("address %.128q cannot be read", address)
		case key == "path" && filepath.IsAbs(value):
			return filepath.Join(root, filepath.Clean(value)), nil
		case key == "abstract" && value != "": // rpm-ostree before February 2023; reachable in the host's network only
			return "@" + value, nil
		}
	}
	return "", fmt.Errorf("address %.128q names no socket", address)
}
