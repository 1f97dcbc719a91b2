package terminal

import (
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

// Look says how to format output.
type Look struct {
	Theme Theme
	// Width is the width of the terminal, to which tables and text are wrapped. It is 0 for a pipe,
	// where nothing is wrapped.
	Width int
	// Wide shows more columns, and all names.
	Wide bool
	// Zone is the time zone of the output.
	Zone *time.Location
	// Flags is appended to the shown commands of kubectl and Helm, for example --context=prod, so
	// that they use the same cluster.
	Flags string
}

// Command formats a command to copy. Helm has another name for the context flag.
func (l Look) Command(command string) string {
	switch {
	case l.Flags == "":
	case strings.HasPrefix(command, "kubectl "):
		command += " " + l.Flags
	case strings.HasPrefix(command, "helm "):
		command += " " + strings.Replace(l.Flags, "--context=", "--kube-context=", 1)
	}
	return l.Theme.Paint(Strong, command)
}

// gap separates two columns of a table.
const gap = "  "

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table formats rows below the names of their columns. Columns whose name begins with "+" are only
// shown in a wide Look. Columns whose name then begins with ">" are right-aligned, unless they are
// the last. UTC times in cells are converted to the reader's time zone. In a narrow terminal rows
// take several lines. Without rows it returns nothing.
//
// go-pretty and lipgloss/table would keep every column next to the others. In 80 columns that leaves
// 11 to 16 of them for the last column, and lipgloss also cuts the names of columns.
func (l Look) Table(columns []string, rows [][]Cell) []string {
	if len(rows) == 0 {
		return nil
	}
	var names []string
	var widths []int
	table := make([][]Cell, 1+len(rows))
	for i, column := range columns {
		name, wide := strings.CutPrefix(column, "+")
		if wide && !l.Wide {
			continue
		}
		header := Cell{Text: strings.TrimPrefix(name, ">"), Style: Quiet}
		table[0] = append(table[0], header)
		width := textWidth(header.Text)
		for j, row := range rows {
			cell := Cell{Text: moment.Local(row[i].Text, l.Zone), Style: row[i].Style}
			table[j+1] = append(table[j+1], cell)
			width = max(width, textWidth(cell.Text))
		}
		names, widths = append(names, name), append(widths, width)
	}
	var lines []string
	word := leastText
	for _, row := range table {
		for field := range strings.FieldsSeq(row[len(row)-1].Text) {
			word = max(word, textWidth(field))
		}
	}
	folded := l.fold(widths, word)
	for _, row := range table {
		lines = append(lines, l.tableRow(names, row, widths, folded)...)
	}
	return lines
}

const (
	// leastText is the minimum width of the last cell of a row. With less room it starts a new
	// line.
	leastText = 14
	// mostLines is the maximum number of lines of one cell.
	mostLines = 8
)

// fold returns the first columns of each line of a row: columns that do not fit start a new line.
// least is the minimum width of the last cell, whose text is wrapped.
func (l Look) fold(widths []int, least int) map[int]bool {
	folded := map[int]bool{}
	if l.Width == 0 {
		return folded
	}
	used := 0
	for i, width := range widths {
		if i == len(widths)-1 {
			width = min(width, least)
		}
		switch {
		case i == 0:
			used = width
		case used+len(gap)+width > l.Width:
			folded[i] = true
			used = len(gap) + width
		default:
			used += len(gap) + width
		}
	}
	return folded
}

// tableRow returns the lines of one row. Text is wrapped between words, and only words wider than
// the terminal are cut.
func (l Look) tableRow(columns []string, row []Cell, widths []int, folded map[int]bool) []string {
	var lines []string
	var b strings.Builder
	used := 0
	end := func() {
		if line := strings.TrimRight(b.String(), " "); line != "" {
			lines = append(lines, line)
		}
		b.Reset()
		used = 0
	}
	for i, c := range row {
		if folded[i] {
			end()
		}
		if i > 0 {
			b.WriteString(gap)
			used += len(gap)
		}
		if i < len(row)-1 {
			width := widths[i]
			if l.Width > 0 {
				width = min(width, l.Width-used)
			}
			text := align(Cut(part(c.Text), width), width, strings.HasPrefix(columns[i], ">"))
			used += textWidth(text)
			b.WriteString(l.Theme.Paint(c.Style, text))
			continue
		}
		hang := used
		for j, text := range l.wrapped(c.Text, hang) {
			if j > 0 {
				end()
				b.WriteString(strings.Repeat(" ", hang))
			}
			b.WriteString(l.Theme.Paint(c.Style, text))
		}
	}
	end()
	return lines
}

// wrapped wraps the last cell of a row, which starts at the given column.
func (l Look) wrapped(text string, columns int) []string {
	if l.Width == 0 {
		return []string{part(text)}
	}
	lines := Wrap(text, max(1, l.Width-columns))
	if len(lines) > mostLines {
		lines = append(lines[:mostLines-1], lines[mostLines-1]+" …")
	}
	for i := range lines {
		lines[i] = Cut(lines[i], l.Width-columns)
	}
	return lines
}

func align(text string, width int, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-textWidth(text)))
	if right {
		return blanks + text
	}
	return text + blanks
}

// Wrap breaks a text between words into lines of at most the given width, or into one line if that
// is 0. A longer word gets its own line and is not cut, because it may be part of a command.
func Wrap(text string, width int) []string {
	if width <= 0 {
		return []string{part(text)}
	}
	var lines []string
	line := ""
	for field := range strings.FieldsSeq(part(text)) {
		switch {
		case line == "":
			line = field
		case textWidth(line)+1+textWidth(field) <= width:
			line += " " + field
		default:
			lines, line = append(lines, line), field
		}
	}
	return append(lines, line)
}

// Hang wraps a text with a hanging indent: lead starts the first line, and blanks as wide as
// columns start the others. UTC times in the text are converted to the reader's time zone.
func (l Look) Hang(lead string, columns int, text string) []string {
	lines := Wrap(moment.Local(text, l.Zone), max(0, l.Width-columns))
	for i := range lines {
		lines[i] = lead + lines[i]
		lead = strings.Repeat(" ", columns)
	}
	return lines
}

// Blocks joins blocks with empty lines in between, and skips empty blocks.
func Blocks(blocks ...[]string) []string {
	var lines []string
	for _, block := range blocks {
		if len(block) > 0 && len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}
