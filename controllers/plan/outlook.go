package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
)

// Outlook is the starting point of a forecast.
type Outlook struct {
	// Queues are the queues of the policy's rings and domains, in the order in which plans choose
	// among them. The Nodes are those of the snapshot.
	Queues []queue.Queue
	// Soaking holds, by ring, the node at rest that blocks later rings longest after its reboot.
	Soaking map[int]*record.Node
	// Limits are the limits in nodes.
	Limits slots.Limits
	Rings  queue.Rings
	// Conflicts are the nodes that need a reboot but that several policies of the same priority
	// select. The values are those policies.
	Conflicts map[string][]string
	// Invalid is true if something is wrong with the spec, so that nothing is granted.
	Invalid bool
}

// Ahead returns the outlook of a snapshot.
func Ahead(s Snapshot) Outlook {
	c := newChoice(s, nil)
	o := Outlook{
		Soaking: soaking(c), Limits: c.limits, Rings: c.order.Rings, Conflicts: c.Conflicts, Invalid: c.invalid != nil,
	}
	maps.DeleteFunc(o.Conflicts, func(name string, _ []string) bool { return !c.ByName[name].NeedsReboot() })
	waiting := slices.DeleteFunc(slices.Clone(c.active), func(n *record.Node) bool { return !n.NeedsReboot() || c.Held(n) })
	c.order.Sort(waiting)
	for _, n := range waiting {
		ring, domain := c.order.Rings.Of(n), c.domain(n)
		if last := len(o.Queues) - 1; last < 0 || o.Queues[last].Ring != ring || o.Queues[last].Domain != domain {
			o.Queues = append(o.Queues, queue.Queue{Ring: ring, Domain: domain})
		}
		q := &o.Queues[len(o.Queues)-1]
		q.Nodes = append(q.Nodes, n)
	}
	return o
}

// soaking returns, by ring, the node at rest that blocks later rings longest after its reboot.
func soaking(c *choice) map[int]*record.Node {
	last, until := map[int]*record.Node{}, map[int]time.Time{}
	for _, n := range c.active {
		ring := c.order.Rings.Of(n)
		if ends, _ := c.order.Rings.Soaks(n); !n.Paused(c.Now) && !n.NeedsReboot() && ends.After(c.Now) && ends.After(until[ring]) {
			last[ring], until[ring] = n, ends
		}
	}
	return last
}

// FallsWithOthers reports whether the node waits only for other nodes: for an earlier ring, or for
// its turn.
func (o *Blocked) FallsWithOthers() bool {
	return o.check == v1alpha1.ReasonRingWaits || o.reaches(turnChecks)
}

// FallsWithTime reports whether the block ends by itself. WindowTooShort counts: the time left only
// shrinks, but another window comes.
func (o *Blocked) FallsWithTime() bool {
	return !o.Until.IsZero() || o.Reason == v1alpha1.ReasonWindowTooShort
}
