package plan

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// What a forecast asks the planner, which runs it forward over a fleet that is imagined.

// Objections is Reboots, and beside the plan why each node waits, by its name.
func Objections(s Snapshot) (Plan, map[string]*Objection) { return newFleet(s).reboots() }

// FallsWithOthers tells whether the node waits for its turn alone: the objection is one of the last checks, which depend on
// what other nodes do.
func (o *Objection) FallsWithOthers() bool {
	return slices.ContainsFunc(turn, func(c check) bool { return c.word == o.check })
}

// FallsWithTime tells whether the objection falls by itself. What is left of a window only shrinks, but the next window
// comes.
func (o *Objection) FallsWithTime() bool {
	return !o.Until.IsZero() || o.Reason == v1alpha1.ReasonWindowTooShort
}

// Queue is the nodes of one topology domain that need a reboot and hold no grant, in the order in which plans choose.
type Queue struct {
	// Domain is the value of the label topologyKey. Empty: the nodes without it, or there is no topologyKey.
	Domain string
	Nodes  []*Node
}

// Queues are the queues of the policy's domains, in the order in which plans choose among domains. The Nodes are those of
// the snapshot.
func Queues(s Snapshot) []Queue {
	f := newFleet(s)
	waiting := slices.DeleteFunc(slices.Clone(f.governed), func(n *Node) bool { return !n.NeedsReboot() || f.held(n) })
	f.order(waiting)
	var queues []Queue
	for _, n := range waiting {
		domain := f.domain(n)
		if last := len(queues) - 1; last < 0 || queues[last].Domain != domain {
			queues = append(queues, Queue{Domain: domain})
		}
		q := &queues[len(queues)-1]
		q.Nodes = append(q.Nodes, n)
	}
	return queues
}

// Reserve is how much of a window has to be left for the policy to begin a reboot.
func Reserve(policy *v1alpha1.RebootPolicy) time.Duration {
	return (&fleet{Snapshot: Snapshot{Policy: policy}}).reserve()
}

// Failing tells whether the record shows an attempt that was given up or taken back: such a node backs off, and may count as
// a failure of the policy.
func (n *Node) Failing() bool {
	return n.Progress != nil && n.Progress.Phase == v1alpha1.PhaseAborted || n.Grant != nil && n.Grant.State == v1alpha1.GrantCancelled
}

// Unavailable tells whether the node is down for reasons of its own, and uses maxUnavailable.
func (n *Node) Unavailable() bool { return n.unavailable() }
