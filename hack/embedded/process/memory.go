package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
)

// Resident is the process's resident memory in bytes. It is read from /proc, so only Linux can tell.
func (p *Process) Resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var kilobytes int64
		if _, err := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kilobytes); err == nil {
			return kilobytes << 10, nil
		}
	}
	return 0, fmt.Errorf("reading the memory of %s: no VmRSS", p.Name)
}
