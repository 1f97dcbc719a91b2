package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

// Changes describes what is new since an earlier status, with a line for each policy whose counts
// or window changed, for each node whose reboot progressed, and for whatever begins or ends to need
// a person. After a zero Status everything is new.
func (s Status) Changes(before Status, zone *time.Location) []string {
	clock := s.At.In(zone).Format("Mon 15:04:05")
	var lines []string
	add := func(subject, text string) {
		line := clock + "  " + subject + ": " + moment.Local(text, zone)
		if !slices.Contains(lines, line) { // two policies have the same notice about their conflict
			lines = append(lines, line)
		}
	}
	for _, p := range s.Policies {
		was := before.policy(p.Name)
		p.wentOn(was, add)
		if current := p.summary(zone); current != was.summary(zone) {
			add("policy "+p.Name, current+p.expected(s.At, zone))
		}
		noticed(was.Notices, p.Notices, add)
	}
	for _, p := range before.Policies {
		if s.policy(p.Name).Name == "" {
			add("policy "+p.Name, "deleted")
		}
	}
	if current := strings.Join(s.Ungoverned, ", "); current != "" && current != strings.Join(before.Ungoverned, ", ") {
		add("no policy", "selects "+message.Some(s.Ungoverned))
	}
	noticed(before.Notices, s.Notices, add)
	return lines
}

// noticed reports what begins to need a person, and what no longer does.
func noticed(before, current []Notice, report func(subject, text string)) {
	for _, n := range current {
		if n.isNews() && !slices.ContainsFunc(before, n.repeats) {
			text := n.Message
			if n.Command != "" {
				text += ". Run: " + n.Command
			}
			report("needs you", text)
		}
	}
	for _, n := range before {
		if n.isNews() && !slices.ContainsFunc(current, n.continues) {
			report("no longer needs you", n.Message)
		}
	}
}

// isNews reports whether changes of a notice are printed. An overdue reboot has the lines of its node.
func (n Notice) isNews() bool { return !n.Chosen() && n.Kind != attention.Overdue }

// repeats reports whether other says the same. An error of reading the manager's Lease may have
// another text each time.
func (n Notice) repeats(other Notice) bool {
	head, _, _ := strings.Cut(n.Message, ": ")
	return n.equal(other) || n.Kind == ManagerDown && other.Kind == ManagerDown && strings.HasPrefix(other.Message, head+": ")
}

// continues reports whether other is about the same trouble, although its message may have changed.
func (n Notice) continues(other Notice) bool {
	if n.Kind != other.Kind || n.Reason != other.Reason {
		return false
	}
	return len(n.Nodes) == 0 || slices.ContainsFunc(n.Nodes, func(node string) bool { return slices.Contains(other.Nodes, node) })
}

// wentOn reports each node whose reboot progressed or ended.
func (p Policy) wentOn(was Policy, report func(node, text string)) {
	for _, t := range p.InProgress {
		if text := went(was.reboot(t.Node), t); text != "" {
			report(t.Node, text)
		}
	}
	for _, t := range was.InProgress {
		if p.reboot(t.Node).Node == "" {
			report(t.Node, p.ended(t.Node))
		}
	}
}

// went describes how a reboot progressed, or returns "".
func went(was, current fleet.Granted) string {
	switch {
	case current.Overdue && !was.Overdue:
		return current.Note()
	case was.Number != current.Number: // another reboot
		return string(current.Phase)
	case was.Phase == current.Phase:
		return ""
	}
	return string(was.Phase) + " → " + string(current.Phase)
}

// ended describes how a reboot that is no longer in progress ended.
func (p Policy) ended(node string) string {
	i := slices.IndexFunc(p.Waiting, func(w Waiting) bool { return slices.Contains(w.Nodes, node) })
	switch {
	case i >= 0:
		return "waits again: " + string(p.Waiting[i].Reason)
	case slices.Contains(p.Due, node):
		return "waits again"
	case !slices.ContainsFunc(p.Governed, func(n *record.Node) bool { return n.Name == node }):
		return "left the policy"
	}
	return "back in service"
}

// summary describes the policy in one line, which only depends on its nodes and its window.
func (p Policy) summary(zone *time.Location) string {
	if p.Name == "" {
		return ""
	}
	var reasons []string
	for _, w := range p.Waiting {
		reasons = append(reasons, fmt.Sprintf("%d %s", len(w.Nodes), w.Reason))
	}
	waiting := fmt.Sprintf("%d waiting", p.Nodes.Waiting)
	if len(reasons) > 0 {
		waiting += " (" + strings.Join(reasons, ", ") + ")"
	}
	return fmt.Sprintf("%s, %d in progress, %s, %d failed; %s",
		p.Nodes.Progress("up to date"), p.Nodes.InProgress, waiting, p.Nodes.Failed, p.WindowText(func(t time.Time) string { return t.In(zone).Format("Mon 2006-01-02 15:04 MST") }))
}

