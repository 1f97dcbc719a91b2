// Package bootc finds out whether the host boots another image next than the one it runs, on hosts that bootc updates. It
// reads files, runs nothing and writes nothing.
package bootc

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "bootc"

// period is how often the files are looked for without any occasion.
const period = 5 * time.Minute

// Engine watches what bootc has staged. It is Absent on a host without bootc, and on one with an rpm-ostree, which reports the
// same deployments.
type Engine struct {
	source.Options

	// HostRoot is where the host's file system is mounted: /run, /usr, and /sysroot for the names of images. Required; "/" is
	// this one.
	HostRoot string
	// Cmdline is the file with the kernel's command line: /proc/cmdline. Required.
	Cmdline string
}

// Run implements source.Engine.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) {
	changes := e.Changes(report)
	folders := []string{
		filepath.Join(e.HostRoot, "run"), filepath.Join(e.HostRoot, filepath.Dir(ostreeStaged)), filepath.Join(e.HostRoot, filepath.Dir(composefsStaged)),
	}
	folder.Watch{
		Folders: func() []string { return folders }, Period: period, Clock: e.Clock, Again: e.Again,
		Look: func() {
			seen := look(e.HostRoot, e.Cmdline, e.Optional)
			changes.Reach(engine.PresenceOf(seen.missing, seen.unreadable != ""), "")
			changes.Update(seen.report())
		},
	}.Run(ctx)
}

// deployment is a version of the operating system on disk.
type deployment struct {
	// id is the checksum of ostree's commit and a serial number, or the digest of composefs' image.
	id string
	// image is where it was pulled from, without the transport. Empty: its origin cannot be read.
	image string
	// digest of the image's manifest, such as sha256:…. Empty: unknown.
	digest string
	// locked reports that a shutdown leaves it out until it is unlocked.
	locked bool
}

// observation is what a look found.
type observation struct {
	// unreadable states what cannot be read, and why. Empty: everything was.
	unreadable string
	// missing reports that the host is not one of bootc's.
	missing bool
	// booted is what runs. Its zero: it is not known.
	booted deployment
	// staged is what runs after a reboot. Nil: nothing else does.
	staged *deployment
}

// report is what the observation reports to others.
func (o observation) report() engine.Report {
	switch {
	case o.missing:
		return engine.Unreachable(Name, "The host runs no image of bootc.")
	case o.unreadable != "":
		return engine.Unreachable(Name, fmt.Sprintf("bootc's deployments cannot be read: %s.", o.unreadable))
	case o.staged == nil || o.staged.id == o.booted.id:
		return engine.UpToDate(Name, "bootc has staged no deployment.")
	case o.staged.locked:
		return engine.UpToDate(Name, fmt.Sprintf(
			"bootc has staged %s, which is locked: a reboot leaves it out until it is unlocked.", o.staged.version()))
	}
	need := engine.Staged(Name, o.staged.version(), fmt.Sprintf("bootc has staged %s; it runs after a reboot.", o.staged.version()))
	need.Running = o.booted.version()
	return need
}

// shown is how many digits of a digest people get to see, and maxImageBytes how much of an image's name.
const shown, maxImageBytes = 12, 96

// version is the image and its digest, or as much of that as is known. Empty: nothing is.
func (d deployment) version() string {
	content := d.id[:min(len(d.id), shown)]
	if d.digest != "" {
		content = d.digest[:len("sha256:")+shown]
	}
	if !isImage(d.image) {
		return content
	}
	return d.image + "@" + content
}

// isImage accepts what names of images are made of. A text with blanks could pass for a sentence of the agent in the
// Node's condition.
func isImage(image string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return image != "" && len(image) <= maxImageBytes && strings.Trim(image, letters+"._-:/@[]") == ""
}

// isHex accepts the digits of a checksum.
func isHex(digits string) bool {
	return len(digits) >= 64 && len(digits) <= 128 && strings.Trim(digits, "0123456789abcdef") == ""
}
