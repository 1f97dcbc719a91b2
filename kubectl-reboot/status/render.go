package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// barWidth is the width of the progress bar.
const barWidth = 24

// Lines formats the status for people.
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
		bar = s.bar(l)
	}
	return terminal.Blocks(bar, s.policies(l), s.inProgress(l), s.waiting(l), s.versions(l), s.notices(l), proposed(s, l))
}

// bar formats the progress of the whole fleet.
func (s Status) bar(l terminal.Look) []string {
	sum := s.Sum()
	full := barWidth * sum.UpToDate / max(1, sum.Selected+sum.InConflict)
	bar := l.Theme.Paint(terminal.Good, strings.Repeat("━", full)) + l.Theme.Paint(terminal.Quiet, strings.Repeat("─", barWidth-full))
	text := sum.Progress("nodes up to date")
	if t, stay := s.completion(); !t.IsZero() {
		guessed := slices.ContainsFunc(s.Policies, func(p Policy) bool { return p.Guessed })
		text += ", all" + butFor(stay) + " " + until(t, s.At, guessed) + s.doubt()
	}
	text += fmt.Sprintf(", %d rebooting, %d waiting", sum.InProgress, sum.Waiting)
	return l.Hang(bar+"  ", barWidth+2, text)
}

// completion returns the expected completion of the last policy, without nodes that stay, and the
// number of these. It is zero if nothing is left to do, or if it is unknown for one policy.
func (s Status) completion() (last time.Time, stay int) {
	staying := map[string]bool{} // a node in a conflict stays in each policy
	for _, p := range s.Policies {
		switch {
		case !p.HasWork():
			stay += p.Nodes.Pending
		case p.CompletionAt.IsZero():
			return time.Time{}, 0
		default:
			last = timing.Latest(last, p.CompletionAt)
			for _, n := range p.Stays {
				staying[n.Node] = true
			}
		}
	}
	return last, stay + len(staying)
}

// doubt says which condition the estimate has, or returns "".
func (s Status) doubt() string {
	nodes := 0
	for _, p := range s.Policies {
		nodes += p.MayFail
	}
	if nodes == 0 {
		return ""
	}
	return fmt.Sprintf(", if %s with closed budgets can be drained", message.Count(nodes, "node", "nodes"))
}

// butFor says how many nodes an estimate leaves out, or returns "".
func butFor(stay int) string {
	if stay == 0 {
		return ""
	}
	return fmt.Sprintf(" but %d", stay)
}

// notices formats the notices, without that about the manager, with which each screen begins.
// Commands are not wrapped, so that they can be copied.
func (s Status) notices(l terminal.Look) []string {
	var lines []string
	for _, n := range s.Attention() {
		if n.Kind == ManagerDown {
			continue
		}
		style := terminal.Bad
		if n.Chosen() {
			style = terminal.Wait
		}
		lines = append(lines, l.Hang(l.Theme.Paint(style, "!")+" ", 2, n.Message)...)
		if n.Command != "" {
			lines = append(lines, "  "+l.Command(n.Command))
		}
	}
	return lines
}

func (s Status) policies(l terminal.Look) []string {
	rows := make([][]terminal.Cell, len(s.Policies))
	for i, p := range s.Policies {
		rows[i] = p.row(l, s.At)
	}
	return l.Table([]string{
		"POLICY", "+MODE", "+>MAX", "+>REPORTING", ">LIMIT", ">NODES", ">AGENTS", ">PENDING", ">REBOOTING", ">FAILED", ">DONE IN", "+DONE",
		"WINDOW", "+UNAVAILABLE",
	}, rows)
}

func (p Policy) row(l terminal.Look, now time.Time) []terminal.Cell {
	text, style := p.windowCell(l.Zone, now)
	return []terminal.Cell{
		{Text: p.Name, Style: terminal.Strong},
		{Text: string(p.Mode)},
		{Text: p.MaxUnavailable},
		number(p.Nodes.Reporting, terminal.Plain),
		number(int(p.Limit), terminal.Plain),
		number(p.Nodes.Selected, terminal.Plain),
		p.agents(),
		number(p.Nodes.Pending, terminal.Wait),
		number(p.Nodes.InProgress, terminal.Busy),
		number(p.Nodes.Failed, terminal.Bad),
		p.done(func(t time.Time) string { return moment.Span(t.Sub(now)) }),
		p.done(func(t time.Time) string { return moment.At(t, now, l.Zone) }),
		{Text: text, Style: style},
		{Text: cmp.Or(p.Unavailable, "none")},
	}
}

// done formats the expected completion, with the number of nodes that it leaves out.
func (p Policy) done(write func(t time.Time) string) terminal.Cell {
	if p.Guessed {
		measured := write
		write = func(t time.Time) string { return "~" + measured(t) }
	}
	switch {
	case !p.CompletionAt.IsZero() && len(p.Stays)+p.MayFail > 0:
		return terminal.Cell{Text: ">" + write(p.CompletionAt)}
	case !p.CompletionAt.IsZero():
		return terminal.Cell{Text: write(p.CompletionAt)}
	case !p.HasWork():
		return terminal.Cell{Text: "-", Style: terminal.Quiet}
	}
	return terminal.Cell{Text: "?", Style: terminal.Wait}
}

