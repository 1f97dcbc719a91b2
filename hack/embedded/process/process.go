// Package process starts programs that never outlive the one that started them. Each has its own process group, so that an interrupt
// typed in a terminal reaches only the starter. The kernel kills it when the starter dies.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Program states what to start.
type Program struct {
	// Name is how people call it; its output goes to NAME.log.
	Name string
	// Path is the program's file.
	Path string
	// Args are its arguments, without the program's name.
	Args []string
	// Env is added to the starter's environment, as KEY=value.
	Env []string
}

// Process is a program that was started.
type Process struct {
	// Name and Path are the program's.
	Name, Path string
	// Log is the file its output is appended to.
	Log string

	cmd  *exec.Cmd
	done chan struct{}
}

// Pid is the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitError states how the process ended, with the last lines of its log; nil while it runs.
func (p *Process) ExitError() error {
	if p.Alive() {
		return nil
	}
	return fmt.Errorf("%s ended: %s\n%s", p.Name, p.cmd.ProcessState, p.Tail(5))
}

// Tail is the last lines of its log, indented; empty when the log cannot be read.
func (p *Process) Tail(lines int) string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

// Signal sends a signal to the process, such as SIGSTOP.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, p.Name, err)
	}
	return nil
}

// Kill ends the process at once, as a power cut would, and waits until it is gone.
func (p *Process) Kill() {
	// The only error is that it has ended already. A signal through os.Process never reaches another process that got
	// the same ID later.
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop asks the process to end, kills it when ctx ends, and returns when it is gone.
func (p *Process) Stop(ctx context.Context) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Kill()
		return
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
	}
}

func (p *Process) wait() {
	defer close(p.done)
	endGroup(p.Pid())
	// How it ended is in cmd.ProcessState.
	_ = p.cmd.Wait()
}

// StarterIsGone reports whether the process has ended that made something of this name: the prefix, its process ID, a dot, and
// something more. It is false of other names.
func StarterIsGone(prefix, name string) bool {
	rest, ours := strings.CutPrefix(name, prefix)
	id, _, _ := strings.Cut(rest, ".")
	pid, err := strconv.Atoi(id)
	return ours && err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// Children are the names of the processes that another one has started, by process ID; those that have ended are left out.
func Children(parent int) (map[int]string, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	children := map[int]string{}
	for _, p := range all {
		// An error: it has ended meanwhile.
		if stat, err := p.Stat(); err == nil && stat.PPID == parent && stat.State != "Z" {
			children[p.PID] = stat.Comm
		}
	}
	return children, nil
}

// CPU is the CPU time the process has used since it was started, in all its threads. It is read from /proc, so only Linux
// can measure.
func (p *Process) CPU() (time.Duration, error) {
	var stat procfs.ProcStat
	proc, err := procfs.NewProc(p.Pid())
	if err == nil {
		stat, err = proc.Stat()
	}
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", p.Name, err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}

// Memory is what a process holds in memory, in bytes.
type Memory struct {
	// Resident is all of it, the pages of the program's own file too.
	Resident int64
	// Anonymous is the part that belongs to no file: heap and stacks.
	Anonymous int64
	// Peak is the most that was ever resident.
	Peak int64
}

// Memory reads what the process holds in memory now. It is read from /proc, so it works on Linux only.
func (p *Process) Memory() (Memory, error) {
	var status procfs.ProcStatus
	proc, err := procfs.NewProc(p.Pid())
	if err == nil {
		status, err = proc.NewStatus()
	}
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	return Memory{Resident: int64(status.VmRSS), Anonymous: int64(status.RssAnon), Peak: int64(status.VmHWM)}, nil
}
