// Package sentinel hears from the file by which Debian, Ubuntu, Flatcar and others say that they want a reboot:
// /run/reboot-required. It lies in memory and is gone after the boot.
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

// period is how often the file is looked for without any occasion.
const period = time.Minute

// Engine watches the file. It implements engine.Engine.
type Engine struct {
	// HostRoot is where the host's file system is mounted; its /run is enough. Required; "/" is this one.
	HostRoot string
	// Clock times the looks that nothing gave occasion for. Required.
	Clock clock.WithTicker
	// Optional tells a host root without a folder /run, which has not been mounted then, as Absent: nobody named the engine.
	Optional bool
	// Again makes the engine look once more. Optional.
	Again engine.Again
	// Reachable is called with whether the host's /run can be read, at first and on each change. Optional.
	Reachable func(bool)
}

var _ engine.Engine = (*Engine)(nil)

// Name is "sentinel".
func (e *Engine) Name() string { return Name }

// Run reports until ctx ends, and then returns nil.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) error {
	changes := engine.Changes{Report: report, Reachable: e.Reachable, Optional: e.Optional}
	watch := folder.Watch{
		Engine:  Name,
		Folders: func() []string { return []string{filepath.Join(e.HostRoot, directory)} },
		Look: func() {
			seen := look(e.HostRoot)
			changes.Tell(seen.report(), seen.presence())
		},
		Period: period, Clock: e.Clock, Again: e.Again,
	}
	watch.Run(ctx)
	return nil
}
