// Package document reads the documentation as a program does, so that tests can hold it to what it describes, and writes the
// figures that were measured into it.
package document

import (
	"fmt"
	"os"
	"strings"
)

// Block is a fenced block of code.
type Block struct {
	// Heading is the heading it is under, without the number signs.
	Heading string
	// Language is the word after the fence, such as sh or yaml.
	Language string
	// Text is what is between the fences, without the indentation of the first fence.
	Text string
}

// Blocks reads the blocks of a Markdown file in their order. A fence that is not closed is an error.
func Blocks(path string) ([]Block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the file
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

// Table reads the rows of the tables in a Markdown file, without their headings and rules: those under one heading, or, where that is
// empty, all. There is at least one.
func Table(path, heading string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the file
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
		return nil, fmt.Errorf("%s: there is no table under %q", path, heading)
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
