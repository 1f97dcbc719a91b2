// Package ledger knows whose ledger counts for a policy. Everything else is given a Ledger.
//
// A policy with concurrency.shared keeps its entries in the ledger of the policy that it names, so
// one compare-and-swap decides about the slots of both. If the spec changes, entries stay in their
// ledger until they end, and the policy grants nothing in another ledger until then.
package ledger

import (
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// Ledger is the ledger that counts for one policy.
type Ledger struct {
	// Policy has the ledger in its status.
	Policy *v1alpha1.RebootPolicy
	// With are the policies that share the limit, including the one that has it, sorted. It is nil
	// if the policy shares with nobody.
	With []string
	// Unusable says why the policy that spec.concurrency.shared names cannot be used, or is nil.
	Unusable *block.Block
	// Moved is true if the spec already names another ledger than the one with the entries.
	Moved bool

	// user is the policy for which the ledger counts.
	user string
	all  Ledgers
}

// Apart reports whether the ledger is in another policy's status, and so is written apart from the
// policy's own.
func (l Ledger) Apart() bool { return l.Policy.Name != l.user }

// Updated returns the ledger after a policy was written, which may be the one that has it.
func (l Ledger) Updated(policy *v1alpha1.RebootPolicy) Ledger {
	if policy.Name == l.Policy.Name {
		l.Policy = policy
	}
	return l
}

// Counted names the policies whose nodes the limit counts together, or returns "" if there is only
// one.
func (l Ledger) Counted() string {
	if l.With == nil {
		return ""
	}
	return " of policies " + strings.Join(l.With, ", ") + " together"
}

// Kept returns the ledger as if the spec named it, for a forecast.
func (l Ledger) Kept() Ledger {
	if l.Moved {
		l.With, l.Moved = l.all.sharing(l.Policy.Name, l.user), false
	}
	return l
}

// Tag returns the policy name to write into an entry, or "" in the policy's own ledger.
func (l Ledger) Tag() string {
	if l.Apart() {
		return l.user
	}
	return ""
}

// Owns reports whether the policy has to finish an entry of the ledger.
func (l Ledger) Owns(e v1alpha1.LedgerEntry) bool {
	return l.all.Owner(l.Policy.Name, e) == l.user
}

// AnswersFor reports whether the policy has to finish an outstanding grant that no ledger holds.
// That is the task of the policy that gave it. If that is unknown or no longer exists, it falls to
// the policy that governs the node. Otherwise the node would never release its slot.
func (l Ledger) AnswersFor(n *record.Node, governs bool) bool {
	if by := l.all.grantedBy(n); by != "" {
		return by == l.user
	}
	return governs
}

// HeldInAnother reports whether another ledger holds the grant that the node shows.
func (l Ledger) HeldInAnother(n *record.Node) bool {
	g := n.Grant
	return g != nil && g.LedgerName() != l.Policy.Name && slices.ContainsFunc(l.all.entries[n.Name], func(e entry) bool {
		return e.ledger == g.LedgerName() && e.seq == g.Seq
	})
}

// Overtaken reports whether the grant of an entry can never be published, because the node shows
// the grant of another policy or of another ledger.
func (l Ledger) Overtaken(n *record.Node, e v1alpha1.LedgerEntry) bool {
	switch {
	case !protocol.Overtaken(n.Record, e, l.Policy.Name):
		return false
	case n.Grant.Policy == l.user:
		return l.HeldInAnother(n)
	}
	return l.all.grantedBy(n) != ""
}

// Entries returns the entries of the ledger.
func (l Ledger) Entries() Entries {
	entries := Entries{own: map[string]int{}, nodes: map[string]bool{}}
	for _, e := range l.Policy.Status.Grants {
		if entries.nodes[e.Node] = true; !l.Owns(e) {
			entries.Others = append(entries.Others, e)
			continue
		}
		entries.own[e.Node] = len(entries.Own)
		entries.Own = append(entries.Own, e)
	}
	return entries
}

// Entries are the entries of a ledger.
type Entries struct {
	// Own are those that the policy has to finish, and Others those of policies that share the
	// limit. Both are in the order of the ledger.
	Own, Others []v1alpha1.LedgerEntry

	// own are the positions of nodes in Own, and nodes are those with an entry of any policy.
	own   map[string]int
	nodes map[string]bool
}

// Has reports whether any policy has an entry for the node.
func (e Entries) Has(node string) bool { return e.nodes[node] }

// OwnOf returns the policy's entry for the node, or nil if it has none.
func (e Entries) OwnOf(node string) *v1alpha1.LedgerEntry {
	i, ok := e.own[node]
	if !ok {
		return nil
	}
	return &e.Own[i]
}
