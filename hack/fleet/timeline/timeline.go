// Package timeline derives the story of a rollout from the revisions of the Nodes alone: what each
// node is doing and why, when each phase of its reboot began, and how many nodes were unavailable
// at once. It does not trust the manager or the agents. It is pure, and time is an argument.
package timeline

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// View describes what one node is doing.
type View struct {
	Node  string
	State State
	// Why is the reason that the operator reports, for people.
	Why string
	// Reboots counts the changes of the boot ID.
	Reboots int
	// Cordoned is spec.unschedulable.
	Cordoned bool
	// Needs means that condition RebootRequired is True, and Reports that it exists.
	Needs, Reports bool
	// Report is the agent's report about the last need, or empty.
	Report string
}

// Change is the change of one node from one state to the next.
type Change struct {
	At       time.Time
	Node     string
	From, To State
	Why      string
}

// Story is everything that has happened so far.
type Story struct {
	// Views holds all nodes, sorted by name.
	Views []View
	// Changes holds all changes, in order.
	Changes []Change
	// Runs holds the finished reboots in the order of their grants.
	Runs []Run
	// Peak lists the largest set of nodes that were unavailable at once: not Ready, or cordoned.
	Peak []string
}

// Timeline collects revisions of Nodes. The zero value is ready to use. It is not safe for
// concurrent use.
type Timeline struct {
	nodes   map[string]*track
	changes []Change
	runs    []Run
	peak    []string
}

// track is the state of one node.
type track struct {
	view      View
	bootID    string
	available bool
	run       Run
}

// Observe adds one revision of a node.
func (t *Timeline) Observe(instant time.Time, node *corev1.Node) {
	n, known := t.nodes[node.Name]
	if !known {
		n = &track{bootID: node.Status.NodeInfo.BootID, view: View{Node: node.Name}, run: Run{Node: node.Name}}
		if t.nodes == nil {
			t.nodes = map[string]*track{}
		}
		t.nodes[node.Name] = n
	}
	// A node without an earlier boot ID has not been up before.
	if id := node.Status.NodeInfo.BootID; id != n.bootID {
		if n.bootID != "" {
			n.view.Reboots++
		}
		n.bootID = id
	}
	required := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired)
	n.view.Cordoned = node.Spec.Unschedulable
	n.view.Reports, n.view.Needs = required.Type != "", required.Status == corev1.ConditionTrue
	if n.view.Needs {
		n.view.Report = step.WithoutOrigin(required.Message)
	}
	n.available = isAvailable(node)
	t.step(instant, n, node)
	t.count()
}

func (t *Timeline) step(instant time.Time, n *track, node *corev1.Node) {
	before, reported, state := n.view.State, why(node), look(node)
	if state == UpToDate && n.view.Reboots > 0 {
		state = Back
	}
	if before != state || n.view.Why != reported {
		t.changes = append(t.changes, Change{At: instant, Node: node.Name, From: before, To: state, Why: reported})
	}
	n.view.State, n.view.Why = state, reported
	t.record(instant, n)
}

func (t *Timeline) count() {
	names := slices.Sorted(maps.Keys(t.nodes))
	down := slices.DeleteFunc(names, func(name string) bool { return t.nodes[name].available })
	if len(down) > len(t.peak) {
		t.peak = down
	}
}

// Story returns a copy of everything that has happened so far.
func (t *Timeline) Story() Story {
	s := Story{Changes: slices.Clone(t.changes), Runs: slices.Clone(t.runs), Peak: t.peak}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		s.Views = append(s.Views, t.nodes[name].view)
	}
	slices.SortStableFunc(s.Runs, func(a, b Run) int { return a.Granted.Compare(b.Granted) })
	return s
}

// State describes what a node is doing, in a few words for people.
type State string

// The states of a node, in the order in which a reboot goes through them.
const (
	// UpToDate nodes need no reboot and have had none since the timeline began.
	UpToDate State = "up to date"
	// Waiting nodes need a reboot and have no grant.
	Waiting State = "waiting"
	// Granted nodes may reboot and have not begun.
	Granted State = "granted"
	// Draining nodes are cordoned and their pods are leaving.
	Draining State = "draining"
	// Rebooting nodes have passed the point of no return.
	Rebooting State = "rebooting"
	// Settling nodes are up on a new boot ID and not yet back in service.
	Settling State = "settling"
	// Back nodes have been rebooted and are in service.
	Back State = "back"
	// Unavailable nodes are not Ready or are cordoned, without a granted reboot.
	Unavailable State = "unavailable"
)

// look returns the state of a node in one revision.
func look(node *corev1.Node) State {
	grant, unreadable := protocol.ParseGrant(node.Annotations)
	progress, err := protocol.ParseProgress(node.Annotations)
	switch {
	case unreadable != nil || err != nil:
		return Unavailable
	case grant != nil && grant.State == protocol.GrantActive:
		return underGrant(node, grant, progress)
	case !isAvailable(node):
		return Unavailable
	case v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired).Status == corev1.ConditionTrue:
		return Waiting
	}
	return UpToDate
}

func underGrant(node *corev1.Node, grant *protocol.Grant, progress *protocol.Progress) State {
	switch {
	case progress == nil || progress.Seq != grant.Seq:
		return Granted
	case progress.Phase == protocol.PhaseAborted:
		return Waiting
	case progress.Phase == protocol.PhaseDraining:
		return Draining
	case progress.BootID == node.Status.NodeInfo.BootID || !isReady(node):
		return Rebooting
	}
	return Settling
}

// why returns the reason that the operator reports on the Node.
func why(node *corev1.Node) string {
	permitted := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootPermitted)
	return strings.Trim(permitted.Reason+": "+permitted.Message, ": ")
}

func isReady(node *corev1.Node) bool {
	return v1alpha1.NodeCondition(node.Status.Conditions, corev1.NodeReady).Status == corev1.ConditionTrue
}

// isAvailable reports whether the node runs pods and accepts new ones.
func isAvailable(node *corev1.Node) bool { return isReady(node) && !node.Spec.Unschedulable }

// Run holds the times at which the phases of one reboot began. Those of later phases are zero.
type Run struct {
	Node string
	// Granted is the time of the grant.
	Granted time.Time
	// Drain is the time of the cordon.
	Drain time.Time
	// Reboot is the time of the point of no return.
	Reboot time.Time
	// Up is the time when the node was Ready with a new boot ID.
	Up time.Time
	// Done is the time when the node was back in service.
	Done time.Time
}

// Phases holds the durations of the phases of a run.
type Phases struct{ Drain, Reboot, Settle time.Duration }

// Phases returns the durations of the phases of a finished run.
func (r Run) Phases() Phases {
	return Phases{Drain: r.Reboot.Sub(r.Drain), Reboot: r.Up.Sub(r.Reboot), Settle: r.Done.Sub(r.Up)}
}

// record sets the beginning of a phase. A skipped phase begins with the next one. A node that falls
// back, for example after an abort, begins the phase again.
func (t *Timeline) record(instant time.Time, n *track) {
	r := &n.run
	phases := []*time.Time{&r.Granted, &r.Drain, &r.Reboot, &r.Up, &r.Done}
	states := []State{Waiting, Granted, Draining, Rebooting, Settling, Back}
	reached := slices.Index(states, n.view.State)
	if reached < 0 || n.view.State == Back && r.Granted.IsZero() {
		return
	}
	for i, began := range phases {
		switch {
		case i >= reached:
			*began = time.Time{}
		case began.IsZero():
			*began = instant
		}
	}
	if n.view.State == Back {
		t.runs = append(t.runs, *r)
		*r = Run{Node: r.Node}
	}
}
