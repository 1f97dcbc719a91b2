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
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Changes reports what is new since an earlier status. It has a line for each policy whose counts or window changed, and for each node
// that went on. Before the zero Status everything is new.
func (s Status) Changes(before Status, zone *time.Location) []string {
	clock := s.At.In(zone).Format("Mon 15:04:05")
	var lines []string
	add := func(subject, text string) { lines = append(lines, clock+"  "+subject+": "+moment.Local(text, zone)) }
	for _, p := range s.Policies {
		was := before.policy(p.Name)
		p.wentOn(was, add)
		if is := p.summary(zone); is != was.summary(zone) {
			add("policy "+p.Name, is+p.expected(s.At, zone))
		}
	}
	for _, p := range before.Policies {
		if s.policy(p.Name).Name == "" {
			add("policy "+p.Name, "deleted")
		}
	}
	if is := strings.Join(s.Ungoverned, ", "); is != "" && is != strings.Join(before.Ungoverned, ", ") {
		add("no policy", "selects "+terminal.Some(s.Ungoverned))
	}
	return lines
}

// wentOn reports each node whose granted reboot went on, or is over.
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

// went states how a reboot went on; empty: it did not.
func went(was, is fleet.Reboot) string {
	switch {
	case is.Overdue && !was.Overdue:
		return is.Note()
	case was.Number != is.Number: // another reboot
		return string(is.Phase)
	case was.Phase == is.Phase:
		return ""
	}
	return string(was.Phase) + " → " + string(is.Phase)
}

// ended states how the reboot of a node ended that is no longer in progress.
func (p Policy) ended(node string) string {
	i := slices.IndexFunc(p.Waiting, func(w Waiting) bool { return slices.Contains(w.Nodes, node) })
	switch {
	case i >= 0:
		return "waits again: " + string(p.Waiting[i].Reason)
	case slices.Contains(p.Due, node):
		return "waits again"
	case !slices.ContainsFunc(p.Governed, func(n *plan.Node) bool { return n.Name == node }):
		return "left the policy"
	}
	return "back in service"
}

// summary is the policy in one line, which changes with nothing but its nodes and its window.
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
	return fmt.Sprintf("%d of %d up to date, %d in progress, %s, %d failed; %s",
		p.Nodes.UpToDate, p.Nodes.Selected, p.Nodes.InProgress, waiting, p.Nodes.Failed, p.WindowText(func(t time.Time) string { return t.In(zone).Format("Mon 2006-01-02 15:04 MST") }))
}

// expected states when all is to be done. It moves with every minute that something takes longer, and is no change by itself.
func (p Policy) expected(now time.Time, zone *time.Location) string {
	if p.CompletionAt.IsZero() {
		return ""
	}
	text := "; done "
	if len(p.Stays) > 0 {
		text = "; all" + butFor(len(p.Stays)) + " done "
	}
	return text + moment.At(p.CompletionAt, now, zone) + ", " + moment.Until(p.CompletionAt, now)
}

// policy is that of a name; the zero one where there is none.
func (s Status) policy(name string) Policy {
	if i := slices.IndexFunc(s.Policies, func(p Policy) bool { return p.Name == name }); i >= 0 {
		return s.Policies[i]
	}
	return Policy{}
}

// reboot is that of a node; the zero one where there is none.
func (p Policy) reboot(node string) fleet.Reboot {
	if i := slices.IndexFunc(p.InProgress, func(t fleet.Reboot) bool { return t.Node == node }); i >= 0 {
		return p.InProgress[i]
	}
	return fleet.Reboot{}
}

// Progress is how far some nodes are on the way to what a command has asked for.
type Progress struct {
	// Nodes is how many they are, and Done how many have nothing left to do.
	Nodes, Done int

	status Status
	nodes  map[string]bool
	// inProgress is how many of them a granted reboot disrupts, and others counts the rest by what they wait for or are short of.
	inProgress int
	others     map[string]int
}

// Left states what a node that no granted reboot disrupts is short of. Empty: it is done.
type Left func(object *corev1.Node, n *plan.Node) string

// ProgressOf is how far these nodes are.
func ProgressOf(f fleet.Fleet, nodes map[string]bool, left Left) Progress {
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
		what := left(object, n)
		if what == "" {
			p.Done++
		}
		if what = cmp.Or(waits[name], what); what != "" {
			p.others[what]++
		}
	}
	return p
}

// Lines report what is new since an earlier look: a line for each node that went on, and one for all where their counts changed.
func (p Progress) Lines(before Progress, zone *time.Location) []string {
	clock := p.status.At.In(zone).Format("Mon 15:04:05")
	var lines []string
	for _, policy := range p.status.Policies {
		policy.wentOn(before.status.policy(policy.Name), func(node, text string) {
			if p.nodes[node] || before.nodes[node] {
				lines = append(lines, clock+"  "+node+": "+moment.Local(text, zone))
			}
		})
	}
	if is := p.String(); before.Nodes == 0 || is != before.String() {
		lines = append(lines, clock+"  "+is)
	}
	return lines
}

// String counts the nodes by what they do, wait for or are short of.
func (p Progress) String() string {
	parts := []string{fmt.Sprintf("%d of %d done", p.Done, p.Nodes)}
	if p.inProgress > 0 {
		parts = append(parts, fmt.Sprintf("%d in progress", p.inProgress))
	}
	for _, what := range slices.Sorted(maps.Keys(p.others)) {
		parts = append(parts, fmt.Sprintf("%d %s", p.others[what], what))
	}
	return strings.Join(parts, ", ")
}
