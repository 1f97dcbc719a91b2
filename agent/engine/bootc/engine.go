// Package bootc finds out whether the host boots another image next than the one it runs, on hosts that bootc updates. It
// reads files, runs nothing and writes nothing.
package bootc

import (
	"context"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "bootc"

// period is how often the files are looked for without any occasion.
const period = 5 * time.Minute

// Engine watches what bootc has staged. It implements engine.Engine.
type Engine struct {
	// HostRoot is where the host's file system is mounted: /run, /usr, and /sysroot for the names of images. Required; "/" is
	// this one.
	HostRoot string
	// Cmdline is the file with the kernel's command line: /proc/cmdline. Required.
	Cmdline string
	// Clock times the looks that nothing gave occasion for. Required.
	Clock clock.WithTicker
	// Optional reports a host without bootc, or with an rpm-ostree, which reports the same deployments, as Absent: nobody named
	// the engine.
	Optional bool
	// Again makes the engine look once more. Optional.
	Again engine.Again
	// Reachable is called with whether the deployments can be read, at first and on each change. Optional.
	Reachable func(bool)
}

var _ engine.Engine = (*Engine)(nil)

// Name is "bootc".
func (e *Engine) Name() string { return Name }

// Run reports until ctx ends, and then returns nil.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) error {
	changes := engine.Changes{Report: report, Reachable: e.Reachable, Optional: e.Optional}
	folders := []string{
		filepath.Join(e.HostRoot, "run"), filepath.Join(e.HostRoot, filepath.Dir(ostreeStaged)), filepath.Join(e.HostRoot, filepath.Dir(composefsStaged)),
	}
	watch := folder.Watch{
		Engine: Name, Folders: func() []string { return folders }, Period: period, Clock: e.Clock, Again: e.Again,
		Look: func() {
			seen := look(e.HostRoot, e.Cmdline, e.Optional)
			changes.Update(seen.report(), seen.presence())
		},
	}
	watch.Run(ctx)
	return nil
}
