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
)

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
