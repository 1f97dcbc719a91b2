package figures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// lineWidth is how wide the lines of the documents are.
const lineWidth = 140

// Markdown is the report for a document, under the command that made it.
func (r Result) Markdown(command string) string {
	var b strings.Builder
	paragraph := func(text string) { b.WriteString(strings.Join(terminal.Wrap(text, lineWidth), "\n") + "\n") }
	paragraph(fmt.Sprintf("`%s`: %s", command, r.Setting))
	for _, t := range r.Tables {
		if t.Title != "" {
			fmt.Fprintf(&b, "\n%s:\n", t.Title)
		}
		b.WriteString("\n" + t.markdown())
	}
	for _, note := range r.Notes {
		b.WriteString("\n")
		paragraph(note)
	}
	return b.String()
}

func (t Table) markdown() string {
	names, rules := []string{}, []string{}
	for _, name := range t.Columns {
		text, number := strings.CutPrefix(name, ">")
		rule := "---"
		if number {
			rule = "---:"
		}
		names, rules = append(names, text), append(rules, rule)
	}
	if t.hasGoals() {
		names, rules = append(names, "goal", "met"), append(rules, "---", "---")
	}
	var b strings.Builder
	b.WriteString(line(names) + "|" + strings.Join(rules, "|") + "|\n")
	for _, r := range t.Rows {
		cells := r.Cells
		if t.hasGoals() {
			cells = append(slices.Clip(cells), r.Goal, r.verdict())
		}
		b.WriteString(line(cells))
	}
	return b.String()
}

// line is one row. A bar in a cell would end it.
func line(cells []string) string {
	escaped := make([]string, len(cells))
	for i, c := range cells {
		escaped[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(escaped, " | ") + " |\n"
}
