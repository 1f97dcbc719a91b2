package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// snapshot is what the table shows, at one instant.
type snapshot struct {
	// now is that instant.
	now time.Time
	// began and ended are when the reboots were asked for, and when all were done; zero: they are not.
	began, ended time.Time
	views        []timeline.View
	// engines are what the updates come by.
	engines []engine
	// pods counts the pods on each node, the operator's left out.
	pods map[string]int
	// limit is how many nodes may be unavailable, unavailable how many are, peak the most that ever were.
	limit, unavailable, peak int
}

// Widths of the table's columns, without the two blanks between them; why gets the rest.
const (
	stateWidth = 13
	sinceWidth = 6
	podsWidth  = 10
	barWidth   = 24
	minWhy     = 16
)

// look is how a state looks.
type look struct {
	mark  string
	style terminal.Style
}

var looks = map[timeline.State]look{
	timeline.UpToDate:    {"·", terminal.Quiet},
	timeline.Waiting:     {"○", terminal.Wait},
	timeline.Granted:     {"◔", terminal.Busy},
	timeline.Draining:    {"◑", terminal.Busy},
	timeline.Rebooting:   {"◌", terminal.Away},
	timeline.Settling:    {"◕", terminal.Busy},
	timeline.Back:        {"●", terminal.Good},
	timeline.Unavailable: {"✗", terminal.Bad},
}

// table draws the snapshot in at most so many lines.
func (s snapshot) table(theme terminal.Theme, width, height int) []string {
	shown, rest := s.choose(max(1, height-7-len(s.engines)))
	lines := []string{"", s.bar(theme, width)}
	for _, e := range s.engines {
		lines = append(lines, "  "+terminal.Cut(e.Name+": "+e.report(s.views), width-2))
	}
	lines = append(lines, "", theme.Paint(terminal.Quiet, s.header(width)))
	for _, v := range shown {
		lines = append(lines, s.row(theme, width, v))
	}
	if rest != "" {
		lines = append(lines, theme.Paint(terminal.Quiet, "  "+terminal.Cut(rest, width-2)))
	}
	return append(lines, "")
}

// bar reports how far the whole is.
func (s snapshot) bar(theme terminal.Theme, width int) string {
	back := s.back()
	full := barWidth * back / max(1, len(s.views))
	bar := theme.Paint(terminal.Good, strings.Repeat("━", full)) + theme.Paint(terminal.Quiet, strings.Repeat("─", barWidth-full))
	text := fmt.Sprintf("%d of %d rebooted in %s, %d unavailable (%d allowed, %d at most so far)",
		back, len(s.views), terminal.Seconds(s.elapsed()), s.unavailable, s.limit, s.peak)
	return "  " + bar + "  " + terminal.Cut(text, width-barWidth-4)
}

func (s snapshot) elapsed() time.Duration {
	if s.ended.IsZero() {
		return s.now.Sub(s.began)
	}
	return s.ended.Sub(s.began)
}

func (s snapshot) back() int {
	back := 0
	for _, v := range s.views {
		if v.State == timeline.Back {
			back++
		}
	}
	return back
}

func (s snapshot) nameWidth() int {
	width := len("NODE")
	for _, v := range s.views {
		width = max(width, len(v.Node))
	}
	return min(width, 24)
}

func (s snapshot) header(width int) string {
	line := fmt.Sprintf("  %s  %s  %*s  %s  WHY", terminal.Fit("NODE", s.nameWidth()), terminal.Fit("STATE", stateWidth),
		sinceWidth, "SINCE", terminal.Fit("PODS", podsWidth))
	return terminal.Cut(line, width)
}

func (s snapshot) row(theme terminal.Theme, width int, v timeline.View) string {
	l := looks[v.State]
	taken := 2 + s.nameWidth() + 2 + stateWidth + 2 + sinceWidth + 2 + podsWidth + 2
	why := terminal.Cut(v.Why, max(minWhy, width-taken))
	whyStyle := terminal.Plain
	if l.style == terminal.Good || l.style == terminal.Quiet {
		whyStyle = terminal.Quiet
	}
	return fmt.Sprintf("  %s  %s  %*s  %s  %s",
		terminal.Fit(v.Node, s.nameWidth()),
		theme.Paint(l.style, terminal.Fit(l.mark+" "+string(v.State), stateWidth)),
		sinceWidth, terminal.Seconds(s.now.Sub(v.Since)),
		theme.Paint(terminal.Quiet, pods(s.pods[v.Node])),
		theme.Paint(whyStyle, why))
}

// pods draws a square for each pod, and a number where there are too many.
func pods(n int) string {
	if n > podsWidth {
		return terminal.Fit(fmt.Sprintf("▪▪▪▪▪ %d", n), podsWidth)
	}
	return terminal.Fit(strings.Repeat("▪", n), podsWidth)
}

// interest is what is shown first where there is no room for all.
var interest = []timeline.State{
	timeline.Unavailable, timeline.Rebooting, timeline.Draining, timeline.Granted, timeline.Settling,
	timeline.Back, timeline.Waiting, timeline.UpToDate,
}

// choose leaves the least interesting nodes out where there are more than rows. What is left out is reported in one line.
func (s snapshot) choose(rows int) (shown []timeline.View, rest string) {
	if len(s.views) <= rows {
		return s.views, ""
	}
	rank := func(v timeline.View) int { return slices.Index(interest, v.State) }
	sorted := slices.Clone(s.views)
	slices.SortStableFunc(sorted, func(a, b timeline.View) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.Since.Compare(a.Since))
	})
	counts := map[timeline.State]int{}
	for _, v := range sorted[rows:] {
		counts[v.State]++
	}
	var parts []string
	for _, state := range interest {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	shown = sorted[:rows]
	slices.SortFunc(shown, func(a, b timeline.View) int { return cmp.Compare(a.Node, b.Node) })
	return shown, fmt.Sprintf("and %d more: %s", len(sorted)-rows, strings.Join(parts, ", "))
}

// line formats one change, for a pipe.
func line(theme terminal.Theme, began time.Time, nameWidth int, c timeline.Change) string {
	l := looks[c.To]
	return fmt.Sprintf("  %8s  %s  %s  %s", terminal.Seconds(c.At.Sub(began)), terminal.Fit(c.Node, nameWidth),
		theme.Paint(l.style, terminal.Fit(l.mark+" "+string(c.To), stateWidth)), c.Why)
}
