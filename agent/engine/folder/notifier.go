package folder

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// notifier reports that something changed in folders, and not what.
type notifier struct {
	// changed holds one value from a change until it is received.
	changed chan struct{}
	// watched are the folders watched, as they were found.
	watched map[string]os.FileInfo
	// open makes an inotify instance.
	open func() (*fsnotify.Watcher, error)
	// watcher is nil until there is one: their number is limited, and other programs may have used it up.
	watcher *fsnotify.Watcher
	// ended is closed when nothing of the watcher is read any more.
	ended chan struct{}
}

func newNotifier() *notifier {
	return &notifier{changed: make(chan struct{}, 1), watched: map[string]os.FileInfo{}, open: fsnotify.NewWatcher}
}

// watch watches these folders and no other ones. One that does not exist is no error, and not watched.
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
		return nil //nolint:nilerr // Whatever keeps us from it now, it is looked for again.
	}
	// inotify stays with a folder that was moved, or that something was mounted over, and drops one that was removed.
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

// listen takes whatever the watcher sends as a change: an error is a lost event. It must never wait, because the watcher
// may hold its lock while it sends.
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
