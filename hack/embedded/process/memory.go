package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
)

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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	return parseMemory(text), nil
}

// parseMemory reads /proc/PID/status.
func parseMemory(status []byte) Memory {
	var m Memory
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		var key string
		var kilobytes int64
		// Lines of another form are of no interest.
		_, _ = fmt.Sscanf(lines.Text(), "%s %d kB", &key, &kilobytes)
		switch key {
		case "VmRSS:":
			m.Resident = kilobytes << 10
		case "RssAnon:":
			m.Anonymous = kilobytes << 10
		case "VmHWM:":
			m.Peak = kilobytes << 10
		}
	}
	return m
}
