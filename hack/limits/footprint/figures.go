package footprint

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/document"
)

// AddRow adds a row to a table of docs/limits.md, where `make limits` names the page.
func AddRow(table string, cells ...any) error {
	page := os.Getenv("FIGURES")
	if page == "" {
		return nil
	}
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	return document.Edit(page, table, func(rows string) string { return rows + "\n| " + strings.Join(texts, " | ") + " |" })
}

// Cells are a footprint in a table: goroutines, files, heap, events.
func (f Footprint) Cells() string {
	return fmt.Sprintf("%d | %d | %.1f MiB | %.1f MiB", f.Goroutines, f.Files, mebi(f.Heap), mebi(f.Events))
}

// Flood is what a flood did.
type Flood struct {
	// What flooded, and how often.
	What string
	Size int
	// Took is how long.
	Took time.Duration
	// Decisions and Requests are how often was decided, and the API server asked.
	Decisions, Requests int
	Before, After       Footprint
}

// Cells are a flood in a table.
func (f Flood) Cells() string {
	short := func(p Footprint) string { return fmt.Sprintf("%d, %d, %.1f MiB", p.Goroutines, p.Files, mebi(p.Heap)) }
	return fmt.Sprintf("%s | %d | %.1f s | %d | %d | %s | %s", f.What, f.Size, f.Took.Seconds(), f.Decisions, f.Requests, short(f.Before), short(f.After))
}

// String is a line for people.
func (f Flood) String() string { return "| " + f.Cells() + " |" }

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
