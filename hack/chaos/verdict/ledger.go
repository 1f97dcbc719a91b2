package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// outsideLedger: an attempt begins while its entry is in the ledger, and is made for that very Node; and no attempt is granted
// over before it has ended. An entry that an administrator took away, with the status or the whole policy, counts all the same.
func outsideLedger(h History) []Violation {
	l := ledger{entries: map[string]v1alpha1.LedgerEntry{}, taken: map[string]bool{}, nodes: map[string]*corev1.Node{}}
	for _, r := range h.Revisions {
		switch {
		case r.Policy != nil:
			l.policy(r)
		case r.Node != nil && r.Deleted:
			delete(l.nodes, r.Node.Name)
		case r.Node != nil:
			l.node(r)
		}
	}
	return l.found
}

// ledger is the policy's as it is, taken the entries that the operator has not released itself, and nodes are as they were.
type ledger struct {
	entries map[string]v1alpha1.LedgerEntry
	taken   map[string]bool
	nodes   map[string]*corev1.Node
	found   []Violation
}

func (l *ledger) policy(r Revision) {
	before := l.entries
	l.entries = map[string]v1alpha1.LedgerEntry{}
	byHand := r.Deleted || len(r.Policy.Status.Conditions) == 0 // every status of the operator has conditions
	if !r.Deleted {
		for _, e := range r.Policy.Status.Grants {
			l.entries[key(e.Node, e.Seq)] = e
		}
	}
	for who := range before {
		if _, there := l.entries[who]; !there && byHand {
			l.taken[who] = true
		}
	}
}

func (l *ledger) node(r Revision) {
	was, is, name := attempt{}, attemptOf(r.Node), r.Node.Name
	if before := l.nodes[name]; before != nil {
		was = attemptOf(before)
	}
	l.nodes[name] = r.Node
	e, listed := l.entries[key(name, is.seq)]
	switch {
	case is.disrupts && (!was.disrupts || was.seq != is.seq) && !l.taken[key(name, is.seq)] &&
		(!listed || e.NodeUID != "" && e.NodeUID != r.Node.UID):
		l.found = append(l.found, Violation{r.Number, "begun outside the ledger", fmt.Sprintf("node %s, UID %s, begins number %d; the ledger has %v",
			name, r.Node.UID, is.seq, l.entries)})
	case was.disrupts && !is.disrupts && is.over && was.seq == is.seq:
		l.found = append(l.found, Violation{r.Number, "granted in mid-attempt", fmt.Sprintf("node %s, number %d", name, is.seq)})
	}
}
