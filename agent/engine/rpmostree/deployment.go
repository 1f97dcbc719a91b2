package rpmostree

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// checksumBytes is the length of a commit's SHA-256 in hexadecimal digits.
const checksumBytes = 64

// deployment is what matters of a version of the operating system on disk: an entry of Sysroot's property Deployments.
type deployment struct {
	// version of the build. Empty: unknown; trees can be composed without one.
	version string
	// checksum of the commit. Empty: unknown.
	checksum string
	// serial distinguishes deployments of one commit, such as those that differ in kernel arguments alone.
	serial int32
	// booted reports that the host runs it.
	booted bool
	// staged reports that it is written into the boot loader by the shutdown only.
	staged bool
	// locked reports that the shutdown leaves it out until FinalizeDeployment is called, by Zincati for example.
	locked bool
}

// decodeDeployments reads the property: the deployments in boot order, the one that boots next first. ignored reports
// versions and checksums that are none; they are left out, because a need without a name is still a need.
func decodeDeployments(value dbus.Variant) (list []deployment, ignored, err error) {
	entries, ok := value.Value().([]map[string]dbus.Variant)
	if !ok {
		return nil, nil, fmt.Errorf("type %s instead of aa{sv}", value.Signature())
	}
	booted := 0
	for i, properties := range entries {
		d, odd, err := decodeDeployment(properties)
		if err != nil {
			return nil, nil, fmt.Errorf("deployment %d: %w", i, err)
		}
		if d.booted {
			booted++
		}
		list, ignored = append(list, d), errors.Join(ignored, odd)
	}
	if booted > 1 {
		return nil, nil, fmt.Errorf("%d deployments are booted at once", booted)
	}
	return list, ignored, nil
}

// decodeDeployment reads one dictionary. What is missing is false or unknown: daemons differ in what they leave out.
func decodeDeployment(properties map[string]dbus.Variant) (d deployment, ignored, err error) {
	var failures [6]error
	d.version, failures[0] = field[string](properties, "version")
	d.checksum, failures[1] = field[string](properties, "checksum")
	d.booted, failures[2] = field[bool](properties, "booted")
	d.staged, failures[3] = field[bool](properties, "staged")
	d.locked, failures[4] = field[bool](properties, "finalization-locked")
	d.serial, failures[5] = field[int32](properties, "serial")
	if err := errors.Join(failures[:]...); err != nil {
		return deployment{}, nil, err
	}
	if d.version != "" && !engine.IsVersion(d.version) {
		d.version, ignored = "", fmt.Errorf("%.64q is no version", d.version)
	}
	if d.checksum != "" && !isChecksum(d.checksum) {
		d.checksum, ignored = "", errors.Join(ignored, fmt.Errorf("%.64q is no checksum", d.checksum))
	}
	return d, ignored, nil
}

// field is one value of a dictionary. Absent: the type's zero.
func field[T any](properties map[string]dbus.Variant, key string) (T, error) {
	var none T
	variant, found := properties[key]
	if !found {
		return none, nil
	}
	value, ok := variant.Value().(T)
	if !ok {
		return none, fmt.Errorf("%s is of type %s", key, variant.Signature())
	}
	return value, nil
}

func isChecksum(checksum string) bool {
	return len(checksum) == checksumBytes && strings.Trim(checksum, "0123456789abcdef") == ""
}
