package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// coordinatorStrategy is what a login on the host shows as the update strategy.
const coordinatorStrategy = "rebootpolicy"

// claimEvery is how often a file that somebody else holds, or has removed, is tried again.
const claimEvery = time.Minute

// CoordinatorState says how near a reboot is, in the words of coordinator.conf.
type CoordinatorState string

// The states of a coordinator. There are "starting" and "disabled" besides, which an agent never is.
const (
	// CoordinatorRunning means no reboot is in sight.
	CoordinatorRunning CoordinatorState = "running"
	// CoordinatorRebootPlanned means the host reboots once it may.
	CoordinatorRebootPlanned CoordinatorState = "reboot-planned"
	// CoordinatorRebooting means the reboot has been asked for, or is about to be.
	CoordinatorRebooting CoordinatorState = "rebooting"
)

// Claim holds coordinator.conf for the life of the process, so that the host and others know who reboots it. It is never
// taken from somebody who holds it. It is safe for concurrent use.
type Claim struct {
	// HostRoot is where the host's file system is mounted, with a /run/update-engine that can be written. Required.
	HostRoot string
	// Clock times the attempts. Required.
	Clock clock.WithTicker

	mu sync.Mutex
	// held is the file under an exclusive lock. Nil: not held.
	held *os.File
	// state is what it should say, and written what it says.
	state, written CoordinatorState
	// problem is why it is not held, or does not say what it should, as far as was tried. Nil: it is and it does.
	problem error
}

// errHeld means somebody else is the coordinator.
var errHeld = errors.New("somebody else holds it")

// Start claims the file, again each minute where that fails, until ctx ends. Then it is given up as coordinators do that: the
// lock is let go, and what the file says means nothing any more. It implements controller-runtime's manager.Runnable.
func (c *Claim) Start(ctx context.Context) error {
	ticker := c.Clock.NewTicker(claimEvery)
	defer ticker.Stop()
	for {
		c.update(ctx, c.renew)
		select {
		case <-ctx.Done():
			c.giveUp()
			return nil
		case <-ticker.C():
		}
	}
}

// Say changes the state in the file, now or once it is held.
func (c *Claim) Say(ctx context.Context, state CoordinatorState) {
	c.update(ctx, func(root *os.Root) error {
		c.state = state
		if c.check(root); c.held == nil {
			return c.problem // It is tried again with the next minute.
		}
		return c.write(root)
	})
}

// other is somebody else who holds the file. While it is held here nobody else does.
func (c *Claim) other() (*Coordinator, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		return nil, nil
	}
	return readCoordinator(c.HostRoot)
}

// update runs one change at a time, and logs what becomes of the claim when that changes.
func (c *Claim) update(ctx context.Context, change func(*os.Root) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.held != nil
	err := c.inRoot(change)
	log := logr.FromContextOrDiscard(ctx).WithValues("file", coordinatorFile)
	switch {
	case err != nil && (c.problem == nil || c.problem.Error() != err.Error()):
		log.Info("Cannot tell the host who reboots it", "reason", err.Error())
	case c.held != nil && !before:
		log.Info("Told the host who reboots it")
	case c.held == nil && before:
		log.Info("Somebody else has replaced or removed what tells who reboots the host")
	}
	c.problem = err
}

func (c *Claim) inRoot(change func(*os.Root) error) error {
	root, err := os.OpenRoot(c.HostRoot)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return change(root)
}

// renew takes the file where it is not held.
func (c *Claim) renew(root *os.Root) error {
	if c.check(root); c.held == nil {
		if err := c.take(root); err != nil {
			return err
		}
	}
	return c.write(root)
}

// check lets go of what is not the file any more: the one that has taken its place may be somebody else's.
func (c *Claim) check(root *os.Root) {
	if c.held != nil && !isAt(root, coordinatorFile, c.held) {
		c.letGo(nil)
	}
}

func (c *Claim) take(root *os.Root) error {
	if err := root.MkdirAll(coordinatorFolder, 0o755); err != nil {
		return err
	}
	file, err := lockFile(root, coordinatorFile)
	if err != nil {
		return err
	}
	c.letGo(file)
	return nil
}

// write replaces the file by another one that is locked before it goes by that name: whoever reads finds all of it, and a
// coordinator behind it at any moment.
func (c *Claim) write(root *os.Root) error {
	state := c.state
	if state == "" {
		state = CoordinatorRunning
	}
	if state == c.written {
		return nil
	}
	const draft = coordinatorFolder + "/.coordinator.conf." + coordinatorName
	file, err := lockFile(root, draft)
	if err != nil {
		return err
	}
	content := fmt.Sprintf("NAME=%s\nSTRATEGY=%s\nSTATE=%s\n", coordinatorName, coordinatorStrategy, state)
	if err := errors.Join(fill(file, content), root.Rename(draft, coordinatorFile)); err != nil {
		return errors.Join(err, file.Close())
	}
	c.letGo(file)
	c.written = state
	return nil
}

// lockFile opens a file, makes it where it is missing, and takes an exclusive lock on it.
func lockFile(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	err = isFile(file)
	if err == nil {
		var locked bool
		locked, err = tryLock(file, syscall.LOCK_EX)
		if err == nil && (!locked || !isAt(root, name, file)) {
			err = errHeld
		}
	}
	if err != nil {
		_ = file.Close() // which gives up the lock as well
		return nil, err
	}
	return file, nil
}

func fill(file *os.File, content string) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(content), 0)
	return err
}

// giveUp ends the claim.
func (c *Claim) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.letGo(nil)
}

// letGo closes what is held, which unlocks it, in favour of another file.
func (c *Claim) letGo(other *os.File) {
	if c.held != nil {
		_ = c.held.Close() // Nothing of it is left to be written.
	}
	c.held, c.written = other, ""
}
