// Package folder watches folders of the host: with inotify if it works, else by looking
// periodically. A folder may be missing, appear, disappear, or be replaced, for example by a mount.
package folder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

// Watch calls Look whenever something may have changed. All fields but Again are required.
type Watch struct {
	// Folders returns the paths to watch, without their subfolders and without duplicates. It is
	// called before each Look.
	Folders func() []string
	// Look is called once at the start, after each change in the Folders, and once per Period,
	// never concurrently.
	Look func()
	// Period is the longest time between two calls of Look.
	Period time.Duration
	// Clock measures the Period.
	Clock clock.WithTicker
	// Again makes it call Look once more.
	Again source.Again
}

// Run watches until ctx ends.
func (w Watch) Run(ctx context.Context) { w.run(ctx, newNotifier(fsnotify.NewWatcher)) }

func (w Watch) run(ctx context.Context, n *notifier) {
	defer n.close()
	net := w.Clock.NewTicker(w.Period)
	defer net.Stop()
	last, done := "", chan<- bool(nil)
	for {
		// Start watching before looking, so that no change is lost in between.
		why := ""
		if err := n.watch(w.Folders()); err != nil {
			why = err.Error()
		}
		if why != "" && why != last {
			logr.FromContextOrDiscard(ctx).Info("Cannot watch a folder; reading it periodically instead", "period", w.Period.String(), "reason", why)
		}
		last = why
		w.Look()
		if done != nil {
			done <- true
			done = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-n.changed:
		case <-net.C():
		case done = <-w.Again:
		}
	}
}

// Reason returns the message of a file error without the path, because that is a path of this
// container.
func Reason(err error) string { return host.WithoutPath(err).Error() }

// Read reads at most limit bytes of a file on the host. It does not follow a symbolic link that
// leaves root.
func Read(root *os.Root, name string, limit int64) ([]byte, error) {
	return host.ReadFile(root.OpenFile, name, limit)
}

// notifier signals that something changed in the watched folders.
type notifier struct {
	// changed holds one value after a change until it is received.
	changed chan struct{}
	// watched are the watched folders, as they were found.
	watched map[string]os.FileInfo
	// open makes an inotify instance.
	open func() (*fsnotify.Watcher, error)
	// watcher is nil until inotify could be opened: the number of instances is limited, and other
	// programs may have used them up.
	watcher *fsnotify.Watcher
	// ended is closed when nothing more is read from the watcher.
	ended chan struct{}
}

func newNotifier(open func() (*fsnotify.Watcher, error)) *notifier {
	return &notifier{changed: make(chan struct{}, 1), watched: map[string]os.FileInfo{}, open: open}
}

// watch watches exactly these folders. It ignores folders that do not exist.
func (n *notifier) watch(folders []string) error {
	if n.watcher == nil {
		watcher, err := n.open()
		if err != nil {
			return fmt.Errorf("opening inotify: %w", err)
		}
		n.watcher, n.ended = watcher, make(chan struct{})
		go n.listen(watcher)
	}
	for _, path := range slices.Collect(maps.Keys(n.watched)) {
		if !slices.Contains(folders, path) {
			n.forget(path)
		}
	}
	var errs []error
	for _, path := range folders {
		errs = append(errs, n.watchOne(path))
	}
	return errors.Join(errs...)
}

func (n *notifier) watchOne(path string) error {
	found, err := os.Stat(path)
	if err != nil {
		n.forget(path)
		return nil //nolint:nilerr // The next call tries again, whatever the error is.
	}
	// inotify keeps watching a folder that was moved or covered by a mount, and stops watching one
	// that was removed.
	watched, known := n.watched[path]
	if known && os.SameFile(watched, found) && slices.Contains(n.watcher.WatchList(), path) {
		return nil
	}
	n.forget(path)
	if err := n.watcher.Add(path); err != nil {
		return fmt.Errorf("watching %q: %w", path, err)
	}
	n.watched[path] = found
	return nil
}

func (n *notifier) forget(path string) {
	if _, known := n.watched[path]; known {
		_ = n.watcher.Remove(path) // It may be gone already.
		delete(n.watched, path)
	}
}

// listen treats everything from the watcher as a change: an error is a lost event. It must never
// block, because the watcher may hold its lock while it sends.
func (n *notifier) listen(watcher *fsnotify.Watcher) {
	defer close(n.ended)
	events, errs := watcher.Events, watcher.Errors
	for events != nil || errs != nil {
		open := true
		select {
		case _, open = <-events:
			if !open {
				events = nil
			}
		case _, open = <-errs:
			if !open {
				errs = nil
			}
		}
		if open {
			select {
			case n.changed <- struct{}{}:
			default:
			}
		}
	}
}

func (n *notifier) close() {
	if n.watcher != nil {
		_ = n.watcher.Close() // Nothing is left to lose.
		<-n.ended
	}
}
