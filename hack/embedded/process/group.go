package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// ErrStopped is returned by a start after Stop.
var ErrStopped = errors.New("the group of processes has been stopped")

// Group holds the processes of one starter. Its methods may be called from any goroutine.
type Group struct {
	dir  string
	work chan func()
	done chan struct{}
	// processes are the started processes. Only the worker thread uses them.
	processes []*Process
}

// NewGroup returns an empty group whose logs go to dir. The caller stops it.
func NewGroup(dir string) *Group {
	g := &Group{dir: dir, work: make(chan func()), done: make(chan struct{})}
	go g.run()
	return g
}

// run does all work on one thread that lives as long as the group. The kernel kills a child when
// the thread that started it ends, and Go may end threads that are not locked.
func (g *Group) run() {
	runtime.LockOSThread()
	for {
		(<-g.work)()
		select {
		case <-g.done:
			return
		default:
		}
	}
}

// do runs work on that thread, unless the group was stopped.
func (g *Group) do(work func()) {
	worked := make(chan struct{})
	select {
	case g.work <- func() { defer close(worked); work() }:
		<-worked
	case <-g.done:
	}
}

// Start starts a program.
func (g *Group) Start(program Program) (p *Process, err error) {
	err = fmt.Errorf("starting %s: %w", program.Name, ErrStopped)
	g.do(func() {
		if p, err = g.start(program); err == nil {
			g.processes = append(slices.DeleteFunc(g.processes, ended), p)
		}
	})
	return p, err
}

// Stop asks every process to end, the last one first, kills the remaining ones when ctx ends, and
// returns when all are gone. Nothing can be started afterwards.
func (g *Group) Stop(ctx context.Context) {
	g.do(func() {
		defer close(g.done)
		for _, p := range slices.Backward(g.processes) {
			p.Stop(ctx)
		}
	})
}

func ended(p *Process) bool { return !p.Alive() }

func (g *Group) start(program Program) (*Process, error) {
	p := &Process{
		Name: program.Name, Path: program.Path,
		Log:  filepath.Join(g.dir, program.Name+".log"),
		done: make(chan struct{}),
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", program.Name, err)
	}
	defer log.Close()
	p.cmd = exec.Command(program.Path, program.Args...)
	p.cmd.Env = append(os.Environ(), program.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = attributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program.Name, err)
	}
	go p.wait()
	return p, nil
}
