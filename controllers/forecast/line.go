package forecast

import (
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// line is the nodes that wait for their turn and that nothing else is known of, by domain, in the order in which plans choose.
// The planner looks at the first of them only: whoever stands behind those that it could grant at once is not granted now.
type line struct {
	queues []*queue
	at     map[string]*waiting
	// wide is how many more than there is room for the planner sees, after some in front were found to have no turn to wait for.
	wide int
}

type queue struct {
	domain string
	nodes  []*waiting
	// head is the first that is left.
	head int
}

// waiting is one place in the line.
type waiting struct {
	node *plan.Node
	// left tells that the node has been granted, or is looked at in each round now; parked, that it has no turn to wait for.
	left, parked bool
}

func lineOf(queues []plan.Queue) line {
	l := line{at: map[string]*waiting{}}
	for _, q := range queues {
		own := &queue{domain: q.Domain, nodes: make([]*waiting, len(q.Nodes))}
		places := make([]waiting, len(q.Nodes))
		for i, n := range q.Nodes {
			places[i].node = n
			own.nodes[i], l.at[n.Name] = &places[i], &places[i]
		}
		l.queues = append(l.queues, own)
	}
	return l
}

// front is whom the planner has to see: as many as there is room for and one more, of each domain in which nodes are in
// flight, and of the first that has any. The one more lets the planner say what the others wait for.
func (l *line) front(room int, busy map[string]bool) []*plan.Node {
	var front []*plan.Node
	first := true
	for _, q := range l.queues {
		if !first && !busy[q.domain] {
			continue
		}
		before := len(front)
		front = q.take(front, room+1+l.wide)
		first = first && len(front) == before
	}
	return front
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

// node is that of a place in the line.
func (l *line) node(name string) *plan.Node { return l.at[name].node }

// leave takes a node out of the line, if it stands there.
func (l *line) leave(name string) {
	if w := l.at[name]; w != nil {
		w.left = true
	}
}

// park sets a node aside that has no turn to wait for.
func (l *line) park(name string) { l.at[name].parked = true }

// widen looks at twice as many each time that some were in vain: a reason that holds for everybody is found soon.
func (l *line) widen(dismissed int) {
	if dismissed == 0 {
		l.wide = 0
		return
	}
	l.wide = 2 * (l.wide + dismissed)
}

// rest are those that still stand there, in their order; with the parked ones, if so asked.
func (l *line) rest(parked bool) []*waiting {
	var rest []*waiting
	for _, q := range l.queues {
		for _, w := range q.nodes {
			if !w.left && (!w.parked || parked) {
				rest = append(rest, w)
			}
		}
	}
	return rest
}
