package document

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// writing is for tests that run side by side and add rows to one page.
var writing sync.Mutex

// Edit rewrites a section of a Markdown file, which stands between two comments that begin with its name. All else is people's.
func Edit(path, section string, edit func(old string) string) error {
	writing.Lock()
	defer writing.Unlock()
	text, err := os.ReadFile(path)
	if err != nil {
		return err // it names the file
	}
	begin, end := "<!-- "+section+": ", "<!-- "+section+": end -->\n"
	before, rest, begun := strings.Cut(string(text), begin)
	comment, rest, _ := strings.Cut(rest, "\n")
	old, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return fmt.Errorf("%s has no section from %q to %q", path, begin, end)
	}
	page := before + begin + comment + "\n\n" + strings.TrimSpace(edit(strings.TrimSpace(old))) + "\n\n" + end + after
	return os.WriteFile(path, []byte(page), 0o600) // its mode stays; the error names it
}

// Rows writes a table. Columns of numbers begin with a ">", which is not shown.
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

// Row writes one row of a table. A bar in a cell would end it.
func Row(cells ...string) string {
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(escaped, " | ") + " |\n"
}
