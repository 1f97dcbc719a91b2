package embedded

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// Names of the programs of a cluster that others end and start again.
const (
	Etcd          = "etcd"
	KubeAPIServer = "kube-apiserver"
)

// programs holds the programs of a cluster, running or killed.
type programs struct {
	// Processes runs the cluster's programs. Everything started in it ends with the cluster.
	Processes *process.Group

	mu sync.Mutex
	// running are the programs that were started and not killed, by name. launched are all of them,
	// as they were started.
	running  map[string]*process.Process
	launched map[string]process.Program
}

func (p *programs) start(all ...process.Program) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, program := range all {
		if err := p.launch(program); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a program. The caller holds the lock.
func (p *programs) launch(program process.Program) error {
	running, err := p.Processes.Start(program)
	if err != nil {
		return err
	}
	p.running[program.Name], p.launched[program.Name] = running, program
	return nil
}

// again restarts a program that Kill has ended.
func (p *programs) again(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[name] != nil {
		return nil
	}
	return p.launch(p.launched[name])
}

// Err returns an error for a program that has ended although nobody stopped it, with the end of its
// log. It returns nil if all programs run.
func (p *programs) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, running := range p.running {
		errs = append(errs, running.ExitError())
	}
	return errors.Join(errs...)
}

// Program returns the process of one of the cluster's programs, such as kube-apiserver, or nil if
// it is not running.
func (p *programs) Program(name string) *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[name]
}

// Kill ends one of the cluster's programs at once. Until Revive, Err does not report it. A program
// that is down stays down.
func (p *programs) Kill(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running := p.running[name]; running != nil {
		delete(p.running, name)
		running.Kill()
	}
}

// Signal sends a signal to one of the cluster's programs, such as SIGSTOP.
func (p *programs) Signal(name string, signal os.Signal) error {
	running := p.Program(name)
	if running == nil {
		return fmt.Errorf("signalling %s: it does not run", name)
	}
	return running.Signal(signal)
}
