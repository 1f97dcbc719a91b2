// Package process starts programs that never outlive their starter. Each has its own process group,
// so that an interrupt typed in a terminal reaches only the starter. The kernel kills it when the
// starter dies.
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

// Program describes a program to start.
type Program struct {
	// Name is the name for people. The output goes to NAME.log.
	Name string
	// Path is the file of the program.
	Path string
	// Args are the arguments without the program's name.
	Args []string
	// Env is added to the starter's environment, as KEY=value.
	Env []string
}

// Process is a started program.
type Process struct {
	// Name and Path are those of the program.
	Name, Path string
	// Log is the file that the output is appended to.
	Log string

	cmd  *exec.Cmd
	done chan struct{}
}

// Pid is the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the process is still running.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitError describes how the process ended, with the last lines of its log. It is nil while the
// process runs.
func (p *Process) ExitError() error {
	if p.Alive() {
		return nil
	}
	return fmt.Errorf("%s ended: %s\n%s", p.Name, p.cmd.ProcessState, p.Tail(5))
}

// Tail returns the last lines of the log, indented, or an empty text if the log cannot be read.
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
	// The only possible error is that it has ended already. A signal through os.Process never
	// reaches another process that got the same ID later.
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
	// cmd.ProcessState records how it ended.
	_ = p.cmd.Wait()
}

// StarterIsGone reports whether the process that created something of this name has ended. Such a
// name consists of the prefix, the process ID, a dot and a suffix. It is false for other names.
func StarterIsGone(prefix, name string) bool {
	rest, ours := strings.CutPrefix(name, prefix)
	id, _, _ := strings.Cut(rest, ".")
	pid, err := strconv.Atoi(id)
	return ours && err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// Children returns the names of the running processes that another process has started, by process
// ID.
func Children(parent int) (map[int]string, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	children := map[int]string{}
	for _, p := range all {
		// An error means that the process has ended in between.
		if stat, err := p.Stat(); err == nil && stat.PPID == parent && stat.State != "Z" {
			children[p.PID] = stat.Comm
		}
	}
	return children, nil
}

// CPU returns the CPU time of all threads since the start. It is read from /proc, so only Linux can
// measure it.
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

// Memory is the memory of a process in bytes.
type Memory struct {
	// Resident is all resident memory, including pages of the program's file.
	Resident int64
	// Anonymous is the part that belongs to no file: heap and stacks.
	Anonymous int64
	// Peak is the largest Resident so far.
	Peak int64
}

// Memory reads the current memory of the process. It is read from /proc, so it works on Linux only.
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
