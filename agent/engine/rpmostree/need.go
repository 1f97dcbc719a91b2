package rpmostree

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// What counts is what boots next. CachedUpdate does not: that the metadata of an update is known reports nothing of what is on
// disk.

// shownChecksumBytes is how much of a checksum people get to see.
const shownChecksumBytes = 12

// resumed is what counts after a restart of the agent in the same boot, until the deployments are read: a need that it had
// reported before, of a version or of the commit of a deployment without one.
func resumed(before engine.Report) engine.Report {
	if before.State != engine.Needed {
		return engine.Report{Engine: Name}
	}
	what := cmp.Or(before.Version, "another deployment")
	need := engine.Staged(Name, before.Version, fmt.Sprintf("rpm-ostree boots %s next; it runs after a reboot.", what))
	need.Running = before.Running
	return need
}

// judge makes a report of the deployments in boot order.
func judge(list []deployment) engine.Report {
	booted := slices.IndexFunc(list, func(d deployment) bool { return d.booted })
	if booted < 0 {
		// A live medium, for example: rebooting it installs nothing.
		return engine.Unreachable(Name, "rpm-ostree names no deployment that this host was booted from.")
	}
	// A shutdown leaves out what is locked, and the next one in the order boots.
	next := list[slices.IndexFunc(list, func(d deployment) bool { return d.booted || !d.locked })]
	switch first := list[0]; {
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

// id distinguishes a deployment from every other one of the host: layered packages make another commit of the same version, and
// kernel arguments another deployment of the same commit. Empty: unknown.
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
