// Package rpmostree receives from rpm-ostree, org.projectatomic.rpmostree1 on the system bus, whether the host boots another
// deployment next than the one it runs. Engine only reads; Driver, which is a choice of its own, makes rpm-ostree upgrade.
package rpmostree

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "rpm-ostree"

// Engine watches rpm-ostree. It implements engine.Engine. The daemon comes when it is called and leaves when nobody has
// called it for a minute: its absence is no news.
type Engine struct {
	// Connect opens the system bus. Required.
	Connect host.Connect
	// HostRoot is where the host's file system is mounted; its /run is enough. A deployment that bootc or ostree stages, while
	// the daemon is idle or gone, is detected there at once. Empty: with the next poll.
	HostRoot string
	// Clock times the polls and the pauses before connecting again. Required.
	Clock clock.WithTicker
	// Before is what this engine had reported when the agent was restarted within the same boot: a need in it lasts until
	// rpm-ostree reports otherwise. Zero: nothing, as after a boot.
	Before engine.Report
	// Optional reports a host that has not had an rpm-ostree in this boot as Absent: nobody named it.
	Optional bool
	// Again makes the engine look once more. Optional.
	Again engine.Again
	// Malformed is called for each signal, reply or part of one that cannot be read and is ignored. Optional.
	Malformed func()
	// Reachable is called with whether rpm-ostree answers, at first and on each change. Optional.
	Reachable func(bool)
}

var _ engine.Engine = (*Engine)(nil)

// Name is "rpm-ostree".
func (e *Engine) Name() string { return Name }

// Run reports until ctx ends, and then returns nil. It outlasts restarts of the daemon and of the bus, and the absence of
// both.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) error {
	m := &memory{state: resumed(e.Before), changes: engine.Changes{
		Report: report, Reachable: e.Reachable, Optional: e.Optional, Seen: e.Before.State != "",
	}}
	staged, end := e.followStaged(ctx)
	defer end()
	supervisor := host.Supervisor{Connect: e.Connect, Clock: e.Clock, Broken: func(err error) { e.broken(ctx, m, err) }}
	supervisor.Run(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		w := watch{Link: service.Link{Conn: conn, Name: busName, Limit: callLimit}, engine: e, memory: m, staged: staged}
		return w.run(ctx)
	})
	return nil
}

func (e *Engine) broken(ctx context.Context, m *memory, err error) {
	level := 1
	if m.broken != err.Error() {
		m.broken, level = err.Error(), 0
	}
	logr.FromContextOrDiscard(ctx).V(level).Info("Lost the system bus", "engine", Name, "reason", m.broken)
	m.lost("The system bus cannot be reached.", engine.Unclear)
}

// malformed counts what it ignores.
func (e *Engine) malformed(ctx context.Context, err error) {
	if e.Malformed != nil {
		e.Malformed()
	}
	logr.FromContextOrDiscard(ctx).V(4).Info("Ignored something malformed", "engine", Name, "reason", err.Error())
}

// memory keeps the state across connections and reports what changes.
type memory struct {
	state   state
	changes engine.Changes
	// broken is why the last connection broke, as it was logged.
	broken string
}

func (m *memory) read(list []deployment) { m.add(m.state.read(list), engine.Answering) }

func (m *memory) lost(why string, presence engine.Presence) { m.add(m.state.lost(why), presence) }

func (m *memory) add(s state, presence engine.Presence) {
	m.state = s
	m.changes.Update(s.report(), presence)
}

// stagedFiles are the host's files that state which deployment is staged, and that it is locked. What they hold is the daemon's
// to read.
var stagedFiles = [...]string{"run/ostree/staged-deployment", "run/ostree/staged-deployment-locked"}

// stamp is what changes of a file when it is replaced. Zero: there is no such file.
type stamp struct {
	size     int64
	modified time.Time
}

// followStaged sends once after each change of what is staged, until ctx ends; end returns when nothing is read any more.
func (e *Engine) followStaged(ctx context.Context) (changed <-chan struct{}, end func()) {
	if e.HostRoot == "" {
		return nil, func() {}
	}
	changes := make(chan struct{}, 1)
	var last [len(stagedFiles)]stamp
	looked := false
	run := filepath.Join(e.HostRoot, "run")
	watch := folder.Watch{
		Engine: Name, Period: pollInterval, Clock: e.Clock,
		Folders: func() []string { return []string{run, filepath.Join(run, "ostree")} },
		Look: func() {
			now := e.stamps()
			if looked && now != last {
				select {
				case changes <- struct{}{}:
				default: // One that nobody has taken yet counts for this one.
				}
			}
			last, looked = now, true
		},
	}
	var following sync.WaitGroup
	following.Go(func() { watch.Run(ctx) })
	return changes, following.Wait
}

func (e *Engine) stamps() (stamps [len(stagedFiles)]stamp) {
	for i, name := range stagedFiles {
		if found, err := os.Lstat(filepath.Join(e.HostRoot, name)); err == nil {
			stamps[i] = stamp{size: found.Size(), modified: found.ModTime()}
		}
	}
	return stamps
}
