// Package timeline derives the story of a rollout from nothing but the revisions of the Nodes, as anybody could watch them:
// what each node is doing and why, when each phase of its reboot began, and how many nodes were unavailable at once. It
// believes neither the manager nor the agents, and it is pure: time is a value.
package timeline

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// View is what one node is doing.
type View struct {
	Node  string
	State State
	// Why is what the operator reports about it, for people.
	Why string
	// Reboots counts the changes of its boot ID.
	Reboots int
	// Cordoned is spec.unschedulable.
	Cordoned bool
	// Needs is condition RebootRequired=True; Reports is that the condition is there at all.
	Needs, Reports bool
	// Report is what the agent reported when it needed a reboot last. Empty: it has needed none.
	Report string
}

// Change is one node's step from one state to the next.
type Change struct {
	At       time.Time
	Node     string
	From, To State
	Why      string
}

// Story is what has happened so far.
type Story struct {
	// Views are all nodes, by name.
	Views []View
	// Changes are all changes, in order.
	Changes []Change
	// Runs are the finished reboots in the order in which they were granted.
	Runs []Run
	// Peak is the most nodes that were ever unavailable at once: not Ready, or cordoned.
	Peak []string
}

// Timeline collects revisions of Nodes. The zero value is an empty one. It is not safe for concurrent use.
type Timeline struct {
	nodes   map[string]*track
	changes []Change
	runs    []Run
	peak    []string
}

// track is one node so far.
type track struct {
	view      View
	bootID    string
	available bool
	run       Run
}

// Observe takes one revision of a node in.
func (t *Timeline) Observe(at time.Time, node *corev1.Node) {
	n, known := t.nodes[node.Name]
	if !known {
		n = &track{bootID: node.Status.NodeInfo.BootID, view: View{Node: node.Name}, run: Run{Node: node.Name}}
		if t.nodes == nil {
			t.nodes = map[string]*track{}
		}
		t.nodes[node.Name] = n
	}
	// A node that has never had a boot ID has never been up.
	if id := node.Status.NodeInfo.BootID; id != n.bootID {
		if n.bootID != "" {
			n.view.Reboots++
		}
		n.bootID = id
	}
	required := Condition(node, v1alpha1.NodeRebootRequired)
	n.view.Cordoned = node.Spec.Unschedulable
	n.view.Reports, n.view.Needs = required.Type != "", required.Status == corev1.ConditionTrue
	if n.view.Needs {
		n.view.Report = step.WithoutOrigin(required.Message)
	}
	n.available = isAvailable(node)
	t.step(at, n, node)
	t.count()
}

func (t *Timeline) step(at time.Time, n *track, node *corev1.Node) {
	before, reported, state := n.view.State, why(node), look(node)
	if state == UpToDate && n.view.Reboots > 0 {
		state = Back
	}
	if before != state || n.view.Why != reported {
		t.changes = append(t.changes, Change{At: at, Node: node.Name, From: before, To: state, Why: reported})
	}
	n.view.State, n.view.Why = state, reported
	t.record(at, n)
}

func (t *Timeline) count() {
	names := slices.Sorted(maps.Keys(t.nodes))
	down := slices.DeleteFunc(names, func(name string) bool { return t.nodes[name].available })
	if len(down) > len(t.peak) {
		t.peak = down
	}
}

// Story is a copy of what has happened so far.
func (t *Timeline) Story() Story {
	s := Story{Changes: slices.Clone(t.changes), Runs: slices.Clone(t.runs), Peak: t.peak}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		s.Views = append(s.Views, t.nodes[name].view)
	}
	slices.SortStableFunc(s.Runs, func(a, b Run) int { return a.Granted.Compare(b.Granted) })
	return s
}
