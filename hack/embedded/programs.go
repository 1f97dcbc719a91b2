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

// programs are those of a cluster, running or killed.
type programs struct {
	// Processes runs the cluster's programs; what is started in it ends with the cluster.
	Processes *process.Group

	mu sync.Mutex
	// running are those that were started and not killed, by name; launched are all, as they were started.
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

// launch starts a program; the caller holds the lock.
func (p *programs) launch(program process.Program) error {
	is, err := p.Processes.Start(program)
	if err != nil {
		return err
	}
	p.running[program.Name], p.launched[program.Name] = is, program
	return nil
}

// again starts a program that Kill has ended.
func (p *programs) again(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[name] != nil {
		return nil
	}
	return p.launch(p.launched[name])
}

// Err names a program of the cluster that has ended although nobody stopped it, with the end of its log. Nil: all of them run.
func (p *programs) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, is := range p.running {
		errs = append(errs, is.ExitError())
	}
	return errors.Join(errs...)
}

// Program is the process of one of the cluster's programs, such as kube-apiserver; nil where none of that name runs.
func (p *programs) Program(name string) *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[name]
}

// Kill ends one of the cluster's programs at once. Until Revive its end is no error of the cluster's. One that is down
// already stays so.
func (p *programs) Kill(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if is := p.running[name]; is != nil {
		delete(p.running, name)
		is.Kill()
	}
}

// Signal sends a signal to one of the cluster's programs, such as SIGSTOP.
func (p *programs) Signal(name string, signal os.Signal) error {
	is := p.Program(name)
	if is == nil {
		return fmt.Errorf("signalling %s: it does not run", name)
	}
	return is.Signal(signal)
}
