// Package document reads the documentation, so that tests can compare it with the code, and writes
// measured figures into it.
package document

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Block is a fenced block of code.
type Block struct {
	// Heading is the heading above the block, without number signs.
	Heading string
	// Language is the word after the fence, such as sh or yaml.
	Language string
	// Text is the text between the fences, without the indentation of the first fence.
	Text string
}

// Blocks returns the code blocks of a Markdown file in order. It fails if a fence is not closed.
func Blocks(path string) ([]Block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // the error names the file
	}
	var blocks []Block
	var open *Block
	heading, indent := "", ""
	for line := range strings.Lines(string(text)) {
		code := strings.TrimLeft(line, " ")
		switch {
		case open == nil && strings.HasPrefix(code, "```"):
			indent = line[:len(line)-len(code)]
			open = &Block{Heading: heading, Language: strings.TrimSpace(code[3:])}
		case open == nil && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		case open != nil && strings.TrimSpace(code) == "```":
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: a block of code under %q is not closed", path, open.Heading)
	}
	return blocks, nil
}

// Table returns the rows of the tables under a heading of a Markdown file, or of all tables if the
// heading is empty, without header rows. It fails if it finds none.
func Table(path, heading string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // the error names the file
	}
	var rows [][]string
	under, head := "", true
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			under, head = strings.TrimSpace(strings.TrimLeft(line, "#")), true
		case !strings.HasPrefix(line, "|"):
			head = true
		case strings.HasPrefix(line, "|--"):
			head = false
		case !head && (heading == "" || heading == under):
			rows = append(rows, cellsOf(line))
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no table under %q", path, heading)
	}
	return rows, nil
}

func cellsOf(row string) []string {
	cells := strings.Split(strings.Trim(row, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// writing serializes tests that add rows to the same page.
var writing sync.Mutex

// Edit rewrites a section of a Markdown file, which is between two comments that begin with its
// name.
func Edit(path, section string, edit func(old string) string) error {
	writing.Lock()
	defer writing.Unlock()
	text, err := os.ReadFile(path)
	if err != nil {
		return err // the error names the file
	}
	begin, end := "<!-- "+section+": ", "<!-- "+section+": end -->\n"
	before, rest, begun := strings.Cut(string(text), begin)
	comment, rest, _ := strings.Cut(rest, "\n")
	old, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return fmt.Errorf("%s has no section from %q to %q", path, begin, end)
	}
	page := before + begin + comment + "\n\n" + strings.TrimSpace(edit(strings.TrimSpace(old))) + "\n\n" + end + after
	return os.WriteFile(path, []byte(page), 0o600) // keeps the mode; the error names the file
}

// Rows returns a Markdown table. A leading ">", which is not shown, marks a numeric column.
func Rows(columns []string, rows [][]string) string {
	var heads, rules []string
	for _, column := range columns {
		head, number := strings.CutPrefix(column, ">")
		rule := "---"
		if number {
			rule = "---:"
		}
		heads, rules = append(heads, head), append(rules, rule)
	}
	var text strings.Builder
	text.WriteString(Row(heads...) + "|" + strings.Join(rules, "|") + "|\n")
	for _, row := range rows {
		text.WriteString(Row(row...))
	}
	return text.String()
}

// Row returns one row of a table. It escapes bars, which would end a cell.
func Row(cells ...string) string {
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(escaped, " | ") + " |\n"
}
