package rpmostree

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// checksumBytes is the length of a commit's SHA-256 in hexadecimal digits.
const checksumBytes = 64

// deployment holds the relevant properties of a version of the operating system on disk. It is an
// entry of Sysroot's property Deployments.
type deployment struct {
	// version of the build. It is empty if it is unknown, because trees can be composed without
	// one.
	version string
	// checksum of the commit, or empty if it is unknown.
	checksum string
	// baseChecksum is the checksum of the commit below layered packages, or empty without such
	// packages.
	baseChecksum string
	// serial distinguishes deployments of one commit, for example if only their kernel arguments
	// differ.
	serial int32
	// booted reports whether the host runs it.
	booted bool
	// staged reports whether it is written into the boot loader only by the shutdown.
	staged bool
	// locked reports whether the shutdown ignores it until FinalizeDeployment is called, for
	// example by Zincati.
	locked bool
}

// shownChecksumBytes is the length of the part of a checksum that people see.
const shownChecksumBytes = 12

// String names a deployment for people.
func (d deployment) String() string {
	switch commit := d.commit(); {
	case d.version != "" && commit != "":
		return fmt.Sprintf("version %s (%s)", d.version, commit)
	case d.version != "":
		return "version " + d.version
	case commit != "":
		return "commit " + commit
	}
	return "another deployment"
}

// commit returns the part of the checksum that people see, or an empty string if it is unknown.
func (d deployment) commit() string { return d.checksum[:min(len(d.checksum), shownChecksumBytes)] }

// id identifies a deployment on the host, or is empty if it is unknown. Layered packages make
// another commit of the same version, and kernel arguments make another deployment of the same
// commit.
func (d deployment) id() string {
	switch commit := d.commit(); {
	case commit == "":
		return d.version
	case d.version == "":
		return fmt.Sprintf("%s.%d", commit, d.serial)
	default:
		return fmt.Sprintf("%s (%s.%d)", d.version, commit, d.serial)
	}
}

// resumed returns the report that counts after a restart of the agent in the same boot, until the
// deployments have been read. It is a need that was reported before with a version, or with the
// commit of a deployment without one.
func resumed(before engine.Report) engine.Report {
	if before.State != engine.Needed {
		return engine.Report{Engine: Name}
	}
	name := cmp.Or(before.Version, "another deployment")
	need := engine.Staged(Name, before.Version, fmt.Sprintf("rpm-ostree boots %s next; it runs after a reboot.", name))
	if before.Client != "" {
		need = engine.Staged(Name, before.Version, finalizes(name, before.Client))
	}
	need.Running, need.Client = before.Running, before.Client
	return need
}

// judge turns the deployments, in boot order, into a report. Only the deployment that boots next
// counts. CachedUpdate does not, because an update with known metadata need not be on disk. client
// is the FleetLock client that finalizes the first deployment if it is locked, or empty.
func judge(list []deployment, client string) engine.Report {
	booted := slices.IndexFunc(list, func(d deployment) bool { return d.booted })
	if booted < 0 {
		// For example, a live medium: rebooting it installs nothing.
		return engine.Unreachable(Name, "rpm-ostree does not report a booted deployment.")
	}
	// A shutdown ignores locked deployments, so the next one in the order boots.
	next := list[slices.IndexFunc(list, func(d deployment) bool { return d.booted || !d.locked })]
	switch first := list[0]; {
	case first.locked && client != "":
		need := engine.Staged(Name, cmp.Or(first.version, first.commit()), finalizes(first.String(), client))
		need.Running, need.Client = list[booted].id(), client
		return need
	case next.booted && first.booted:
		return engine.UpToDate(Name, "rpm-ostree has no deployment that waits for a reboot.")
	case next.booted:
		return engine.UpToDate(Name, fmt.Sprintf("rpm-ostree has staged %s, which is locked: a reboot leaves it out until it is finalized.", first))
	}
	message := fmt.Sprintf("rpm-ostree boots %s next; it runs after a reboot.", next)
	if next.staged {
		message = fmt.Sprintf("rpm-ostree has staged %s; it runs after a reboot.", next)
	}
	need := engine.Staged(Name, cmp.Or(next.version, next.commit()), message)
	need.Running = list[booted].id()
	return need
}

// finalizes returns the sentence about a locked deployment that a FleetLock client finalizes.
func finalizes(name, client string) string {
	return fmt.Sprintf("rpm-ostree has staged %s; %s finalizes it and reboots when the operator permits it.", name, client)
}

// decodeDeployments reads the property: the deployments in boot order, beginning with the one that
// boots next. Malformed versions and checksums are returned as ignored and left out, because a need
// without a version is still a need.
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

// decodeDeployment reads one dictionary. A missing entry is false or unknown, because daemons
// differ in the entries that they leave out.
func decodeDeployment(properties map[string]dbus.Variant) (d deployment, ignored, err error) {
	var failures [7]error
	d.version, failures[0] = field[string](properties, "version")
	d.checksum, failures[1] = field[string](properties, "checksum")
	d.booted, failures[2] = field[bool](properties, "booted")
	d.staged, failures[3] = field[bool](properties, "staged")
	d.locked, failures[4] = field[bool](properties, "finalization-locked")
	d.serial, failures[5] = field[int32](properties, "serial")
	d.baseChecksum, failures[6] = field[string](properties, "base-checksum")
	if err := errors.Join(failures[:]...); err != nil {
		return deployment{}, nil, err
	}
	if d.version != "" && !engine.IsVersion(d.version) {
		d.version, ignored = "", fmt.Errorf("%.64q is not a version", d.version)
	}
	if d.checksum != "" && !isChecksum(d.checksum) {
		d.checksum, ignored = "", errors.Join(ignored, fmt.Errorf("%.64q is not a checksum", d.checksum))
	}
	if d.baseChecksum != "" && !isChecksum(d.baseChecksum) {
		d.baseChecksum, ignored = "", errors.Join(ignored, fmt.Errorf("%.64q is not a checksum", d.baseChecksum))
	}
	return d, ignored, nil
}

// field returns one value of a dictionary, or the zero value if it is absent.
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
