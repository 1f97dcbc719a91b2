package rpmostree

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
)

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
