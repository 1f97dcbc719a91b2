// Package sentinel detects the files by which a host asks for a reboot: /run/reboot-required of Debian, Ubuntu, Flatcar and
// others, and SUSE's /run/reboot-needed.
package sentinel

import (
	"context"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "sentinel"

// period is how often the files are looked for without any occasion.
const period = time.Minute

// Engine watches the files. It implements engine.Engine.
type Engine struct {
	// HostRoot is where the host's file system is mounted; the folders of the files are enough. Required; "/" is this one.
	HostRoot string
	// Files are the host's files that ask for a reboot while they exist: absolute paths. Empty: Defaults.
	Files []string
	// Clock times the looks that nothing gave occasion for. Required.
	Clock clock.WithTicker
	// Optional reports a host root without those folders, which have not been mounted then, as Absent: nobody named the engine.
	Optional bool
	// Again makes the engine look once more. Optional.
	Again engine.Again
	// Reachable is called with whether the folders can be read, at first and on each change. Optional.
	Reachable func(bool)
}

var _ engine.Engine = (*Engine)(nil)

// Name is "sentinel".
func (e *Engine) Name() string { return Name }

// Run reports until ctx ends, and then returns nil.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) error {
	files := e.Files
	if len(files) == 0 {
		files = Defaults
	}
	changes := engine.Changes{Report: report, Reachable: e.Reachable, Optional: e.Optional}
	watched := folders(files)
	for i, folder := range watched {
		watched[i] = filepath.Join(e.HostRoot, folder)
	}
	watch := folder.Watch{
		Engine:  Name,
		Folders: func() []string { return watched },
		Look: func() {
			seen := look(e.HostRoot, files)
			changes.Update(seen.report(), seen.presence())
		},
		Period: period, Clock: e.Clock, Again: e.Again,
	}
	watch.Run(ctx)
	return nil
}
