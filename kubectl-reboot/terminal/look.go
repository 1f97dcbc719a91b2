package terminal

import (
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

// Look is how something is shown.
type Look struct {
	Theme Theme
	// Width is the terminal's, to which tables are cut and text is wrapped. 0: a pipe, nothing is.
	Width int
	// Wide shows more columns, and every name.
	Wide bool
	// Zone is the one in which instants are shown.
	Zone *time.Location
	// Flags follow the commands of kubectl and Helm that are shown, such as --context=prod: they go to the cluster that was asked.
	Flags string
}

// Command is a command to copy. Helm calls the context otherwise.
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

// gap is what is between two columns of a table.
const gap = "  "

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table lays rows out below the names of their columns, in columns as wide as their widest cell.
// Only a wide Look shows a column whose name begins with "+". Then, ">" aligns a column of numbers
// on the right; the last column never is. Instants of UTC in cells are shown in the reader's zone.
// In a narrow terminal rows take several lines. No rows: there is no table.
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
	// leastText is how many columns the last cell of a row gets at least. With less room it goes to
	// a line of its own.
	leastText = 14
	// mostLines is how many lines one cell takes at most.
	mostLines = 8
)

// fold returns the first column of each line that a row takes: columns that do not fit beside the
// others begin a new line. least is how many columns the last cell needs, whose text is wrapped.
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

// tableRow returns the lines of one row. Text is wrapped between words; only a word that is wider
// than the terminal is cut.
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

// wrapped wraps the last cell of a row behind so many columns.
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

// Wrap breaks a text between words into lines of at most so many columns; 0: it is one line. A longer word has a line of its own
// and is not cut: it may be part of a command, which must stay whole.
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

// Hang wraps a text behind a lead that takes so many columns: the lead before the first line, blanks before the others. Instants of
// UTC in the text are shown in the reader's zone.
func (l Look) Hang(lead string, columns int, text string) []string {
	lines := Wrap(moment.Local(text, l.Zone), max(0, l.Width-columns))
	for i := range lines {
		lines[i] = lead + lines[i]
		lead = strings.Repeat(" ", columns)
	}
	return lines
}

// Blocks puts an empty line between blocks that have content.
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