// agents formats how many nodes have a working agent.
func (p Policy) agents() terminal.Cell {
	switch {
	case p.Agents == nil:
		return terminal.Cell{Text: "?", Style: terminal.Quiet}
	case p.Agents.Missing > 0:
		return terminal.Cell{Text: p.Agents.Summary, Style: terminal.Bad}
	}
	return terminal.Cell{Text: p.Agents.Summary}
}

// number formats a number, with color unless it is zero.
func number(n int, style terminal.Style) terminal.Cell {
	if n == 0 {
		style = terminal.Plain
	}
	return terminal.Cell{Text: strconv.Itoa(n), Style: style}
}

// phaseStyle maps each phase to its style.
var phaseStyle = map[underway.RebootState]terminal.Style{
	underway.StateGranted: terminal.Busy, underway.StateHooks: terminal.Wait, underway.StateDraining: terminal.Busy, underway.StateRebooting: terminal.Away,
	underway.StateBooted: terminal.Away, underway.StateSettling: terminal.Good, underway.StateAborted: terminal.Wait,
}

func (s Status) inProgress(l terminal.Look) []string {
	var rows [][]terminal.Cell
	for _, p := range s.Policies {
		for _, t := range p.InProgress {
			rows = append(rows, rebootRow(t, p.Name, s.At))
		}
	}
	return l.Table([]string{"IN PROGRESS", "POLICY", "PHASE", ">FOR", "NOTE"}, rows)
}

// rebootRow formats a granted reboot, with a note about what the phase does not say.
func rebootRow(t fleet.Granted, policy string, now time.Time) []terminal.Cell {
	style, note := phaseStyle[t.Phase], terminal.Cell{Text: t.Message, Style: terminal.Quiet}
	switch {
	case t.Overdue:
		style, note = terminal.Bad, terminal.Cell{Text: t.Note(), Style: terminal.Bad}
	case t.Phase == underway.StateSettling && !t.Until.IsZero():
		note.Text = "back in service " + moment.Until(t.Until, now)
	case strings.EqualFold(t.Message, string(t.Phase)):
		note.Text = timesOut(t, now)
		if t.Drain != "" {
			note.Text += ": " + strings.TrimPrefix(t.Drain, "The drain ") // the phase says the rest
		}
	case !t.Until.IsZero():
		note.Text += "; " + timesOut(t, now)
	}
	return []terminal.Cell{
		{Text: t.Node},
		{Text: policy},
		{Text: string(t.Phase), Style: style},
		{Text: moment.Span(now.Sub(t.Since))},
		note,
	}
}

// timesOut formats the end of the phase. A drain ends by drain.timeout, and is overdue if its agent
// does not report that.
func timesOut(t fleet.Granted, now time.Time) string {
	switch {
	case t.Until.IsZero():
		return ""
	case !t.DrainUntil.IsZero():
		return "times out " + moment.Until(t.DrainUntil, now) + ", overdue " + moment.Until(t.Until, now)
	}
	return "times out " + moment.Until(t.Until, now)
}

func (s Status) waiting(l terminal.Look) []string {
	var rows [][]terminal.Cell
	add := func(reason, policy string, nodes []string, style terminal.Style) {
		if len(nodes) == 0 {
			return
		}
		names := message.Some(nodes)
		if l.Wide {
			names = strings.Join(nodes, ", ")
		}
		rows = append(rows, []terminal.Cell{{Text: reason, Style: style}, {Text: policy}, number(len(nodes), terminal.Plain), {Text: names}})
	}
	for _, p := range s.Policies {
		add("the manager", p.Name, p.Due, terminal.Good)
		for _, w := range p.Waiting {
			add(string(w.Reason), p.Name, w.Nodes, terminal.Wait)
			if held := p.Plan.Unavailable; w.Reason == v1alpha1.ReasonBudgetExhausted && len(held) > 0 {
				last := rows[len(rows)-1]
				last[len(last)-1].Text += "; " + held[0].Node + " " + held[0].Why
			}
		}
	}
	add(string(v1alpha1.ReasonNoPolicy), "-", s.Ungoverned, terminal.Wait)
	return l.Table([]string{"WAITING FOR", "POLICY", ">NODES", "WHICH"}, rows)
}

// versions formats the versions that the nodes run. A policy without reported versions has no row.
func (s Status) versions(l terminal.Look) []string {
	var rows [][]terminal.Cell
	for _, p := range s.Policies {
		for _, v := range p.Versions {
			rows = append(rows, []terminal.Cell{
				{Text: strings.TrimSpace(v.OS + " " + v.Group)},
				{Text: p.Name},
				{Text: cmp.Or(v.Newest, "?")},
				{Text: fmt.Sprintf("%d of %d", v.OnNewest, v.Nodes)},
				{Text: others(v)},
			})
		}
	}
	return l.Table([]string{"SYSTEM", "POLICY", "NEWEST", ">ON IT", "OTHERS"}, rows)
}

// others formats the versions other than the newest, and how many of their nodes do not wait for a
// reboot, because the update has not been staged there.
func others(v v1alpha1.SystemVersions) string {
	rest, parts := v.Nodes-v.OnNewest, make([]string, 0, len(v.Others)+1)
	for _, o := range v.Others {
		rest -= o.Nodes
		part := fmt.Sprintf("%d on %s", o.Nodes, o.Version)
		switch {
		case o.WithoutNeed == o.Nodes:
			part += " without a staged update"
		case o.WithoutNeed > 0:
			part += fmt.Sprintf(" (%d without a staged update)", o.WithoutNeed)
		}
		parts = append(parts, part)
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d on others", rest))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
