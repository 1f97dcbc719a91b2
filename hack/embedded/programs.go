package embedded

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// Names of the programs of a cluster.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
)

// programs are those of a cluster, running or killed.
type programs struct {
	// Processes runs the cluster's programs; what is started in it ends with the cluster.
	Processes *process.Group

	mu      sync.Mutex
	running []*process.Process
	// down are the programs that Kill has ended, until they are started again.
	down map[string]process.Program
	// launched are all programs, as they were started.
	launched map[string]process.Program
}

func (p *programs) start(all ...process.Program) error {
	for _, program := range all {
		is, err := p.Processes.Start(program)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.running, p.launched[program.Name] = append(p.running, is), program
		p.mu.Unlock()
	}
	return nil
}

// Err names a program of the cluster that has ended although nobody stopped it, with the end of its log; nil while all
// of them run.
func (p *programs) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, is := range p.running {
		errs = append(errs, is.ExitError())
	}
	return errors.Join(errs...)
}

// Program is the process of one of the cluster's programs, such as kube-apiserver; nil where there is none of that name.
func (p *programs) Program(name string) *process.Process {
	for _, is := range p.running {
		if is.Name == name {
			return is
		}
	}
	return nil
}

// Kill ends one of the cluster's programs at once. Until Revive its end is no error of the cluster's. One that is down
// already stays so.
func (p *programs) Kill(name string) {
	p.mu.Lock()
	i := slices.IndexFunc(p.running, func(is *process.Process) bool { return is.Name == name })
	if i < 0 {
		p.mu.Unlock()
		return
	}
	is := p.running[i]
	p.running, p.down[name] = slices.Delete(p.running, i, i+1), p.launched[name]
	p.mu.Unlock()
	is.Kill()
}

// Signal sends a signal to one of the cluster's programs, such as SIGSTOP.
func (p *programs) Signal(name string, signal os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, is := range p.running {
		if is.Name == name {
			return is.Signal(signal)
		}
	}
	return fmt.Errorf("signalling %s: it does not run", name)
}

// killed takes the program that Kill has ended, if it has.
func (p *programs) killed(name string) (program process.Program, down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	program, down = p.down[name]
	delete(p.down, name)
	return program, down
}
