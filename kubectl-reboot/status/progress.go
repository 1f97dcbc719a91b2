package status

import (
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
)

// Progress is how far some nodes are on the way to what a command has asked for.
type Progress struct {
	// Status is that of these nodes alone.
	Status Status
	// Nodes is how many they are, and Done how many have nothing left to do.
	Nodes, Done int
	// Left is how many of the others are short of what, where Status does not count them as waiting.
	Left map[string]int
}

// Left states what a node that no granted reboot disrupts is short of. Empty: it is done.
type Left func(object *corev1.Node, n *plan.Node) string

// ProgressOf is how far these nodes are.
func ProgressOf(f fleet.Fleet, nodes map[string]bool, left Left) Progress {
	p := Progress{Status: onlyNodes(Of(f), nodes), Nodes: len(nodes), Left: map[string]int{}}
	busy, counted := map[string]bool{}, map[string]bool{}
	count := func(names []string) {
		for _, name := range names {
			counted[name] = true
		}
	}
	for _, policy := range p.Status.Policies {
		for _, t := range policy.InProgress {
			busy[t.Node] = true
		}
		count(policy.Due)
		for _, w := range policy.Waiting {
			count(w.Nodes)
		}
	}
	count(p.Status.Ungoverned)
	for name := range nodes {
		object, n := f.Node(name)
		if n == nil || busy[name] {
			continue
		}
		what := left(object, n)
		switch {
		case what == "":
			p.Done++
		case !counted[name]:
			p.Left[what]++
		}
	}
	return p
}

// onlyNodes leaves out what is not about these nodes.
func onlyNodes(s Status, nodes map[string]bool) Status {
	other := func(name string) bool { return !nodes[name] }
	s.Policies = slices.Clone(s.Policies)
	for i := range s.Policies {
		p := &s.Policies[i]
		p.InProgress = slices.DeleteFunc(slices.Clone(p.InProgress), func(t fleet.Reboot) bool { return other(t.Node) })
		p.Due = slices.DeleteFunc(slices.Clone(p.Due), other)
		p.Waiting = slices.Clone(p.Waiting)
		for j := range p.Waiting {
			p.Waiting[j].Nodes = slices.DeleteFunc(slices.Clone(p.Waiting[j].Nodes), other)
		}
		p.Waiting = slices.DeleteFunc(p.Waiting, func(w Waiting) bool { return len(w.Nodes) == 0 })
	}
	s.Ungoverned = slices.DeleteFunc(slices.Clone(s.Ungoverned), other)
	return s
}

// Lines report what is new since an earlier look: a line for each node that went on, and one for all where their counts changed.
func (p Progress) Lines(before Progress, zone *time.Location) []string {
	clock := p.Status.At.In(zone).Format("Mon 15:04:05")
	var lines []string
	for _, policy := range p.Status.Policies {
		policy.wentOn(before.Status.policy(policy.Name), func(node, text string) {
			lines = append(lines, clock+"  "+node+": "+moment.Local(text, zone))
		})
	}
	if is := p.String(); before.Nodes == 0 || is != before.String() {
		lines = append(lines, clock+"  "+is)
	}
	return lines
}

// String counts the nodes by what they do or wait for.
func (p Progress) String() string {
	var inProgress, due int
	waiting := map[v1alpha1.Reason]int{}
	for _, policy := range p.Status.Policies {
		inProgress += len(policy.InProgress)
		due += len(policy.Due)
		for _, w := range policy.Waiting {
			waiting[w.Reason] += len(w.Nodes)
		}
	}
	if n := len(p.Status.Ungoverned); n > 0 {
		waiting[v1alpha1.ReasonNoPolicy] += n
	}
	parts := []string{fmt.Sprintf("%d of %d done", p.Done, p.Nodes)}
	if inProgress > 0 {
		parts = append(parts, fmt.Sprintf("%d in progress", inProgress))
	}
	if due > 0 {
		parts = append(parts, fmt.Sprintf("%d next", due))
	}
	for _, reason := range slices.Sorted(maps.Keys(waiting)) {
		parts = append(parts, fmt.Sprintf("%d %s", waiting[reason], reason))
	}
	for _, what := range slices.Sorted(maps.Keys(p.Left)) {
		parts = append(parts, fmt.Sprintf("%d %s", p.Left[what], what))
	}
	return strings.Join(parts, ", ")
}
