// Package rpmostree follows rpm-ostree, org.projectatomic.rpmostree1 on the system bus, to learn
// whether the host will boot another deployment than the running one. Engine only reads. Driver,
// which is optional, makes rpm-ostree upgrade the host.
package rpmostree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/bootc"
	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "rpm-ostree"

// Engine watches rpm-ostree. The daemon starts when it is called and exits after a minute without
// calls, so its absence is not reported.
type Engine struct {
	service.Bus

	// HostRoot is the path at which the host's file system is mounted. Only its /run is needed. It
	// shows at once what bootc or ostree stages while the daemon is idle or gone, and locks that
	// the daemon does not report. If it is empty, staged deployments are noticed with the next
	// poll, and such locks are not.
	HostRoot string
	// Client returns the FleetLock client, such as Zincati, that finalizes a staged and locked
	// deployment, or an empty string. Optional.
	Client func(context.Context) (string, error)
}

// Run implements source.Engine. It survives restarts and the absence of both the daemon and the
// bus.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) {
	m := &memory{latest: resumed(e.Before), changes: e.Changes(report)}
	staged, end := e.followStaged(ctx)
	defer end()
	e.Supervise(ctx, m.lost, func(ctx context.Context, conn *dbus.Conn) error {
		w := watch{Link: service.Link{Conn: conn, Name: busName, Limit: callLimit}, engine: e, memory: m, staged: staged}
		return w.run(ctx)
	})
}

// memory keeps the last report about the deployments across connections, and reports changes.
type memory struct {
	latest  engine.Report
	changes engine.Changes
}

func (m *memory) read(list []deployment, client string) {
	m.latest = judge(list, client)
	m.changes.Reach(engine.Answering, "")
	m.changes.Update(m.latest)
}

func (m *memory) lost(why string, presence engine.Presence) {
	m.changes.Reach(presence, why)
	m.changes.Update(m.latest)
}

// followStaged sends once after each change of what is staged, until ctx ends. end waits until it
// does not read files any more.
func (e *Engine) followStaged(ctx context.Context) (changed <-chan struct{}, end func()) {
	if e.HostRoot == "" {
		return nil, func() {}
	}
	changes := make(chan struct{}, 1)
	last := ""
	run := filepath.Join(e.HostRoot, "run")
	watch := folder.Watch{
		Period: pollInterval, Clock: e.Clock,
		Folders: func() []string {
			// When a FleetLock client starts, it opens its socket for metrics again.
			return []string{run, filepath.Join(run, "ostree"), filepath.Join(run, "zincati", "public"), filepath.Join(e.HostRoot, "etc/zincati/config.d")}
		},
		Look: func() {
			now := e.staged()
			if last != "" && now != last {
				select {
				case changes <- struct{}{}:
				default: // A pending signal is enough.
				}
			}
			last = now
		},
	}
	var following sync.WaitGroup
	following.Go(func() { watch.Run(ctx) })
	return changes, following.Wait
}

// staged returns a text that changes if another deployment is staged, a lock changes, or Zincati is
// started or configured differently. It is made from the host's files about that.
func (e *Engine) staged() string {
	var text strings.Builder
	text.WriteString("staged:")
	for _, name := range []string{
		"run/ostree/staged-deployment", "run/ostree/staged-deployment-locked", "run/zincati/public/metrics.promsock", "etc/zincati/config.d",
	} {
		if found, err := os.Lstat(filepath.Join(e.HostRoot, name)); err == nil {
			fmt.Fprint(&text, " ", name, found.Size(), found.ModTime())
		}
	}
	return text.String()
}

// client returns the FleetLock client that finalizes the first deployment. It is empty if the
// deployment is not locked, or if no client is known.
func (e *Engine) client(ctx context.Context, list []deployment) string {
	if e.Client == nil || len(list) == 0 || !list[0].staged || !list[0].locked {
		return ""
	}
	client, err := e.Client(ctx)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("Cannot find out who finalizes the staged deployment", "reason", err.Error())
		return ""
	}
	return client
}

// lockStaged adds a lock that the daemon does not report. The daemon knows the lock file next to
// the staged deployment, but not the mark inside it that `bootc upgrade --download-only` leaves.
// Without a hostRoot it does nothing.
// https://github.com/coreos/rpm-ostree/blob/main/rust/src/daemon.rs
func lockStaged(list []deployment, hostRoot string) {
	if len(list) > 0 && list[0].staged && hostRoot != "" && bootc.StagedIsLocked(hostRoot) {
		list[0].locked = true
	}
}
