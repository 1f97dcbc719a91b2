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

// ErrStopped is the error of a start after Stop.
var ErrStopped = errors.New("the group of processes has been stopped")

// Group is the processes of one starter. Its methods may be called from any goroutine.
type Group struct {
	dir    string
	starts chan start
	stops  chan context.Context
	done   chan struct{}
}

type start struct {
	program Program
	reply   chan<- started
}

type started struct {
	process *Process
	err     error
}

// NewGroup is an empty group whose logs go to dir. The caller stops it.
func NewGroup(dir string) *Group {
	g := &Group{dir: dir, starts: make(chan start), stops: make(chan context.Context), done: make(chan struct{})}
	go g.run()
	return g
}

// Start starts a program.
func (g *Group) Start(program Program) (*Process, error) {
	reply := make(chan started, 1)
	select {
	case g.starts <- start{program, reply}:
		s := <-reply
		return s.process, s.err
	case <-g.done:
		return nil, fmt.Errorf("starting %s: %w", program.Name, ErrStopped)
	}
}

// Stop asks every process to end, the last started first, kills those that are left when ctx ends, and returns when all
// are gone. Nothing can be started afterwards.
func (g *Group) Stop(ctx context.Context) {
	select {
	case g.stops <- ctx:
	case <-g.done:
	}
	<-g.done
}

// run starts every process from one thread that lives as long as the group: the kernel kills a child when the thread
// that started it ends, and Go ends threads as it likes unless they are locked.
func (g *Group) run() {
	runtime.LockOSThread()
	defer close(g.done)
	var processes []*Process
	for {
		select {
		case s := <-g.starts:
			p, err := g.start(s.program)
			if err == nil {
				processes = append(slices.DeleteFunc(processes, ended), p)
			}
			s.reply <- started{p, err}
		case ctx := <-g.stops:
			for _, p := range slices.Backward(processes) {
				p.Stop(ctx)
			}
			return
		}
	}
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
