// Package timetable shows the forecast of a policy as a table and as a picture: which node reboots
// when.
package timetable

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// mostOpenings is the maximum number of windows in a picture. A forecast ends within a year.
const mostOpenings = 2000

// Timetable is the forecast of one policy, with its windows.
type Timetable struct {
	forecast.Forecast

	// WaitsFor maps nodes of Reboots to the reason why they wait now. Nodes whose reboot is in
	// progress or due are not in it.
	WaitsFor map[string]v1alpha1.Reason `json:"waitsFor,omitempty"`
	// MayFail maps nodes of Reboots to the pods whose closed budgets may make the drain fail.
	MayFail map[string]string `json:"mayFail,omitempty"`
	// Silent is the number of nodes whose need is unknown, because they have no working agent.
	Silent int `json:"silent,omitempty"`
	// Governs is the number of nodes that the policy governs.
	Governs int `json:"governs"`
	// Calendar lists the windows and blackouts from now until everything is done.
	Calendar []calendar.Period `json:"calendar"`
	// Always means that the policy has no windows.
	Always bool `json:"always,omitempty"`
}

// Of returns the timetable of a policy.
func Of(f fleet.Fleet, policy *v1alpha1.RebootPolicy) Timetable {
	t := Timetable{Forecast: forecast.Of(f.Snapshot(policy), forecast.Thorough), WaitsFor: map[string]v1alpha1.Reason{}, Silent: f.Unknown(policy), Governs: len(f.Governed(policy.Name))}
	if f.Manager.Down(f.Now) && len(t.Reboots) > 0 {
		t.Unknown, t.CompletionAt, t.Window, t.Reboots = "No manager runs, and without one no reboot begins.", time.Time{}, nil, nil
	}
	if t.Reboots == nil {
		t.Reboots = []forecast.Expected{} // programs iterate over it
	}
	for _, d := range f.Plan(policy).Decisions {
		if d.Status == corev1.ConditionFalse {
			t.WaitsFor[d.Node] = d.Reason
		}
	}
	for _, s := range t.Stays {
		delete(t.WaitsFor, s.Node)
	}
	t.MayFail = t.Doubts(f.Snapshot(policy))
	c := calendarTo(policy, f.Now, t.end())
	if i := slices.IndexFunc(c.Periods, func(e calendar.Period) bool { return !e.From.Before(t.end()) }); i >= 0 {
		c.Periods = c.Periods[:max(i, 1)] // later periods do not matter
	}
	t.Calendar, t.Always = c.Periods, c.Always
	return t
}

// Stays returns which of the nodes would not be rebooted if they needed it, until a person or another
// system does something, by name.
func Stays(f fleet.Fleet, names []string) []forecast.Stay {
	needing := f.Needing(names)
	var stays []forecast.Stay
	add := func(s forecast.Stay) {
		if slices.Contains(names, s.Node) && !slices.ContainsFunc(stays, func(other forecast.Stay) bool { return other.Node == s.Node }) {
			stays = append(stays, s)
		}
	}
	for _, n := range f.Views() {
		policy := f.Policy(f.Governor.Govern(n).Policy)
		switch {
		case n.NeedsReboot():
		case n.Windows:
			add(forecast.Stay{Node: n.Name, Reason: v1alpha1.ReasonAgentsMissing, Message: "agents cannot run on Windows"})
		case !n.Reports(), policy != nil && fleet.AgentMissing(policy.Status.Nodes.Agents, n.Name):
			add(forecast.Stay{Node: n.Name, Reason: v1alpha1.ReasonAgentsMissing, Message: "no working agent has reported from the node"})
		}
	}
	for _, d := range needing.Ungoverned() {
		add(forecast.Stay{Node: d.Node, Reason: d.Reason, Message: d.Message})
	}
	for i := range needing.Policies {
		p := &needing.Policies[i]
		if !slices.ContainsFunc(f.Governed(p.Name), func(n *record.Node) bool { return slices.Contains(names, n.Name) }) {
			continue
		}
		for _, s := range forecast.Of(needing.Snapshot(p), forecast.Quick).Stays {
			add(s)
		}
		if p.Spec.ModeOrDefault() == v1alpha1.ModeDryRun {
			for _, n := range f.Governed(p.Name) {
				add(forecast.Stay{Node: n.Name, Reason: v1alpha1.ReasonDryRun, Message: "policy " + p.Name + " is in mode DryRun"})
			}
		}
	}
	slices.SortFunc(stays, func(a, b forecast.Stay) int { return strings.Compare(a.Node, b.Node) })
	return stays
}

