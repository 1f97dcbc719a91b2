// Package queue knows in which order the nodes of a policy take turns: by ring, and then by what the
// waiting nodes show.
package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// candidate holds what decides when a node's turn comes.
type candidate struct {
	node *record.Node
	// ring is the number of the node's ring of spec.rings.
	ring int
	// domain is the value of the topologyKey label, or empty.
	domain string
	// urgent: its urgent request is allowed. unused: its last grant ended without a reboot.
	// overdue: it is past its deadline. served: it has been rebooted since its need began. down: it
	// is already unavailable. guarded: its drain can only end by its time-out.
	urgent, unused, overdue, served, down, guarded bool
	// tries is above 0 for a node that is tried although a budget is closed, and grows with each
	// failed try.
	tries int
	// since is the time when the node began to wait.
	since time.Time
}

// Order sorts the nodes of a policy by their turns.
type Order struct {
	Rings    Rings
	Pods     gates.Pods
	Attempts record.Attempts
}

func (o Order) candidate(n *record.Node) candidate {
	policy := o.Attempts.Policy
	return candidate{
		node: n, ring: o.Rings.Of(n), domain: Domain(policy, n), urgent: record.Urgent(policy, n), overdue: record.Reached(record.DueAt(policy, n), o.Attempts.Now),
		unused: o.Attempts.Unused(n), served: n.Served(), down: n.Unavailable(), guarded: o.Pods.Guarded(n),
		tries: o.Pods.Tries(n), since: n.WaitsSince(),
	}
}

// Sort sorts nodes by their turns. There may be thousands, so the sort keys are computed once per
// node.
func (o Order) Sort(nodes []*record.Node) {
	candidates := make([]candidate, len(nodes))
	for i, n := range nodes {
		candidates[i] = o.candidate(n)
	}
	slices.SortFunc(candidates, compareCandidates)
	for i, c := range candidates {
		nodes[i] = c.node
	}
}

// Precedence says why the node goes before another of the same ring in spite of their domains, by keys
// 2 to 6 of compareCandidates. It returns "" if it does not.
func (o Order) Precedence(n, over *record.Node) string {
	switch ahead, other := o.candidate(n), o.candidate(over); {
	case ahead.tries < other.tries:
		return "a PodDisruptionBudget is closed on " + over.Name
	case ahead.urgent && !other.urgent:
		return "its request is urgent"
	case !ahead.unused && other.unused:
		return "the last grant of " + over.Name + " ended without a reboot"
	case ahead.overdue && !other.overdue:
		return "it is past its deadline"
	case !ahead.served && other.served:
		return over.Name + " has been rebooted since its need began"
	}
	return ""
}

// compareCandidates orders nodes by these keys:
//
//  1. the ring, earlier ones first
//  2. nodes with a closed budget last, fewer failed tries first: each may hold a slot until
//     drain.timeout
//  3. urgent requests
//  4. nodes whose last grant ended without a reboot last: each holds a slot for longer than others wait,
//     and a few could take turns forever
//  5. nodes past their deadline
//  6. nodes that have not been rebooted since their need began
//  7. the domain, in a fixed order, so that one is finished before the next; nodes without the label last
//  8. nodes that are already down: their reboot costs no slot
//  9. nodes whose drain can only end by its time-out last: they hold a slot the longest
//  10. the longest wait
//  11. control-plane nodes last
//  12. the name
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.ring, b.ring), cmp.Compare(a.tries, b.tries), compareBools(b.urgent, a.urgent), compareBools(a.unused, b.unused),
		compareBools(b.overdue, a.overdue), compareBools(a.served, b.served), compareBools(a.domain == "", b.domain == ""),
		cmp.Compare(a.domain, b.domain), compareBools(b.down, a.down), compareBools(a.guarded, b.guarded), a.since.Compare(b.since),
		compareBools(a.node.ControlPlane, b.node.ControlPlane), cmp.Compare(a.node.Name, b.node.Name))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Domain returns the node's topology domain: the value of its topologyKey label, its zone for
// example. It returns "" if the node lacks the label or the policy has no topologyKey.
func Domain(policy *v1alpha1.RebootPolicy, n *record.Node) string {
	if key := policy.Spec.TopologyKey(); key != "" {
		return n.Labels[key]
	}
	return ""
}

// Queue holds the nodes of one ring and one topology domain that need a reboot and have no grant,
// in the order of their turns.
type Queue struct {
	// Ring is the number of the ring of spec.rings, from 0.
	Ring int
	// Domain is the value of the topologyKey label, or empty.
	Domain string
	Nodes  []*record.Node
}
