package process

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

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
