package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/hack/chaos/wire"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// restart is how soon a manager that has ended is started again, as its Deployment would.
const restart = 150 * time.Millisecond

// ManagerCommand is the word by which this program is a manager instead.
const ManagerCommand = "manager"

// replica is one of the managers: a process that is started again whenever it ends.
type replica struct {
	clock FileClock
	line  *wire.Line

	group   *process.Group
	program process.Program

	mu      sync.Mutex
	process *process.Process
}

func newReplica(ctx context.Context, l *Worker, number int) (*replica, error) {
	line := l.wire.Line(ctx)
	address, err := line.Serve(ctx, l.cluster.Config().Host)
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

// run keeps a process running until ctx ends.
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
