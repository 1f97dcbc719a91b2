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

// state is everything known about rpm-ostree.
type state struct {
	// latest is what the deployments meant when they were read last. Zero: they have not been read.
	latest engine.Report
	// unreachable is a sentence that states why they cannot be read. Empty: they could, last time.
	unreachable string
}

// resumed is the state after a restart of the agent in the same boot, made from what it had reported before.
func resumed(before engine.Report) state {
	s := state{unreachable: "rpm-ostree has not been asked yet."}
	if before.State == engine.Needed {
		s.latest = needed(deployment{version: before.Version})
	}
	return s
}

// read is the state after the deployments were read.
func (s state) read(list []deployment) state { return state{latest: judge(list)} }

// lost is the state once rpm-ostree cannot be asked. A need stays: the deployment is on disk, whatever becomes of the
// daemon.
func (s state) lost(why string) state { return state{latest: s.latest, unreachable: why} }

func (s state) report() engine.Report {
	if s.unreachable == "" || s.latest.State == engine.Needed {
		return s.latest
	}
	return engine.Unreachable(Name, s.unreachable)
}

// judge makes a report of the deployments in boot order.
func judge(list []deployment) engine.Report {
	booted := slices.IndexFunc(list, func(d deployment) bool { return d.booted })
	if booted < 0 {
		// A live medium, for example: rebooting it installs nothing.
		return engine.Unreachable(Name, "rpm-ostree names no deployment that this host was booted from.")
	}
	next := list[0]
	switch {
	case next.booted:
		return engine.UpToDate(Name, "rpm-ostree has no deployment that waits for a reboot.")
	case next.locked:
		return engine.UpToDate(Name, fmt.Sprintf("rpm-ostree has staged %s, which is locked: a reboot leaves it out until it is finalized.", next))
	}
	need := needed(next)
	need.Running = list[booted].id()
	return need
}

// needed names a deployment without a version by its commit.
func needed(next deployment) engine.Report {
	message := fmt.Sprintf("rpm-ostree boots %s next; it runs after a reboot.", next)
	if next.staged {
		message = fmt.Sprintf("rpm-ostree has staged %s; it runs after a reboot.", next)
	}
	return engine.Staged(Name, cmp.Or(next.version, next.commit()), message)
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