// calendarTo returns the windows of a policy up to a time, and a few more. Some of them may have no
// reboots.
func calendarTo(policy *v1alpha1.RebootPolicy, now, end time.Time) calendar.Calendar {
	for next := 2; ; next *= 2 {
		c := calendar.Of(policy, now, min(next, mostOpenings))
		if last := len(c.Periods) - 1; next >= mostOpenings || last < 0 || !c.Periods[last].From.Before(end) {
			return c
		}
	}
}

// end returns the end of the timetable: when everything is done, or when the window for it closes.
func (t Timetable) end() time.Time {
	end := t.CompletionAt
	if len(t.Reboots) > 0 {
		end = timing.Latest(end, t.Reboots[len(t.Reboots)-1].EndsAt)
	}
	if w := t.Window; w != nil {
		end = timing.Latest(end, w.ClosesAt)
	}
	return end
}

// Lines formats the timetable for people.
func (t Timetable) Lines(l terminal.Look) []string {
	summary := terminal.Wrap(t.Verdict(l.Zone), l.Width)
	paint := func(style terminal.Style, sentence string) {
		for _, line := range terminal.Wrap(sentence, l.Width) {
			summary = append(summary, l.Theme.Paint(style, line))
		}
	}
	if late := t.late(); late != "" {
		paint(terminal.Bad, late)
	}
	for _, note := range t.notes() {
		paint(terminal.Quiet, note)
	}
	blocks := terminal.Blocks(t.reboots(l), t.stays(l), t.due(l), summary)
	return slices.Insert(blocks, 0, l.Theme.Paint(terminal.Strong, "policy "+t.Policy))
}

func (t Timetable) reboots(l terminal.Look) []string {
	rows := make([][]terminal.Cell, len(t.Reboots))
	for i, r := range t.Reboots {
		rows[i] = t.row(r, l.Zone)
	}
	return l.Table([]string{"NODE", "STARTS", "+DRAINS", "+REBOOTS", "+SETTLES", "ENDS", "+>IN", "+WAITS FOR", "WINDOW"}, rows)
}

func (t Timetable) row(r forecast.Expected, zone *time.Location) []terminal.Cell {
	starts, ends := moment.Ends(r.StartsAt, r.EndsAt, t.At, zone)
	window := terminal.Cell{Text: r.Window, Style: terminal.Quiet}
	switch {
	case r.InProgress:
		window = terminal.Cell{Text: "in progress", Style: terminal.Busy}
	case r.Overruns():
		window = terminal.Cell{Text: r.Window + ", ends " + moment.Span(r.EndsAt.Sub(r.ClosesAt)) + " after it closes", Style: terminal.Wait}
	}
	clock := func(instant time.Time) terminal.Cell { return terminal.Cell{Text: instant.In(zone).Format("15:04:05")} }
	return []terminal.Cell{
		{Text: r.Node},
		{Text: starts},
		clock(r.DrainsAt),
		clock(r.RebootsAt),
		clock(r.SettlesAt),
		{Text: ends},
		{Text: moment.Span(r.StartsAt.Sub(t.At))},
		{Text: string(t.WaitsFor[r.Node]), Style: terminal.Wait},
		window,
	}
}

func (t Timetable) stays(l terminal.Look) []string {
	rows := make([][]terminal.Cell, len(t.Stays))
	for i, s := range t.Stays {
		rows[i] = []terminal.Cell{{Text: s.Node}, {Text: string(s.Reason), Style: terminal.Wait}, {Text: s.Message}}
	}
	return l.Table([]string{"STAYS", "REASON", "WHY"}, rows)
}

