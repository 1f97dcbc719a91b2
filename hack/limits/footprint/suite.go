package footprint

import (
	"io"
	"os"
	"strconv"
	"sync/atomic"
)

// Log is the log of a suite. It keeps nothing while Quiet: what a test remembers would count as a leak.
type Log struct {
	To    io.Writer
	Quiet atomic.Bool
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	if l.Quiet.Load() {
		return len(line), nil
	}
	return l.To.Write(line)
}

// Times is how often something is done: what an environment variable sets, or few.
func Times(variable string, few int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return few
}
