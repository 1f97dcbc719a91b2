package figures

import (
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Draw shows the report in a terminal of so many columns; 0: lines are not cut.
func (r Result) Draw(theme terminal.Theme, width int) []string {
	lines := []string{""}
	for _, sentence := range append([]string{r.Setting}, r.Notes...) {
		for _, line := range terminal.Wrap(sentence, width) {
			lines = append(lines, theme.Paint(terminal.Quiet, line))
		}
	}
	for _, t := range r.Tables {
		lines = append(lines, "")
		if t.Title != "" {
			lines = append(lines, theme.Paint(terminal.Strong, t.Title))
		}
		lines = append(lines, theme.Table(t.cells(), width)...)
	}
	return append(lines, "")
}

// cells are the table for the terminal: the verdict comes before the goal, which may be cut.
func (t Table) cells() [][]terminal.Cell {
	names := t.Columns
	if t.hasGoals() {
		names = append(slices.Clip(names), "", "goal")
	}
	rows := [][]terminal.Cell{terminal.Header(names...)}
	for _, r := range t.Rows {
		var row []terminal.Cell
		for i, text := range r.Cells {
			row = append(row, terminal.Cell{Text: text, Right: strings.HasPrefix(t.Columns[i], ">")})
		}
		if t.hasGoals() {
			style := terminal.Good
			if r.Missed {
				style = terminal.Bad
			}
			row = append(row, terminal.Cell{Text: r.verdict(), Style: style}, terminal.Cell{Text: r.Goal, Style: terminal.Quiet})
		}
		rows = append(rows, row)
	}
	return rows
}
