package dashboard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// State is the state of a node's tile.
type State string

// The states.
const (
	Failed    State = "failed"
	Stuck     State = "stuck"
	Granted   State = "granted"
	Draining  State = "draining"
	Rebooting State = "rebooting"
	Settling  State = "settling"
	Next      State = "next"
	Waiting   State = "waiting"
	Unknown   State = "unknown"
	UpToDate  State = "up-to-date"
)

// states lists all states, starting with those that need an action.
var states = []State{Failed, Stuck, Granted, Draining, Rebooting, Settling, Next, Waiting, Unknown, UpToDate}

var signs = map[State]string{
	Failed: "!", Stuck: "▲", Granted: "G", Draining: "D", Rebooting: "R", Settling: "S", Next: "›", Waiting: "…", Unknown: "?", UpToDate: "✓",
}

// Sign returns the state as one character, for readers who cannot distinguish colors.
func (s State) Sign() string { return signs[s] }

// rank sorts nodes that need a person first, and leaves the others in order.
func (s State) rank() int {
	switch s {
	case Failed:
		return 0
	case Stuck:
		return 1
	default:
		return 2
	}
}

// Text returns the state for people.
func (s State) Text() string {
	switch s {
	case Unknown:
		return "not reporting"
	case UpToDate:
		return "up to date"
	case Stuck:
		return "needs you"
	default:
		return string(s)
	}
}

// Tile is one node.
type Tile struct {
	Node  string
	State State
	// Reason is the phase, or the reason to wait. Message is its sentence. Both are empty if the
	// state says everything.
	Reason, Message string
}

// Label describes the tile for screen readers.
func (t Tile) Label() string {
	label := t.Node + ": " + t.State.Text()
	if t.Reason != "" && !strings.EqualFold(t.Reason, string(t.State)) {
		label += ", " + t.Reason
	}
	return label
}

// tiles returns the tiles of a policy's nodes, sorted by name.
func tiles(p status.Policy, why map[string]string) []Tile {
	known := map[string]Tile{}
	for _, name := range p.Due {
		known[name] = Tile{State: Next, Message: "nothing blocks it: the manager grants its reboot next"}
	}
	for _, w := range p.Waiting {
		for _, name := range w.Nodes {
			known[name] = Tile{State: Waiting, Reason: string(w.Reason), Message: why[name]}
		}
	}
	for _, n := range p.Notices {
		state := stateOfNotice(n)
		if state == "" {
			continue
		}
		for _, name := range n.Nodes {
			if t := known[name]; t.State != Failed {
				known[name] = Tile{State: state, Reason: cmp.Or(string(n.Reason), t.Reason), Message: n.Message}
			}
		}
	}
	for _, r := range p.InProgress {
		if t := known[r.Node]; t.State != Failed && t.State != Stuck {
			known[r.Node] = Tile{State: stateOf(r), Reason: string(r.Phase), Message: r.Note()}
		}
	}
	list := make([]Tile, 0, len(p.Governed))
	for _, n := range p.Governed {
		t, ok := known[n.Name]
		if !ok {
			t = atRest(p, n)
		}
		t.Node = n.Name
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b Tile) int { return cmp.Compare(a.State.rank(), b.State.rank()) })
	return list
}

// atRest returns the tile of a node without a decision.
func atRest(p status.Policy, n *record.Node) Tile {
	switch {
	case n.NeedsReboot():
		return Tile{State: Waiting, Message: explanation.LastGrantRemains}
	case n.Reports() && !fleet.Unheard(p.Agents, n):
		return Tile{State: UpToDate}
	case !n.Ready:
		return Tile{State: Unknown, Reason: string(v1alpha1.ReasonNodeUnavailable), Message: explanation.NotReady}
	}
	return Tile{State: Unknown, Message: "no working agent reports whether it needs a reboot"}
}

// stateOfNotice returns the state of a notice's nodes. Nodes that need a person must look different
// from waiting ones.
func stateOfNotice(n status.Notice) State {
	switch n.Kind {
	case attention.Failed, attention.Overdue:
		return Failed
	case attention.Unavailable, attention.Blocked, attention.Hook:
		return Stuck
	default:
		return ""
	}
}

// stateOf returns the state of a node with a granted reboot.
func stateOf(r fleet.Granted) State {
	if r.Overdue {
		return Failed
	}
	switch r.Phase {
	case underway.StateDraining:
		return Draining
	case underway.StateRebooting, underway.StateBooted:
		return Rebooting
	case underway.StateSettling:
		return Settling
	case underway.StateAborted:
		return Waiting
	case underway.StateGranted, underway.StateHooks:
	}
	return Granted
}
