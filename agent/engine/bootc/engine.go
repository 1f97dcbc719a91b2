// Package bootc finds out whether the host boots another image next than the one it runs, on hosts that bootc updates. It
// reads files, runs nothing and writes nothing.
package bootc

import (
	"context"
	"path/filepath"
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
