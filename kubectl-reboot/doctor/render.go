package doctor

import (
	"strings"

	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// indent is the width of a mark and of a check's name.
const indent = 16

// marks are what is there before a finding.
var marks = map[Level]struct {
	mark  string
	style terminal.Style
}{
	Problem: {"✗", terminal.Bad}, Unchecked: {"?", terminal.Bad}, Warning: {"!", terminal.Wait},
}

// Lines is the report for people: every check, what is wrong with the command that goes on from there, and the sum.
func (r Diagnosis) Lines(l terminal.Look) []string {
	var lines []string
	for _, k := range checks {
		well := true
		for _, f := range r.Findings {
			if f.Check == k.check {
				well = false
				lines = append(lines, f.lines(l)...)
			}
		}
		if well {
			lines = append(lines, l.Theme.Paint(terminal.Good, "✓")+" "+string(k.check))
		}
	}
	return append(lines, "", r.sum())
}

func (f Finding) lines(l terminal.Look) []string {
	m := marks[f.Level]
	message := f.Message
	if f.Level == Unchecked {
		message = "could not be checked: " + message
	}
	lines := l.Hang(l.Theme.Paint(m.style, m.mark)+" "+terminal.Fit(string(f.Check), indent-2), indent, message)
	if f.Command != "" {
		lines = append(lines, strings.Repeat(" ", indent)+l.Command(f.Command))
	}
	return lines
}

// sum is the last line.
func (r Diagnosis) sum() string {
	bad := r.Bad()
	if bad == 0 && len(r.Findings) == 0 {
		return "Nothing is wrong."
	}
	return message.Count(bad, "problem", "problems") + ", " + message.Count(len(r.Findings)-bad, "warning", "warnings") + "."
}
