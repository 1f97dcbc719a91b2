package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of CPU time in /proc: USER_HZ, which is 100 on every architecture Go runs Linux on.
const tick = time.Second / 100

// CPU is the CPU time the process has used since it was started, in all its threads. It is read from /proc, so only Linux
// can measure.
func (p *Process) CPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", p.Name, err)
	}
	used, err := parseCPU(text)
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", p.Name, err)
	}
	return used, nil
}

// parseCPU reads /proc/PID/stat (proc(5)): utime and stime are its fields 14 and 15. The second is the program's name in
// parentheses, which may have spaces and parentheses of its own.
func parseCPU(stat []byte) (time.Duration, error) {
	const afterName, user, system = 2, 13 - 2, 14 - 2
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("%d fields are too few", len(fields)+afterName)
	}
	var ticks int64
	for _, field := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading a number of ticks: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
