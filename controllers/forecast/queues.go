package forecast

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// queues are the nodes that wait for their turn and that nothing else is known of, by domain, in the order in which plans
// choose. The planner looks at the first of them only: nodes after those that it could grant at once are not granted now.
type queues struct {
	all []*queue
	at  map[string]*waiting
	// due are those of all queues that have a deadline, the earliest deadline first.
	due []*waiting
	// wide is how many nodes the planner sees beyond those that there is room for. It grows when some in front have no turn to wait for.
	wide int
}

type queue struct {
	domain string
	nodes  []*waiting
	// head is the first that is left.
	head int
}

// waiting is one node in a queue.
type waiting struct {
	node *plan.Node
	// due is when its deadline ends. Zero: it has none.
	due time.Time
	// left reports that the node has been granted, or is looked at in each round now; parked, that it has no turn to wait for.
	left, parked bool
}

func queuesOf(policy *v1alpha1.RebootPolicy, planned []plan.Queue) queues {
	l := queues{at: map[string]*waiting{}}
	for _, q := range planned {
		own := &queue{domain: q.Domain, nodes: make([]*waiting, len(q.Nodes))}
		nodes := make([]waiting, len(q.Nodes))
		for i, n := range q.Nodes {
			nodes[i].node, nodes[i].due = n, plan.DueAt(policy, n)
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

// front is what the planner has to see: as many nodes as there is room for and one more. It has them of each domain in which nodes are
// being rebooted, and of the first that has any. It has as many of those that are past their deadline, wherever they are. The one more
// lets the planner report what the others wait for.
func (l *queues) front(now time.Time, room int, busy map[string]bool) []*plan.Node {
	var front []*plan.Node
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

// overdue adds nodes that are past their deadline and are not among the front.
func (l *queues) overdue(front []*plan.Node, now time.Time, most int) []*plan.Node {
	seen := make(map[*plan.Node]bool, len(front))
	for _, n := range front {
		seen[n] = true
	}
	for _, w := range l.due {
		if w.due.After(now) || most == 0 {
			break
		}
		if w.gone() {
			continue
		}
		most--
		if !seen[w.node] {
			front = append(front, w.node)
		}
	}
	return front
}

// nextDue is the next instant at which a node that waits reaches its deadline. Zero: none does.
func (l *queues) nextDue(now time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(l.due, now, func(w *waiting, now time.Time) int { return w.due.Compare(now) })
	for _, w := range l.due[i:] {
		if w.due.After(now) && !w.gone() {
			return w.due
		}
	}
	return time.Time{}
}

func (q *queue) take(front []*plan.Node, most int) []*plan.Node {
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

// node is a node of the queues.
func (l *queues) node(name string) *plan.Node { return l.at[name].node }

// leave takes a node out of its queue, if it is in one.
func (l *queues) leave(name string) {
	if w := l.at[name]; w != nil {
		w.left = true
	}
}

// park sets a node aside that has no turn to wait for.
func (l *queues) park(name string) { l.at[name].parked = true }

// widen doubles how many are looked at each time that some were in vain: so a reason that holds for all nodes is found soon.
func (l *queues) widen(dismissed int) {
	if dismissed == 0 {
		l.wide = 0
		return
	}
	l.wide = 2 * (l.wide + dismissed)
}

// rest are those that still wait, in their order; with the parked ones, if so asked.
func (l *queues) rest(parked bool) []*plan.Node {
	var rest []*plan.Node
	for _, q := range l.all {
		for _, w := range q.nodes {
			if !w.left && (!w.parked || parked) {
				rest = append(rest, w.node)
			}
		}
	}
	return rest
}
