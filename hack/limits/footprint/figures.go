package footprint

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// FiguresVariable names the file that AddRow appends to; `make limits` makes tables of it.
const FiguresVariable = "FIGURES"

// AddRow appends a row to a table of docs/limits.md, where `make limits` asks for it.
func AddRow(table string, cells ...any) error {
	path := os.Getenv(FiguresVariable)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("noting a figure: %w", err)
	}
	var row strings.Builder
	row.WriteString(table + " |")
	for _, cell := range cells {
		fmt.Fprintf(&row, " %v |", cell)
	}
	_, err = fmt.Fprintln(file, row.String())
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
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
