package folder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
)

// harness is a Watch that runs on a real file system, with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t     *testing.T
	dir   string
	looks atomic.Int64
	// seen reports whether the last look found the file.
	seen atomic.Bool
}

// newHarness watches folder "run" of a temporary folder and looks for file "run/flag".
func newHarness(t *testing.T) *harness {
	t.Helper()
	return &harness{Run: enginetest.New(t), t: t, dir: t.TempDir()}
}

func (h *harness) path(name string) string { return filepath.Join(h.dir, name) }

func (h *harness) make(name string) { h.Must(os.MkdirAll(h.path(name), 0o750)) }

func (h *harness) touch(name string) { h.Must(os.WriteFile(h.path(name), nil, 0o600)) }

func (h *harness) remove(name string) { h.Must(os.RemoveAll(h.path(name))) }

func (h *harness) move(from, to string) { h.Must(os.Rename(h.path(from), h.path(to))) }

func (h *harness) run() {
	h.t.Helper()
	w := Watch{
		Folders: func() []string { return []string{h.path("run")} },
		Look: func() {
			_, err := os.Stat(h.path("run/flag"))
			h.seen.Store(err == nil)
			h.looks.Add(1)
		},
		Period: time.Minute, Clock: h.Clock,
	}
	done := make(chan struct{})
	ctx := h.t.Context()
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	h.t.Cleanup(func() { <-done })
	h.Until("the first look", func() bool { return h.looks.Load() > 0 }, 0)
}

// expect waits until a look finds the file, or does not find it. If step is above zero, it advances
// the clock.
func (h *harness) expect(known bool, step time.Duration) {
	h.t.Helper()
	h.Until("a look at the change", func() bool { return h.seen.Load() == known }, step)
}

// follows returns once the folder of the file is watched. The first look that finds the file may
// come before that, so it waits for another one.
func (h *harness) follows() {
	h.t.Helper()
	looks := h.looks.Load()
	h.Until("another look", func() bool { return h.looks.Load() > looks+1 }, time.Minute)
}

func TestWatch_LooksAtEachChangeAtOnce(t *testing.T) {
	h := newHarness(t)
	h.make("run")
	h.run()
	for range 5 {
		h.touch("run/flag")
		h.expect(true, 0)
		h.remove("run/flag")
		h.expect(false, 0)
	}
	h.touch("run/other")
	h.move("run/other", "run/flag")
	h.expect(true, 0)
}

func TestWatch_LooksOnceInEachPeriod(t *testing.T) {
	h := newHarness(t)
	h.run()
	h.Until("the net to be up", h.Clock.HasWaiters, 0)
	for i := range 3 {
		before := h.looks.Load()
		h.Clock.Step(time.Minute - time.Second)
		if got := h.looks.Load(); got != before {
			t.Fatalf("round %d: looked before the period was over", i)
		}
		h.Clock.Step(time.Second)
		h.Until("a look", func() bool { return h.looks.Load() == before+1 }, 0)
	}
}

func TestWatch_FindsAFolderThatComesLater(t *testing.T) {
	h := newHarness(t)
	h.run()
	h.make("run")
	h.touch("run/flag")
	h.expect(true, time.Minute)
	h.remove("run/flag")
	h.expect(false, 0)
}

func TestWatch_OutlivesItsFolder(t *testing.T) {
	h := newHarness(t)
	h.make("run")
	h.touch("run/flag")
	h.run()
	h.expect(true, 0)
	h.remove("run")
	h.expect(false, 0)
	h.make("run")
	h.touch("run/flag")
	h.expect(true, time.Minute)
	h.follows()
	h.remove("run/flag")
	h.expect(false, 0)
}

func TestWatch_FollowsAFolderThatIsReplaced(t *testing.T) {
	h := newHarness(t)
	h.make("run")
	h.make("next")
	h.touch("next/flag")
	h.run()
	h.move("run", "old")
	h.move("next", "run")
	h.expect(true, time.Minute)
	h.follows()
	h.remove("run/flag")
	h.expect(false, 0)
}

