package dashboard

import (
	"strings"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// State is how a node's tile looks.
type State string

// The states.
const (
	Failed    State = "failed"
	Granted   State = "granted"
	Draining  State = "draining"
	Rebooting State = "rebooting"
	Settling  State = "settling"
	Next      State = "next"
	Waiting   State = "waiting"
	Unknown   State = "unknown"
	UpToDate  State = "up-to-date"
)

// states are all states, those that need an action first.
var states = []State{Failed, Granted, Draining, Rebooting, Settling, Next, Waiting, Unknown, UpToDate}

var signs = map[State]string{
	Failed: "!", Granted: "G", Draining: "D", Rebooting: "R", Settling: "S", Next: "›", Waiting: "…", Unknown: "?", UpToDate: "✓",
}

// Sign is the state as one character, for readers who cannot distinguish colours.
func (s State) Sign() string { return signs[s] }

// Text is the state for people.
func (s State) Text() string {
	switch s {
	case Unknown:
		return "not reporting"
	case UpToDate:
		return "up to date"
	default:
		return string(s)
	}
}

// Tile is one node.
type Tile struct {
	Node  string
	State State
	// Reason is the phase, or the reason for which the node waits, and Message its sentence. Empty: the state reports it all.
	Reason, Message string
}

// Label is the tile for those who do not see it.
func (t Tile) Label() string {
	label := t.Node + ": " + t.State.Text()
	if t.Reason != "" && !strings.EqualFold(t.Reason, string(t.State)) {
		label += ", " + t.Reason
	}
	return label
}

// tiles are the nodes of a policy, by name.
func tiles(p status.Policy, why map[string]string) []Tile {
	known := map[string]Tile{}
	for _, name := range p.Due {
		known[name] = Tile{State: Next, Message: "nothing blocks it: the manager grants it next"}
	}
	for _, w := range p.Waiting {
		for _, name := range w.Nodes {
			known[name] = Tile{State: Waiting, Reason: string(w.Reason), Message: why[name]}
		}
	}
	for _, r := range p.InProgress {
		known[r.Node] = Tile{State: stateOf(r), Reason: string(r.Phase), Message: r.Note()}
	}
	list := make([]Tile, 0, len(p.Governed))
	for _, n := range p.Governed {
		t, ok := known[n.Name]
		switch {
		case ok:
		case n.NeedsReboot():
			t = Tile{State: Waiting, Message: explanation.LastGrantRemains}
		case n.Reports() && !fleet.AgentMissing(p.Agents, n.Name):
			t = Tile{State: UpToDate}
		default:
			t = Tile{State: Unknown, Message: "no agent that works reports whether it needs a reboot"}
		}
		t.Node = n.Name
		list = append(list, t)
	}
	return list
}

// stateOf is the state of a node with a granted reboot.
func stateOf(r fleet.Reboot) State {
	if r.Overdue {
		return Failed
	}
	switch r.Phase {
	case plan.StateDraining:
		return Draining
	case plan.StateRebooting, plan.StateBooted:
		return Rebooting
	case plan.StateSettling:
		return Settling
	case plan.StateAborted:
		return Waiting
	case plan.StateGranted, plan.StateHooks:
	}
	return Granted
}
