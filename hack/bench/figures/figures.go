// Package figures is what a benchmark finds out, as data: parts that measure, and the tables that they come back with. It
// draws them for a terminal and as Markdown, and puts the Markdown into a document in which people have written, too.
package figures

import (
	"context"
	"slices"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

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

// Missed counts the goals that are not met.
func (r Result) Missed() int {
	n := 0
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			if row.Missed {
				n++
			}
		}
	}
	return n
}

func (t Table) hasGoals() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Goal != "" })
}

// verdict is a mark for a row with a goal.
func (r Row) verdict() string {
	switch {
	case r.Goal == "":
		return ""
	case r.Missed:
		return "✗"
	}
	return "✓"
}
