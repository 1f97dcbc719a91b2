package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

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

func (f *fleet) candidate(n *record.Node) candidate {
	return candidate{
		node: n, ring: f.rings.Of(n), domain: f.domain(n), urgent: record.Urgent(f.Policy, n), overdue: record.Reached(record.DueAt(f.Policy, n), f.Now),
		unused: f.attempts.Unused(n), served: n.Served(), down: n.Unavailable(), guarded: f.pods.Guarded(n),
		tries: f.pods.Tries(n), since: n.WaitsSince(),
	}
}

// order sorts nodes by their turns. There may be thousands, so the sort keys are computed once per
// node.
func (f *fleet) order(nodes []*record.Node) {
	candidates := make([]candidate, len(nodes))
	for i, n := range nodes {
		candidates[i] = f.candidate(n)
	}
	slices.SortFunc(candidates, compareCandidates)
	for i, c := range candidates {
		nodes[i] = c.node
	}
}

// precedence says why the node in c.ahead goes before n of the same ring in spite of their domains,
// by keys 2 to 6 of compareCandidates. It returns "" if it does not.
func precedence(c *choice, n *record.Node) string {
	if c.ahead == nil {
		return ""
	}
	switch ahead, other := c.candidate(c.ahead), c.candidate(n); {
	case ahead.tries < other.tries:
		return "a PodDisruptionBudget is closed on " + n.Name
	case ahead.urgent && !other.urgent:
		return "its request is urgent"
	case !ahead.unused && other.unused:
		return "the last grant of " + n.Name + " ended without a reboot"
	case ahead.overdue && !other.overdue:
		return "it is past its deadline"
	case !ahead.served && other.served:
		return n.Name + " has been rebooted since its need began"
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

// Queue holds the nodes of one ring and one topology domain that need a reboot and have no grant,
// in the order of their turns.
type Queue struct {
	// Ring is the number of the ring of spec.rings, from 0.
	Ring int
	// Domain is the value of the topologyKey label, or empty.
	Domain string
	Nodes  []*record.Node
}

// Outlook is the starting point of a forecast.
type Outlook struct {
	// Queues are the queues of the policy's rings and domains, in the order in which plans choose
	// among them. The Nodes are those of the snapshot.
	Queues []Queue
	// Soaking holds, by ring, the node at rest that blocks later rings longest after its reboot.
	Soaking map[int]*record.Node
	// Limit and Own are maxUnavailable in nodes, of the policy whose limit counts and of this one.
	// OfRings holds those of the rings that set one. First is concurrency.firstBatch in nodes.
	First      int32
	Limit, Own int32
	OfRings    map[int]int32
	Rings      Rings
	// Conflicts are the nodes that need a reboot but that several policies of the same priority
	// select. The values are those policies.
	Conflicts map[string][]string
	// Invalid is true if something is wrong with the spec, so that nothing is granted.
	Invalid bool
}

// Ahead returns the outlook of a snapshot.
func Ahead(s Snapshot) Outlook {
	f := newFleet(s, nil)
	o := Outlook{
		Soaking: f.soaking(), First: f.first, Limit: f.limit, Own: f.limit, OfRings: f.rings.limits, Rings: f.rings.Rings, Conflicts: f.conflicts, Invalid: f.invalid != "",
	}
	if f.own != nil {
		o.Own = *f.own
	}
	maps.DeleteFunc(o.Conflicts, func(name string, _ []string) bool { return !f.byName[name].NeedsReboot() })
	waiting := slices.DeleteFunc(slices.Clone(f.governed), func(n *record.Node) bool { return !n.NeedsReboot() || f.held(n) })
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

// soaking returns, by ring, the node at rest that blocks later rings longest after its reboot.
func (f *fleet) soaking() map[int]*record.Node {
	last, until := map[int]*record.Node{}, map[int]time.Time{}
	for _, n := range f.governed {
		ring := f.rings.Of(n)
		if ends, _ := f.rings.soaks(n, f.rings.Soak(ring)); !n.Paused(f.Now) && !n.NeedsReboot() && ends.After(f.Now) && ends.After(until[ring]) {
			last[ring], until[ring] = n, ends
		}
	}
	return last
}