// expected describes the expected completion. A delay changes it every minute, so it does not count
// as a change by itself.
func (p Policy) expected(now time.Time, zone *time.Location) string {
	if p.CompletionAt.IsZero() {
		return ""
	}
	text := "; done "
	if len(p.Stays) > 0 {
		text = "; all" + butFor(len(p.Stays)) + " done "
	}
	return text + moment.At(p.CompletionAt, now, zone) + ", " + until(p.CompletionAt, now, p.Guessed)
}

// until says how long it takes until t, and whether that is a guess.
func until(t, now time.Time, guessed bool) string {
	text := moment.Until(t, now)
	if guessed {
		return strings.Replace(text, "in ", "in about ", 1)
	}
	return text
}

// policy returns the named policy, or a zero Policy.
func (s Status) policy(name string) Policy {
	if i := slices.IndexFunc(s.Policies, func(p Policy) bool { return p.Name == name }); i >= 0 {
		return s.Policies[i]
	}
	return Policy{}
}

// reboot returns the reboot of a node, or a zero Reboot.
func (p Policy) reboot(node string) fleet.Granted {
	if i := slices.IndexFunc(p.InProgress, func(t fleet.Granted) bool { return t.Node == node }); i >= 0 {
		return p.InProgress[i]
	}
	return fleet.Granted{}
}

// Progress shows how far nodes are with what a command requested.
type Progress struct {
	// Nodes is the number of nodes, and Done the number of those that are finished.
	Nodes, Done int

	status Status
	nodes  map[string]bool
	// inProgress counts the nodes that a granted reboot disrupts. others counts the rest by what
	// they wait for.
	inProgress int
	others     map[string]int
}

// Left says what is missing on a node that no granted reboot disrupts, or returns "" if the node is
// done.
type Left func(object *corev1.Node, n *record.Node) string

// ProgressOf returns the progress of the given nodes.
func ProgressOf(f fleet.Fleet, nodes map[string]bool, remaining Left) Progress {
	p := Progress{Nodes: len(nodes), status: Of(f), nodes: nodes, others: map[string]int{}}
	busy, waits := map[string]bool{}, map[string]string{}
	for _, policy := range p.status.Policies {
		for _, t := range policy.InProgress {
			busy[t.Node] = true
		}
		for _, name := range policy.Due {
			waits[name] = "next"
		}
		for _, w := range policy.Waiting {
			for _, name := range w.Nodes {
				waits[name] = string(w.Reason)
			}
		}
	}
	for _, name := range p.status.Ungoverned {
		waits[name] = string(v1alpha1.ReasonNoPolicy)
	}
	for name := range nodes {
		object, n := f.Node(name)
		switch {
		case n == nil:
			continue
		case busy[name]:
			p.inProgress++
			continue
		}
		problem := remaining(object, n)
		if problem == "" {
			p.Done++
		}
		if problem = cmp.Or(waits[name], problem); problem != "" {
			p.others[problem]++
		}
	}
	return p
}

// Lines describes what is new since an earlier progress: a line for each node that progressed or
// needs a person, and one for all if their counts changed.
func (p Progress) Lines(before Progress, zone *time.Location) []string {
	clock := p.status.At.In(zone).Format("Mon 15:04:05")
	var lines []string
	add := func(subject, text string) { lines = append(lines, clock+"  "+subject+": "+moment.Local(text, zone)) }
	affected := func(node string) bool { return p.nodes[node] || before.nodes[node] }
	about := func(all []Notice) []Notice {
		return slices.DeleteFunc(slices.Clone(all), func(n Notice) bool { return !slices.ContainsFunc(n.Nodes, affected) })
	}
	for _, policy := range p.status.Policies {
		was := before.status.policy(policy.Name)
		policy.wentOn(was, func(node, text string) {
			if affected(node) {
				add(node, text)
			}
		})
		noticed(about(was.Notices), about(policy.Notices), add)
	}
	noticed(about(before.status.Notices), about(p.status.Notices), add)
	if current := p.String(); before.Nodes == 0 || current != before.String() {
		lines = append(lines, clock+"  "+current)
	}
	return lines
}

// String formats the counts of the nodes.
func (p Progress) String() string {
	parts := []string{fmt.Sprintf("%d of %d done", p.Done, p.Nodes)}
	if p.inProgress > 0 {
		parts = append(parts, fmt.Sprintf("%d in progress", p.inProgress))
	}
	for _, problem := range slices.Sorted(maps.Keys(p.others)) {
		parts = append(parts, fmt.Sprintf("%d %s", p.others[problem], problem))
	}
	return strings.Join(parts, ", ")
}
