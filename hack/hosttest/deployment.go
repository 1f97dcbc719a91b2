package hosttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// osName is the one operating system of the fake rpm-ostree.
const osName = "fedora-coreos"

// Deployment is a version of the operating system on disk, as rpm-ostree lists it.
type Deployment struct {
	// Version of the build. It is empty if the tree was composed without one.
	Version string
	// Checksum of the commit. It defaults to Commit(Version).
	Checksum string
	// Booted reports whether the host runs it.
	Booted bool
	// Staged reports whether it is written into the boot loader only at shutdown.
	Staged bool
	// Locked reports whether the shutdown ignores it until it is finalized. Only staged deployments
	// can be locked.
	Locked bool
}

// Commit returns a checksum made from a version.
func Commit(version string) string {
	sum := sha256.Sum256([]byte(version))
	return hex.EncodeToString(sum[:])
}

func (d Deployment) checksum() string {
	if d.Checksum != "" {
		return d.Checksum
	}
	return Commit(d.Version)
}

// properties returns the dictionary of the real daemon, as far as the agent might read it.
func (d Deployment) properties() map[string]dbus.Variant {
	commit := map[string]dbus.Variant{"ostree.linux": dbus.MakeVariant("6.8.9-300.fc40.x86_64")}
	p := map[string]dbus.Variant{
		"id":                   dbus.MakeVariant(fmt.Sprintf("%s-%s.0", osName, d.checksum())),
		"osname":               dbus.MakeVariant(osName),
		"serial":               dbus.MakeVariant(int32(0)),
		"checksum":             dbus.MakeVariant(d.checksum()),
		"timestamp":            dbus.MakeVariant(uint64(1_715_500_000)),
		"origin":               dbus.MakeVariant("fedora:fedora/x86_64/coreos/stable"),
		"booted":               dbus.MakeVariant(d.Booted),
		"staged":               dbus.MakeVariant(d.Staged),
		"pinned":               dbus.MakeVariant(false),
		"unlocked":             dbus.MakeVariant("none"),
		"packages":             dbus.MakeVariant([]string{}),
		"requested-packages":   dbus.MakeVariant([]string{}),
		"regenerate-initramfs": dbus.MakeVariant(false),
		"base-commit-meta":     dbus.MakeVariant(commit),
	}
	if d.Version != "" {
		p["version"] = dbus.MakeVariant(d.Version)
	}
	if d.Locked {
		p["finalization-locked"] = dbus.MakeVariant(true)
	}
	return p
}

// orNone returns the dictionary of the first matching deployment, or an empty one.
func orNone(deployments []Deployment, as func(Deployment) bool) map[string]dbus.Variant {
	for _, d := range deployments {
		if as(d) {
			return d.properties()
		}
	}
	return map[string]dbus.Variant{}
}
