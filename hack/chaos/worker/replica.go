package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// restart is the delay before a manager that ended is started again, as its Deployment would.
const restart = 150 * time.Millisecond

// ManagerCommand is the argument that makes this program run as a manager.
const ManagerCommand = "manager"

// replica is one of the managers: a process that is restarted whenever it ends.
type replica struct {
	clock FileClock
	line  *wire.Wire

	group   *process.Group
	program process.Program

	mu      sync.Mutex
	process *process.Process
}

func newReplica(ctx context.Context, l *Worker, number int) (*replica, error) {
	line := newWire()
	address, err := line.Serve(ctx, l.cluster.Config().Host, l.transport)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("manager-%d", number)
	r := &replica{
		clock: FileClock{Path: filepath.Join(l.cluster.Dir, name+".clock")}, line: line, group: l.cluster.Processes,
	}
	kubeconfig := filepath.Join(l.cluster.Dir, name+".kubeconfig")
	if err := testenv.WriteKubeconfig(kubeconfig, &rest.Config{Host: address}); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program of the managers: %w", err)
	}
	r.program = process.Program{Name: name, Path: self, Args: []string{ManagerCommand, "--kubeconfig=" + kubeconfig, "--clock=" + r.clock.Path}}
	return r, r.clock.write(0)
}

// run keeps the process running until ctx ends.
func (r *replica) run(ctx context.Context) error {
	for ctx.Err() == nil {
		p, err := r.group.Start(r.program)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.process = p
		r.mu.Unlock()
		select {
		case <-p.Done():
		case <-ctx.Done():
			p.Kill()
			return nil
		}
		pause(ctx, restart)
	}
	return nil
}

func (r *replica) current() *process.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

// hasty is a clock whose timers fire after at most one second, so that nobody waits half a minute
// before a retry.
type hasty struct{ *machine.Clock }

// NewTimer implements clock.Clock.
func (c hasty) NewTimer(d time.Duration) clock.Timer { return c.Clock.NewTimer(min(d, time.Second)) }

// FileClock is the real clock plus an offset that another process writes to a file.
type FileClock struct {
	// Path is a file with the offset in nanoseconds. Reads always find it complete, and FileClock
	// panics if it cannot be read.
	Path string
}

// Now implements clock.PassiveClock.
func (c FileClock) Now() time.Time {
	text, err := os.ReadFile(c.Path)
	if err != nil {
		panic(err)
	}
	offset, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		panic(err)
	}
	return time.Now().Add(time.Duration(offset))
}

// Since implements clock.PassiveClock.
func (c FileClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// write sets the offset atomically.
func (c FileClock) write(offset time.Duration) error {
	err := os.WriteFile(c.Path+".new", []byte(strconv.FormatInt(int64(offset), 10)), 0o600)
	if err == nil {
		err = os.Rename(c.Path+".new", c.Path)
	}
	if err != nil {
		return fmt.Errorf("writing a clock: %w", err)
	}
	return nil
}
