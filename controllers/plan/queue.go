package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// candidate is what decides when the turn of a node comes.
type candidate struct {
	node *Node
	// ring is the number of its ring of spec.rings.
	ring int
	// domain is that of the topologyKey; empty: the node has no such label, or there is no topologyKey.
	domain string
	// urgent: the policy allows its urgent request. unused: its last grant ended without a reboot. overdue: the node is past its deadline.
	// served: it was rebooted since it needs it. down: it is unavailable already. guarded: its drain could only end by its time-out.
	urgent, unused, overdue, served, down, guarded bool
	// tries is more than 0 for a node that is tried although a budget is closed, and grows with each try that failed.
	tries int
	// since is when its wait began.
	since time.Time
}

func (f *fleet) candidate(n *Node) candidate {
	return candidate{
		node: n, ring: f.rings.Of(n), domain: f.domain(n), urgent: Urgent(f.Policy, n), overdue: reached(DueAt(f.Policy, n), f.Now),
		unused: f.attempts.unused(n), served: n.served(), down: n.Unavailable(), guarded: f.pods.guarded(n),
		tries: f.tries(n), since: n.WaitsSince(),
	}
}

// order sorts nodes by their turns. There may be thousands: what two are compared by is computed once for each.
func (f *fleet) order(nodes []*Node) {
	candidates := make([]candidate, len(nodes))
	for i, n := range nodes {
		candidates[i] = f.candidate(n)
	}
	slices.SortFunc(candidates, compareCandidates)
	for i, c := range candidates {
		nodes[i] = c.node
	}
}

// precedence is why the node ahead goes before another one of its ring, whatever their domains: by keys 2 to 6 of compareCandidates.
// Empty: it does not.
func (v view) precedence(n *Node) string {
	if v.ahead == nil {
		return ""
	}
	switch ahead, other := v.candidate(v.ahead), v.candidate(n); {
	case ahead.tries < other.tries:
		return "a PodDisruptionBudget is closed on " + n.Name
	case ahead.urgent && !other.urgent:
		return "its request is urgent"
	case !ahead.unused && other.unused:
		return "the last grant of " + n.Name + " ended without a reboot"
	case ahead.overdue && !other.overdue:
		return "it is past its deadline"
	case !ahead.served && other.served:
		return n.Name + " was rebooted since it needs it"
	}
	return ""
}

// compareCandidates orders nodes by these keys:
//
//  1. the ring, earlier ones first
//  2. nodes that are tried although a budget is closed last, those with fewer failed tries first: each of them may hold a slot until
//     drain.timeout
//  3. urgent requests
//  4. nodes whose last grant ended without a reboot last: each of them holds a slot for longer than others wait, and a few could take
//     turns for ever
//  5. nodes past their deadline
//  6. nodes that were not rebooted since they need it
//  7. the domain, always in the same order so that one is finished before the next; nodes without the label last
//  8. nodes that are down already: their reboot costs no slot
//  9. nodes whose drain can only end by its time-out last: they hold a slot longest
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

// Queue is the nodes of one topology domain, in one ring, that need a reboot and hold no grant. They are in the order of choice.
type Queue struct {
	// Ring is the number of the ring of spec.rings. 0: the first, or there are none.
	Ring int
	// Domain is the value of the label topologyKey. Empty: the nodes without it, or there is no topologyKey.
	Domain string
	Nodes  []*Node
}

// Outlook is what a look ahead begins with.
type Outlook struct {
	// Queues are those of the policy's rings and their domains, in the order in which plans choose among them. The Nodes are those of the
	// snapshot.
	Queues []Queue
	// Soaking is of each ring the node at rest that keeps later rings waiting longest after its reboot.
	Soaking map[int]*Node
	// Limit and Own are maxUnavailable in nodes, of the policy whose limit counts and of this one. OfRings are those of the Rings that have one.
	Limit, Own int32
	OfRings    map[int]int32
	Rings      Rings
	// Conflicts are the nodes that need a reboot and that the policy and its rivals select.
	Conflicts map[string][]string
	// Invalid reports whether something is wrong with the spec: nothing is granted.
	Invalid bool
}

// Ahead is the outlook of a snapshot.
func Ahead(s Snapshot) Outlook {
	f := newFleet(s, nil)
	o := Outlook{
		Soaking: f.soaking(), Limit: f.limit, Own: f.limit, OfRings: f.rings.limits, Rings: f.rings.Rings, Conflicts: f.conflicts, Invalid: f.invalid != "",
	}
	if f.own != nil {
		o.Own = *f.own
	}
	maps.DeleteFunc(o.Conflicts, func(name string, _ []string) bool { return !f.byName[name].NeedsReboot() })
	waiting := slices.DeleteFunc(slices.Clone(f.governed), func(n *Node) bool { return !n.NeedsReboot() || f.held(n) })
	f.order(waiting)
	for _, n := range waiting {
		ring, domain := f.rings.Of(n), f.domain(n)
		if last := len(o.Queues) - 1; last < 0 || o.Queues[last].Ring != ring || o.Queues[last].Domain != domain {
			o.Queues = append(o.Queues, Queue{Ring: ring, Domain: domain})
		}
		q := &o.Queues[len(o.Queues)-1]
		q.Nodes = append(q.Nodes, n)
	}
	return o
}

// soaking is, for each ring, the node at rest that keeps later rings waiting longest after its reboot.
func (f *fleet) soaking() map[int]*Node {
	last, until := map[int]*Node{}, map[int]time.Time{}
	for _, n := range f.governed {
		ring := f.rings.Of(n)
		if ends, _ := f.rings.soaks(n, f.rings.Soak(ring)); !n.Paused && !n.NeedsReboot() && ends.After(f.Now) && ends.After(until[ring]) {
			last[ring], until[ring] = n, ends
		}
	}
	return last
}
