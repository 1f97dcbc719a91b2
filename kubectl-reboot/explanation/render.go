package explanation

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// indent is the indentation of everything below a heading, and the width of a fact's name.
const indent = 10

// Lines formats the explanation for people: first the answer, then the facts behind it.
func (e Explanation) Lines(l terminal.Look) []string {
	var head []string
	if e.Request != nil {
		head = l.Hang("", 2, "a reboot of "+e.Node+" was requested"+e.Request.text(e.At, l.Zone))
	}
	head = append(head, e.headline(l))
	if e.Message != "" && (e.Reboot == nil || !strings.EqualFold(e.Message, string(e.Reboot.Phase))) {
		head = append(head, l.Hang("  ", 2, e.Message)...)
	}
	return terminal.Blocks(head, e.facts(l), e.checks(l), e.timeline(l), e.manager(l))
}

func (r *Request) text(now time.Time, zone *time.Location) string {
	text := ""
	if !r.At.IsZero() {
		text = " " + moment.At(r.At, now, zone) + ", " + moment.Span(now.Sub(r.At)) + " ago"
	}
	if r.Reason != "" {
		text += fmt.Sprintf(": %q", r.Reason)
	}
	return text
}

// headlines maps each verdict to its headline. That of a granted reboot also has its phase.
var headlines = map[Verdict]struct {
	text  string
	style terminal.Style
}{
	NoNeed:     {"needs no reboot", terminal.Good},
	Unknown:    {"may need a reboot, but that is unknown", terminal.Wait},
	Unanswered: {"has not responded to the request for a reboot", terminal.Wait},
	Waiting:    {"waits", terminal.Wait},
	Due:        {"is next: nothing blocks it", terminal.Good},
	InProgress: {"is being rebooted", terminal.Busy},
}

func (e Explanation) headline(l terminal.Look) string {
	h := headlines[e.Verdict]
	suffix := string(e.Reason)
	if f := e.Reboot; f != nil {
		suffix = string(f.Phase) + " for " + moment.Span(e.At.Sub(f.Since))
		if f.Overdue {
			suffix, h.style = string(f.Reason)+", "+suffix, terminal.Bad
		}
	}
	if suffix != "" {
		suffix = ": " + l.Theme.Paint(terminal.Strong, suffix)
	}
	return l.Theme.Paint(terminal.Strong, e.Node) + " " + l.Theme.Paint(h.style, h.text) + suffix
}

// facts formats the facts behind the answer, each with its name.
func (e Explanation) facts(l terminal.Look) []string {
	var lines []string
	fact := func(name, text string) {
		if text != "" {
			lines = append(lines, l.Hang(l.Theme.Paint(terminal.Quiet, terminal.Fit(name, indent)), indent, text)...)
		}
	}
	fact("Policy", e.Policy.text())
	fact("Needs", need(e.Need, e.At, l.Zone))
	fact("Deadline", deadline(e.Deadline, e.At, l.Zone))
	fact("Pods", e.Pods)
	fact("Slots", e.Slots)
	line := func(name string, t time.Time) {
		if !t.IsZero() {
			fact(name, moment.At(t, e.At, l.Zone)+", "+moment.Until(t, e.At))
		}
	}
	if e.Reboot != nil {
		if len(e.Reboot.Hooks) > 0 {
			fact("Hooks", message.Names(e.Reboot.Hooks, len(e.Reboot.Hooks))+", started "+moment.At(e.Reboot.Since, e.At, l.Zone)+", "+moment.Span(e.At.Sub(e.Reboot.Since))+" ago")
		}
		fact("Drain", e.Reboot.Drain)
		line("Times out", e.Reboot.DrainUntil)
	}
	line(e.untilLabel(), e.Until)
	fact("Do", e.Advice.Text)
	if e.Advice.Command != "" {
		lines = append(lines, strings.Repeat(" ", indent)+l.Command(e.Advice.Command))
	}
	return lines
}

// deadline formats the deadline with the distance from now, or returns "" if there is none.
func deadline(due, now time.Time, zone *time.Location) string {
	switch {
	case due.IsZero():
		return ""
	case due.After(now):
		return moment.At(due, now, zone) + ", " + moment.Until(due, now)
	}
	return moment.At(due, now, zone) + ", " + moment.Span(now.Sub(due)) + " ago: the node is past it"
}

