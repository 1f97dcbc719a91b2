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

// deployment is what matters of a version of the operating system on disk: an entry of Sysroot's property Deployments.
type deployment struct {
	// version of the build. Empty: unknown; trees can be composed without one.
	version string
	// checksum of the commit. Empty: unknown.
	checksum string
	// baseChecksum is the checksum of the commit below layered packages, or empty if there are no
	// such packages.
	baseChecksum string
	// serial distinguishes deployments of one commit, such as those that differ in kernel arguments alone.
	serial int32
	// booted reports that the host runs it.
	booted bool
	// staged reports that it is written into the boot loader by the shutdown only.
	staged bool
	// locked reports that the shutdown leaves it out until FinalizeDeployment is called, by Zincati for example.
	locked bool
}

// shownChecksumBytes is how much of a checksum people get to see.
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

// commit is what people get to see of the checksum. Empty: unknown.
func (d deployment) commit() string { return d.checksum[:min(len(d.checksum), shownChecksumBytes)] }

// id distinguishes a deployment from every other one of the host. Layered packages make another commit of the same version, and kernel
// arguments another deployment of the same commit. Empty: unknown.
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

// resumed is what counts after a restart of the agent in the same boot, until the deployments are read. It is a need that was reported
// before, with a version, or the commit of a deployment without one.
func resumed(before engine.Report) engine.Report {
	if before.State != engine.Needed {
		return engine.Report{Engine: Name}
	}
	what := cmp.Or(before.Version, "another deployment")
	need := engine.Staged(Name, before.Version, fmt.Sprintf("rpm-ostree boots %s next; it runs after a reboot.", what))
	if before.Client != "" {
		need = engine.Staged(Name, before.Version, finalizes(what, before.Client))
	}
	need.Running, need.Client = before.Running, before.Client
	return need
}

// judge makes a report of the deployments in boot order. What counts is what boots next. CachedUpdate does not: that the metadata
// of an update is known reports nothing of what is on disk. client is the FleetLock client that finalizes the first deployment if that is
// locked; empty: nobody does.
func judge(list []deployment, client string) engine.Report {
	booted := slices.IndexFunc(list, func(d deployment) bool { return d.booted })
	if booted < 0 {
		// A live medium, for example: rebooting it installs nothing.
		return engine.Unreachable(Name, "rpm-ostree names no deployment that this host was booted from.")
	}
	// A shutdown leaves out what is locked, and the next one in the order boots.
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

// finalizes is the sentence about a locked deployment that a FleetLock client finalizes.
func finalizes(what, client string) string {
	return fmt.Sprintf("rpm-ostree has staged %s; %s finalizes it and reboots when the operator permits it.", what, client)
}

// decodeDeployments reads the property: the deployments in boot order, the one that boots next first. ignored reports versions and
// checksums that are malformed. They are left out, because a need without a name is still a need.
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
