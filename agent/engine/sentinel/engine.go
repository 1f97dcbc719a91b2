// Package sentinel detects the files by which a host asks for a reboot: /run/reboot-required of Debian, Ubuntu, Flatcar and
// others, and SUSE's /run/reboot-needed.
package sentinel

import (
	"context"
	"path/filepath"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "sentinel"

// period is how often the files are looked for without any occasion.
const period = time.Minute

// Engine watches the files. It is Absent where the folder of the Defaults is not mounted.
type Engine struct {
	source.Options

	// HostRoot is where the host's file system is mounted; the folders of the files are enough. Required; "/" is this one.
	HostRoot string
	// Files are the host's files that ask for a reboot while they exist: absolute paths. Empty: Defaults. An engine with Files is
	// not Optional.
	Files []string
}

// Run implements source.Engine.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) {
	files := e.Files
	if len(files) == 0 {
		files = Defaults
	}
	watched := folders(files)
	for i, folder := range watched {
		watched[i] = filepath.Join(e.HostRoot, folder)
	}
	changes := e.Changes(report)
	folder.Watch{
		Folders: func() []string { return watched },
		Look: func() {
			seen := look(e.HostRoot, files)
			changes.Reach(engine.PresenceOf(seen.missing, seen.unreadable != ""), "")
			changes.Update(seen.report())
		},
		Period: period, Clock: e.Clock, Again: e.Again,
	}.Run(ctx)
}
