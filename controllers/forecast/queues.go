package forecast

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// queues are the nodes that only wait for their turn, by domain, in the order in which plans choose
// them. The planner sees only the first ones, because nodes after those that can be granted at once
// are not granted now.
type queues struct {
	all []*domainQueue
	at  map[string]*waiting
	// due are the waiting nodes of all queues that have a deadline, sorted by deadline.
	due []*waiting
	// wide is the number of nodes that the planner sees beyond those that fit. It grows if some of
	// the first nodes will not get a turn.
	wide int
}

type domainQueue struct {
	domain string
	nodes  []*waiting
	// head is the index of the first remaining node.
	head int
}

// waiting is one node in a queue.
type waiting struct {
	node *record.Node
	// due is the time of its deadline, or zero without one.
	due time.Time
	// left reports whether the node has left the queue, because it was granted or is shown in each
	// round. parked reports whether it will not get a turn.
	left, parked bool
}

func queuesOf(policy *v1alpha1.RebootPolicy, planned []queue.Queue) queues {
	l := queues{at: map[string]*waiting{}}
	for _, q := range planned {
		own := &domainQueue{domain: q.Domain, nodes: make([]*waiting, len(q.Nodes))}
		nodes := make([]waiting, len(q.Nodes))
		for i, n := range q.Nodes {
			nodes[i].node, nodes[i].due = n, record.DueAt(policy, n)
			own.nodes[i], l.at[n.Name] = &nodes[i], &nodes[i]
			if !nodes[i].due.IsZero() {
				l.due = append(l.due, &nodes[i])
			}
		}
		l.all = append(l.all, own)
	}
	slices.SortStableFunc(l.due, func(a, b *waiting) int { return a.due.Compare(b.due) })
	return l
}

// front returns the nodes that the planner has to see: as many as fit and one more. It takes them
// from each domain in which nodes are being rebooted, and from the first domain with nodes. It also
// returns as many overdue nodes from any queue. The additional node makes the planner report what
// the others wait for.
func (l *queues) front(now time.Time, room int, busy map[string]bool) []*record.Node {
	var front []*record.Node
	first := true
	for _, q := range l.all {
		if !first && !busy[q.domain] {
			continue
		}
		before := len(front)
		front = q.take(front, room+1+l.wide)
		first = first && len(front) == before
	}
	return l.overdue(front, now, room+1+l.wide)
}

// overdue adds nodes that are past their deadline and not yet in front.
func (l *queues) overdue(front []*record.Node, now time.Time, most int) []*record.Node {
	known := make(map[*record.Node]bool, len(front))
	for _, n := range front {
		known[n] = true
	}
	for _, w := range l.due {
		if w.due.After(now) || most == 0 {
			break
		}
		if w.gone() {
			continue
		}
		most--
		if !known[w.node] {
			front = append(front, w.node)
		}
	}
	return front
}

// nextDue returns the next instant at which a waiting node reaches its deadline, or zero.
func (l *queues) nextDue(now time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(l.due, now, func(w *waiting, now time.Time) int { return w.due.Compare(now) })
	for _, w := range l.due[i:] {
		if w.due.After(now) && !w.gone() {
			return w.due
		}
	}
	return time.Time{}
}

func (q *domainQueue) take(front []*record.Node, most int) []*record.Node {
	for q.head < len(q.nodes) && q.nodes[q.head].gone() {
		q.head++
	}
	for _, w := range q.nodes[q.head:] {
		if most == 0 {
			break
		}
		if !w.gone() {
			front = append(front, w.node)
			most--
		}
	}
	return front
}

func (w *waiting) gone() bool { return w.left || w.parked }

// node returns a node of the queues.
func (l *queues) node(name string) *record.Node { return l.at[name].node }

// leave removes a node from its queue, if it is in one.
func (l *queues) leave(name string) {
	if w := l.at[name]; w != nil {
		w.left = true
	}
}

// park sets a node aside that will not get a turn.
func (l *queues) park(name string) { l.at[name].parked = true }

// widen doubles wide each time that nodes were dismissed, so that a reason that holds for all nodes
// is found soon.
func (l *queues) widen(dismissed int) {
	if dismissed == 0 {
		l.wide = 0
		return
	}
	l.wide = 2 * (l.wide + dismissed)
}

// rest returns the nodes that still wait, in order. It includes the parked ones if parked is set.
func (l *queues) rest(parked bool) []*record.Node {
	var rest []*record.Node
	for _, q := range l.all {
		for _, w := range q.nodes {
			if !w.left && (!w.parked || parked) {
				rest = append(rest, w.node)
			}
		}
	}
	return rest
}
