package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// barWidth is how wide the bar of progress is.
const barWidth = 24

// Lines is the status for people.
func (s Status) Lines(l terminal.Look) []string {
	if len(s.Policies) == 0 && len(s.Ungoverned) == 0 {
		none := "No RebootPolicy, and no node needs a reboot."
		if s.Silent > 0 {
			none = "No RebootPolicy, and no node is known to need a reboot."
		}
		return terminal.Blocks([]string{none}, proposed(s, l))
	}
	var bar []string
	if l.Width > 0 {
		bar = []string{s.bar(l)}
	}
	return terminal.Blocks(bar, s.policies(l), s.inProgress(l), s.waiting(l), s.versions(l), s.notices(l), proposed(s, l))
}

// bar reports how far the whole is.
func (s Status) bar(l terminal.Look) string {
	sum := s.Sum()
	full := barWidth * sum.UpToDate / max(1, sum.Selected)
	bar := l.Theme.Paint(terminal.Good, strings.Repeat("━", full)) + l.Theme.Paint(terminal.Quiet, strings.Repeat("─", barWidth-full))
	text := fmt.Sprintf("  %d of %d nodes up to date", sum.UpToDate, sum.Selected)
	if at := s.completionAt(); !at.IsZero() {
		text += ", all " + moment.Until(at, s.At)
	}
	text += fmt.Sprintf(", %d rebooting, %d waiting", sum.InProgress, sum.Waiting)
	return bar + terminal.Cut(text, l.Width-barWidth)
}

// completionAt is when the last of the policies is expected to be done; zero: nothing is to be done, or it is unknown of one.
func (s Status) completionAt() time.Time {
	var last time.Time
	for _, p := range s.Policies {
		switch {
		case p.Mode == v1alpha1.ModeDryRun || p.Nodes.Pending+p.Nodes.InProgress == 0:
		case p.CompletionAt.IsZero():
			return time.Time{}
		case p.CompletionAt.After(last):
			last = p.CompletionAt
		}
	}
	return last
}

// notices are wrapped. Their commands are not, so that they can be copied.
func (s Status) notices(l terminal.Look) []string {
	var lines []string
	for _, p := range s.Policies {
		for _, n := range p.Notices {
			lines = append(lines, l.Hang(l.Theme.Paint(terminal.Bad, "!")+" ", 2, n.Message)...)
			if n.Command != "" {
				lines = append(lines, "  "+l.Command(n.Command))
			}
		}
	}
	return lines
}