// This happens if something is mounted over the folder: inotify keeps watching the old one without
// any event.
func TestWatch_FollowsAFolderThatIsReplacedInSilence(t *testing.T) {
	h := newHarness(t)
	h.make("a")
	h.make("b")
	h.touch("b/flag")
	h.Must(os.Symlink("a", h.path("run")))
	h.run()
	h.Must(os.Symlink("b", h.path("link")))
	h.move("link", "run")
	h.expect(true, time.Minute)
	h.remove("b/flag")
	h.expect(false, 0)
}

func TestNotifier_ForgetsFoldersThatAreNotNamedAnyMore(t *testing.T) {
	h := newHarness(t)
	h.make("a")
	h.make("b")
	n := newNotifier(fsnotify.NewWatcher)
	defer n.close()
	h.Must(n.watch([]string{h.path("a")}))
	h.Must(n.watch([]string{h.path("b")}))
	if got := n.watcher.WatchList(); len(got) != 1 || got[0] != h.path("b") {
		t.Errorf("watches %q, want b alone", got)
	}
	h.touch("a/flag")
	h.touch("b/flag")
	<-n.changed
}

// A new folder may get the inode number of the old one and be mistaken for it.
func TestNotifier_WatchesAFolderThatWasCreatedAgain(t *testing.T) {
	h := newHarness(t)
	n := newNotifier(fsnotify.NewWatcher)
	defer n.close()
	for range 5 {
		h.make("run")
		h.Must(n.watch([]string{h.path("run")}))
		h.remove("run")
		h.make("run")
		h.Until("inotify to drop the old one", func() bool { return len(n.watcher.WatchList()) == 0 }, 0)
		h.Must(n.watch([]string{h.path("run")}))
		if len(n.watcher.WatchList()) == 0 {
			t.Fatal("the new folder is not watched")
		}
		h.remove("run")
	}
}

func TestNotifier_DoesWithoutInotifyUntilThereIsOne(t *testing.T) {
	h := newHarness(t)
	h.make("run")
	taken := errors.New("too many open files")
	n := newNotifier(func() (*fsnotify.Watcher, error) {
		if taken != nil {
			return nil, taken
		}
		return fsnotify.NewWatcher()
	})
	defer n.close()
	for range 2 {
		if err := n.watch([]string{h.path("run")}); err == nil || err.Error() != "opening inotify: too many open files" {
			t.Errorf("error %v", err)
		}
	}
	taken = nil
	h.Must(n.watch([]string{h.path("run")}))
	h.touch("run/flag")
	<-n.changed
}

// Look returns only after the look has ended, because only then its result has been reported.
func TestWatch_LooksOnceMoreWhenItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, returned atomic.Int64
		end := make(chan struct{})
		n := newNotifier(func() (*fsnotify.Watcher, error) { return nil, errors.New("no") })
		w := Watch{
			Folders: func() []string { return nil }, Period: time.Minute, Clock: clock.RealClock{},
			Look: func() {
				if looks.Add(1) > 1 {
					<-end
				}
			},
			Again: make(source.Again),
		}
		ctx, cancel := context.WithCancel(t.Context())
		go w.run(ctx, n)
		go func() {
			_ = w.Again.Look(ctx)
			returned.Add(1)
		}()
		synctest.Wait()
		if looks.Load() != 2 || returned.Load() != 0 {
			t.Errorf("%d looks; asked and answered before the end of one: %d", looks.Load(), returned.Load())
		}
		close(end)
		synctest.Wait()
		if returned.Load() != 1 {
			t.Error("asked, and not answered at the end of the look")
		}
		cancel()
	})
}

func TestWatch_LogsOnceThatAFolderCannotBeWatchedAndOnceMoreAfterItCould(t *testing.T) {
	h := newHarness(t)
	looks, complaints := 0, 0
	logger := funcr.New(func(_, args string) {
		if strings.Contains(args, "Cannot watch") {
			complaints++
		}
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logger))
	n := newNotifier(func() (*fsnotify.Watcher, error) {
		if looks == 2 {
			return fsnotify.NewWatcher()
		}
		return nil, errors.New("no")
	})
	w := Watch{
		Folders: func() []string { return nil }, Period: time.Minute, Clock: h.Clock,
		Look: func() {
			looks++
			switch looks {
			case 3:
				n.close()
				n.watcher = nil
			case 5:
				cancel()
				return
			}
			n.changed <- struct{}{}
		},
	}
	w.run(ctx, n)
	if complaints != 2 {
		t.Errorf("complained %d times, want twice", complaints)
	}
}
