// Package bootc reports whether a host that is updated by bootc will boot another image next. It
// only reads files.
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

// period is the interval between two looks at the files if inotify reports nothing.
const period = 5 * time.Minute

// Engine watches the deployments that bootc stages. It is Absent on hosts without bootc, and on
// hosts with rpm-ostree, whose engine reports the same deployments.
type Engine struct {
	source.Options

	// HostRoot is the path at which the host's file system is mounted: /run, /usr, and /sysroot for
	// image names. Required; "/" means this file system.
	HostRoot string
	// Cmdline is the path of the kernel's command line: /proc/cmdline. Required.
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
			found := look(e.HostRoot, e.Cmdline, e.Optional)
			changes.Reach(engine.PresenceOf(found.missing, found.unreadable != ""), "")
			changes.Update(found.report())
		},
	}.Run(ctx)
}

// deployment is a version of the operating system on disk.
type deployment struct {
	// id is the checksum of the ostree commit with a serial number, or the digest of the composefs
	// image.
	id string
	// image is the source of the deployment, without the transport, or empty if its origin cannot
	// be read.
	image string
	// digest is the digest of the image's manifest, such as sha256:…, or empty if it is unknown.
	digest string
	// locked is true if a shutdown skips the deployment until it is unlocked.
	locked bool
}

// observation is the result of one look.
type observation struct {
	// unreadable is the file that cannot be read and the reason, or empty if everything was
	// readable.
	unreadable string
	// missing is true if bootc does not update this host.
	missing bool
	// booted is the running deployment, or zero if it is unknown.
	booted deployment
	// staged is the deployment that runs after a reboot, or nil if nothing is staged.
	staged *deployment
}

// report returns the observation as a report.
func (o observation) report() engine.Report {
	switch {
	case o.missing:
		return engine.Unreachable(Name, "The host does not run a bootc image.")
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

// shown is the number of digits of a digest in messages, and maxImageBytes the longest image name.
const shown, maxImageBytes = 12, 96

// version returns the image and its digest, as far as they are known.
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

// isImage reports whether a text looks like an image name. Text with spaces is refused: it could
// pass for a sentence of the agent in the Node's condition.
func isImage(image string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return image != "" && len(image) <= maxImageBytes && strings.Trim(image, letters+"._-:/@[]") == ""
}

// isHex reports whether a text is a checksum in hexadecimal.
func isHex(digits string) bool {
	return len(digits) >= 64 && len(digits) <= 128 && strings.Trim(digits, "0123456789abcdef") == ""
}
