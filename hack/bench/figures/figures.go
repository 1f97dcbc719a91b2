// Package figures holds the results of a benchmark as data: its parts, and the tables that they
// return.
package figures

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// lineWidth is the line width of the documents.
const lineWidth = 140

// Part is a part of the benchmark. It starts and stops everything it needs.
type Part struct {
	// Name is the name for --only, one lower-case word.
	Name string
	// About describes the part for users.
	About string
	// Run measures, and shows its steps on the screen.
	Run func(ctx context.Context, screen *terminal.Terminal) (Result, error)
}

// Result is the result of a part.
type Result struct {
	// Setting describes in whole sentences what readers need to know to repeat the measurement.
	Setting string
	// Tables holds the figures.
	Tables []Table
	// Notes holds sentences below the tables.
	Notes []string
}

// Table holds figures of one kind. If a row has a goal, the table gets two more columns: the goal
// and whether it is met.
type Table struct {
	// Title is a few words, or empty if the report has only one table.
	Title string
	// Columns holds the names of the columns. A leading ">", which is not shown, marks a numeric
	// column.
	Columns []string
	// Rows holds the rows, with a cell for each column.
	Rows []Row
}

// Row is one figure, or several that belong together.
type Row struct {
	// Cells holds the text of the cells.
	Cells []string
	// Goal is the goal. It is empty if the row is only for comparison.
	Goal string
	// Missed means that the goal is not met.
	Missed bool
}

// Figure returns a row with one figure and no goal.
func Figure(name, measured string) Row { return Row{Cells: []string{name, measured}} }

// Judged returns a row with one figure and its goal.
func Judged(name, measured string, met bool, goal string) Row {
	return Row{Cells: []string{name, measured}, Goal: goal, Missed: !met}
}

// Missed returns the first cells of all rows whose goals are not met.
func (r Result) Missed() (names []string) {
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			if row.Missed {
				names = append(names, row.Cells[0])
			}
		}
	}
	return names
}

// cells returns the table, with two more columns if it has goals.
func (t Table) cells() (columns []string, rows [][]string) {
	columns = t.Columns
	goals := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Goal != "" })
	if goals {
		columns = append(slices.Clip(columns), "goal", "met")
	}
	for _, r := range t.Rows {
		cells := r.Cells
		if goals {
			cells = append(slices.Clip(cells), r.Goal, r.met())
		}
		rows = append(rows, cells)
	}
	return columns, rows
}

func (r Row) met() string {
	switch {
	case r.Goal == "":
		return ""
	case r.Missed:
		return "✗"
	}
	return "✓"
}

// Markdown returns the report below the command that made it.
func (r Result) Markdown(command string) string {
	paragraph := func(text string) string { return strings.Join(terminal.Wrap(text, lineWidth), "\n") + "\n" }
	var text strings.Builder
	text.WriteString(paragraph(fmt.Sprintf("`%s`: %s", command, r.Setting)))
	for _, t := range r.Tables {
		if t.Title != "" {
			text.WriteString("\n" + t.Title + ":\n")
		}
		text.WriteString("\n" + document.Rows(t.cells()))
	}
	for _, note := range r.Notes {
		text.WriteString("\n" + paragraph(note))
	}
	return text.String()
}

// Quantile returns the smallest duration that is not exceeded by a share of them, in (0, 1], or 0
// without durations.
func Quantile(durations []time.Duration, share float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	i := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// QuantileText formats a quantile in milliseconds.
func QuantileText(durations []time.Duration, share float64) string {
	return Milliseconds(Quantile(durations, share))
}

// Milliseconds formats a short duration.
func Milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Seconds formats a duration to a tenth of a second.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Mebibytes formats an amount of memory.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Largest returns the memory of the process with the most resident memory, or before if that was
// larger.
func Largest(before process.Memory, processes []*process.Process) process.Memory {
	for _, p := range processes {
		m, err := p.Memory()
		if err == nil && m.Resident > before.Resident { // the process may just have ended
			before = m
		}
	}
	return before
}

// Memory formats the resident memory, and the part that is not shared with other processes of the
// program.
func Memory(m process.Memory) string {
	return fmt.Sprintf("%s, %s of it its own", Mebibytes(m.Resident), Mebibytes(m.Anonymous))
}