// due formats the nodes that do not need a reboot yet.
func (t Timetable) due(l terminal.Look) []string {
	rows := make([][]terminal.Cell, len(t.Due))
	for i, d := range t.Due {
		rows[i] = []terminal.Cell{
			{Text: d.Node},
			{Text: moment.At(d.At, t.At, l.Zone)},
			{Text: moment.Span(d.At.Sub(t.At))},
			{Text: string(v1alpha1.ReasonMaxUptime), Style: terminal.Quiet},
		}
	}
	return l.Table([]string{"COMES DUE", "AT", ">IN", "BECAUSE OF"}, rows)
}

// Verdict says in one sentence when everything is done, and whether that is inside the window.
func (t Timetable) Verdict(zone *time.Location) string {
	switch {
	case t.Unknown != "":
		return "The completion time is unknown. " + t.Unknown
	case t.CompletionAt.IsZero() && t.Governs == 0:
		return "Nothing to do: the policy governs no node."
	case t.CompletionAt.IsZero() && t.Silent > 0:
		return "Nothing to do: no node is known to need a reboot."
	case t.CompletionAt.IsZero():
		return "Nothing to do: no node needs a reboot."
	}
	done, until := t.CompletionAt.In(zone).Format("Mon 2006-01-02 15:04 MST"), moment.Until(t.CompletionAt, t.At)
	if t.Durations.Measured == 0 {
		done, until = "about "+done, strings.Replace(until, "in ", "in about ", 1)
	}
	done += ", " + until
	if n := len(t.MayFail); n > 0 {
		done += fmt.Sprintf(", if %s with a closed PodDisruptionBudget can be drained", message.Count(n, "node", "nodes"))
	}
	if n := len(t.Stays); n > 0 {
		done += fmt.Sprintf(", but for %s", message.Count(n, "node that stays", "nodes that stay"))
	}
	return "Done " + done + t.inside(zone) + "."
}

// late names the nodes that miss their deadline, or returns "".
func (t Timetable) late() string {
	if len(t.MissesDeadline) == 0 {
		return ""
	}
	return fmt.Sprintf("%s spec.deadline: %s.", message.Count(len(t.MissesDeadline), "node misses", "nodes miss"), message.Some(t.MissesDeadline))
}

func (t Timetable) inside(zone *time.Location) string {
	w := t.Window
	if w == nil || w.ClosesAt.IsZero() {
		return ""
	}
	window := "the window"
	if w.Name != "" {
		window = "window " + w.Name
	}
	closes := moment.At(w.ClosesAt, t.At, zone)
	if t.FinishesInWindow {
		return fmt.Sprintf("; finishes inside %s, which closes %s", window, closes)
	}
	return fmt.Sprintf("; will not finish inside %s, which closes %s", window, closes)
}

// notes returns the assumptions of the forecast.
func (t Timetable) notes() []string {
	var notes []string
	if t.DryRun {
		notes = append(notes, "The policy has mode DryRun, so this is what it would do.")
	}
	if t.Silent > 0 {
		notes = append(notes, fmt.Sprintf("It is unknown whether %s a reboot, because no agent works there.", message.Count(t.Silent, "node needs", "nodes need")))
	}
	if len(t.Reboots) == 0 {
		return notes
	}
	for _, node := range slices.Sorted(maps.Keys(t.MayFail)) {
		notes = append(notes, fmt.Sprintf("The drain of %s may fail, and is tried after the others: %s.", node, t.MayFail[node]))
	}
	d := t.Durations
	rests := fmt.Sprintf("the median of %s", message.Count(d.Measured, "reboot", "reboots"))
	if d.Measured == 0 {
		rests = "assumed, because no reboot has been measured yet"
	}
	parts := []string{"drain " + moment.Length(d.Drain.Duration), "reboot " + moment.Length(d.Reboot.Duration), "settle " + moment.Length(d.Settle.Duration)}
	if d.Before.Duration > 0 {
		parts = slices.Insert(parts, 0, "hooks and start "+moment.Length(d.Before.Duration))
	}
	notes = append(notes, fmt.Sprintf("Each node: %s; %s.", strings.Join(parts, ", "), rests))
	if t.Extrapolated > 0 {
		notes = append(notes, fmt.Sprintf("The last %d are assumed to take as long as those before them.", t.Extrapolated))
	}
	return notes
}
