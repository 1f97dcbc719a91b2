// Package folder detects what happens in folders of the host: at once where inotify works, and after a while where it
// does not. A folder may be missing, come, go, or be replaced by another one, as when something is mounted over it.
package folder

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine/source"
)

// Watch looks whenever something may have changed. All fields but Again are required.
type Watch struct {
	// Folders are the paths to watch, not what is below them, and no two of them the same folder. It is called before each
	// Look.
	Folders func() []string
	// Look is called at first, after each change in the Folders, and once in each Period, never twice at once.
	Look func()
	// Period is how often to look without any occasion.
	Period time.Duration
	// Clock measures the Period.
	Clock clock.WithTicker
	// Again makes it look once more.
	Again source.Again
}

// Run watches until ctx ends.
func (w Watch) Run(ctx context.Context) { w.run(ctx, newNotifier()) }

func (w Watch) run(ctx context.Context, n *notifier) {
	defer n.close()
	net := w.Clock.NewTicker(w.Period)
	defer net.Stop()
	last, looked := "", chan<- bool(nil)
	for {
		// Watching comes before looking, so that nothing falls between them.
		why := ""
		if err := n.watch(w.Folders()); err != nil {
			why = err.Error()
		}
		if why != "" && why != last {
			logr.FromContextOrDiscard(ctx).Info("Cannot watch a folder, and looks at it periodically only", "period", w.Period.String(), "reason", why)
		}
		last = why
		w.Look()
		if looked != nil {
			looked <- true
			looked = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-n.changed:
		case <-net.C():
		case looked = <-w.Again:
		}
	}
}

// Reason is what went wrong with a file, without the path: that is this container's, not the host's.
func Reason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return err.Error()
}

// Read reads at most limit bytes of a file of the host. A symbolic link that leaves root is not followed.
func Read(root *os.Root, name string, limit int64) ([]byte, error) {
	// Opening a named pipe would wait for its other end.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	found, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !found.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	return io.ReadAll(io.LimitReader(file, limit))
}
