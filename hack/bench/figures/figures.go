// Package figures is what a benchmark finds out, as data: parts that measure, and the tables that they come back with.
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

// lineWidth is how wide the lines of the documents are.
const lineWidth = 140

// Part is one of the things that are measured. It starts what it needs, and ends it.
type Part struct {
	// Name is what --only knows it by, one lower-case word.
	Name string
	// About states what is measured, for people who choose.
	About string
	// Run measures, step by step on the screen.
	Run func(ctx context.Context, screen *terminal.Terminal) (Result, error)
}

// Result is what a part found out.
type Result struct {
	// Setting reports in whole sentences what was measured on: what the reader has to know to measure the same.
	Setting string
	// Tables are the figures.
	Tables []Table
	// Notes are sentences that stand below the tables. Nil: none.
	Notes []string
}

// Table is figures of one kind. It gets two more columns, the goal and whether it is met, where a row has a goal.
type Table struct {
	// Title is a few words. Empty: the report has but one table.
	Title string
	// Columns are the names of the columns; those of numbers begin with a ">", which is not shown.
	Columns []string
	// Rows have a cell for each column.
	Rows []Row
}

// Row is one figure, or several that belong together.
type Row struct {
	// Cells are shown as they are.
	Cells []string
	// Goal states what is wanted. Empty: nothing is, the row is for comparison.
	Goal string
	// Missed reports that the goal is not met.
	Missed bool
}

// Figure is the row of one figure that has no goal.
func Figure(name, measured string) Row { return Row{Cells: []string{name, measured}} }

// Judged is the row of one figure with its goal.
func Judged(name, measured string, met bool, goal string) Row {
	return Row{Cells: []string{name, measured}, Goal: goal, Missed: !met}
}

// Missed names the rows whose goals are not met, by their first cells.
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

// cells are the table with two more columns where there are goals.
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

// Markdown is the report, under the command that made it.
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

// Quantile is the smallest of the durations that a share of them, in (0, 1], does not exceed. None: 0.
func Quantile(durations []time.Duration, share float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	i := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// QuantileText is a quantile for people, in milliseconds.
func QuantileText(durations []time.Duration, share float64) string {
	return Milliseconds(Quantile(durations, share))
}

// Milliseconds is a short duration for people.
func Milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Seconds is a duration for people, to the tenth of a second.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Mebibytes is an amount of memory for people.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Largest is the memory of the process that holds most, or that of one that held more before.
func Largest(before process.Memory, processes []*process.Process) process.Memory {
	for _, p := range processes {
		m, err := p.Memory()
		if err == nil && m.Resident > before.Resident { // It may just have ended.
			before = m
		}
	}
	return before
}

// Memory is the whole, and what no other process of the same program shares.
func Memory(m process.Memory) string {
	return fmt.Sprintf("%s, %s of it its own", Mebibytes(m.Resident), Mebibytes(m.Anonymous))
}
