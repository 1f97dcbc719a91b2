package rpmostree

import (
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// This file decides, and does nothing else. What counts is what boots next. CachedUpdate does not: that the metadata of
// an update is known says nothing of what is on disk.

// shownChecksumBytes is how much of a checksum people get to see.
const shownChecksumBytes = 12

// state is everything known about rpm-ostree.
type state struct {
	// said is what the deployments meant when they were read last. Zero: they have not been read.
	said engine.Report
	// unreachable is a sentence that says why they cannot be read. Empty: they could, last time.
	unreachable string
}

// resumed is the state after a restart of the agent in the same boot, made from what it had reported before.
func resumed(before engine.Report) state {
	s := state{unreachable: "rpm-ostree has not been asked yet."}
	if before.State == engine.Needed {
		s.said = needed(deployment{version: before.Version})
	}
	return s
}

// read is the state after the deployments were read.
func (s state) read(list []deployment) state { return state{said: judge(list)} }

// lost is the state once rpm-ostree cannot be asked. A need stays: the deployment is on disk, whatever becomes of the
// daemon.
func (s state) lost(why string) state { return state{said: s.said, unreachable: why} }

func (s state) report() engine.Report {
	if s.unreachable == "" || s.said.State == engine.Needed {
		return s.said
	}
	return unknown(s.unreachable)
}

// judge makes a report of the deployments in boot order.
func judge(list []deployment) engine.Report {
	next, running := deployment{}, false
	if len(list) > 0 {
		next = list[0]
	}
	for _, d := range list {
		running = running || d.booted
	}
	switch {
	case !running:
		// A live medium, for example: rebooting it installs nothing.
		return unknown("rpm-ostree names no deployment that this host was booted from.")
	case next.booted:
		return notNeeded("rpm-ostree has no deployment that waits for a reboot.")
	case next.locked:
		return notNeeded(fmt.Sprintf("rpm-ostree has staged %s, which is locked: a reboot leaves it out until it is finalized.", next))
	}
	return needed(next)
}

func needed(next deployment) engine.Report {
	message := fmt.Sprintf("rpm-ostree boots %s next; it runs after a reboot.", next)
	if next.staged {
		message = fmt.Sprintf("rpm-ostree has staged %s; it runs after a reboot.", next)
	}
	return engine.Report{
		Engine: Name, State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: next.version,
		Message: engine.Shorten(message),
	}
}

func notNeeded(message string) engine.Report {
	return engine.Report{
		Engine: Name, State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: engine.Shorten(message),
	}
}

func unknown(message string) engine.Report {
	return engine.Report{
		Engine: Name, State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: engine.Shorten(message),
	}
}

// String names a deployment for people.
func (d deployment) String() string {
	checksum := d.checksum[:min(len(d.checksum), shownChecksumBytes)]
	switch {
	case d.version != "" && checksum != "":
		return fmt.Sprintf("version %s (%s)", d.version, checksum)
	case d.version != "":
		return "version " + d.version
	case checksum != "":
		return "commit " + checksum
	}
	return "another deployment"
}