// untilLabel returns the label for the end of a reason or of a reboot's phase.
func (e Explanation) untilLabel() string {
	switch {
	case e.Reboot == nil:
		return "Until"
	case e.Reboot.Phase == underway.StateSettling:
		return "Settled"
	case !e.Reboot.DrainUntil.IsZero():
		return "Overdue"
	}
	return "Deadline"
}

func (p *Policy) text() string {
	if p == nil {
		return "none selects the node"
	}
	text := fmt.Sprintf("%s (priority %d)", p.Name, p.Priority)
	others := make([]string, len(p.Others))
	for i, o := range p.Others {
		others[i] = fmt.Sprintf("%s (%d)", o.Name, o.Priority)
	}
	if len(others) > 0 {
		text += "; also selected by " + strings.Join(others, ", ")
	}
	return text
}

func need(n Condition, now time.Time, zone *time.Location) string {
	answer, reported := map[corev1.ConditionStatus]string{corev1.ConditionTrue: "a reboot", corev1.ConditionFalse: "none", corev1.ConditionUnknown: "unknown"}[n.Status]
	if !reported {
		return "unknown: no agent has ever reported from this node"
	}
	text := answer
	if !n.Since.IsZero() {
		text += " since " + moment.At(n.Since, now, zone) + ", " + moment.Span(now.Sub(n.Since)) + " ago"
	}
	text += ": " + n.Reason
	if n.Message != "" {
		text += ", " + n.Message
	}
	return text
}

// marks maps each result of a check to its mark.
var marks = map[plan.Result]struct {
	mark  string
	style terminal.Style
}{
	plan.Passed: {"✓", terminal.Good}, plan.Blocks: {"✗", terminal.Bad}, plan.NotReached: {"·", terminal.Quiet},
}

func (e Explanation) checks(l terminal.Look) []string {
	if len(e.Checks) == 0 {
		return nil
	}
	name := 0
	for _, c := range e.Checks {
		name = max(name, len(c.Name))
	}
	lines := []string{l.Theme.Paint(terminal.Quiet, "CHECKS")}
	for _, c := range e.Checks {
		m := marks[c.Result]
		lead := "  " + l.Theme.Paint(m.style, m.mark) + " "
		if c.Result == plan.NotReached {
			lines = append(lines, lead+l.Theme.Paint(terminal.Quiet, terminal.Fit(string(c.Name), name)+"  not reached"))
			continue
		}
		lead += terminal.Fit(string(c.Name), name) + "  "
		text := c.Message
		if text == e.Message {
			text = "see above"
		}
		lines = append(lines, l.Hang(lead, name+6, text)...)
	}
	return lines
}

// timeline formats the timeline and marks the present in it.
func (e Explanation) timeline(l terminal.Look) []string {
	if len(e.Timeline) == 0 {
		return nil
	}
	lines := []string{l.Theme.Paint(terminal.Quiet, "TIMELINE")}
	for _, m := range e.Timeline {
		away := moment.Span(e.At.Sub(m.At)) + " ago"
		if m.At.After(e.At) {
			away = moment.Until(m.At, e.At)
		}
		lead := "  " + moment.Exact(m.At, l.Zone) + "  " + terminal.Fit(away, 10) + "  "
		text := l.Hang(lead, len([]rune(lead)), m.What)
		if m.At.After(e.At) {
			text[0] = l.Theme.Paint(terminal.Quiet, text[0])
		}
		lines = append(lines, text...)
	}
	return lines
}

// manager shows what the manager wrote, if it differs.
func (e Explanation) manager(l terminal.Look) []string {
	if e.Manager == nil {
		return nil
	}
	text := "the manager has not reported on this node yet: condition RebootPermitted is missing"
	if e.Manager.Status != "" {
		text = fmt.Sprintf("the manager last reported something else on this node: RebootPermitted=%s, %s: %s", e.Manager.Status, e.Manager.Reason, e.Manager.Message)
	}
	lines := l.Hang(l.Theme.Paint(terminal.Bad, "!")+" ", 2, text)
	lines = append(lines, l.Hang("  ", 2, "It catches up within seconds while it runs. If this does not change, check whether it runs:")...)
	return append(lines, "  "+l.Command(status.LookAtManager))
}
