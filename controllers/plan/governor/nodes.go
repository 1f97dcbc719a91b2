package governor

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Sorted are the nodes of the cluster, sorted by what one policy has to do with each.
type Sorted struct {
	// Entries are those of the ledger that counts for the policy.
	Entries ledger.Entries
	// Governed are the nodes that the policy governs, in no order.
	Governed []*record.Node
	// Conflicts are the nodes that several policies of the same priority select, this one among
	// them. The values are those policies.
	Conflicts map[string][]string
	// Sharing are the nodes of other policies that the limit counts, too.
	Sharing []Shared
	// ControlPlane are all control-plane nodes of the cluster, by name.
	ControlPlane []*record.Node
	// Orphans are the nodes with an outstanding grant that the ledger has lost, by its number.
	Orphans []*record.Node
	// Unlisted are nodes with an outstanding grant of this policy that neither its ledger nor its
	// selector has, by name. The policy finishes or cancels each, and none of them takes a slot.
	Unlisted []*record.Node
	// ByName are the nodes in the ledger, with an outstanding grant, or in a conflict. They are few.
	ByName map[string]*record.Node
	// BelievedFrom is the time when the first record dated in the future becomes credible, on any
	// node, because its grant may be this policy's. It is zero if no record is.
	BelievedFrom time.Time
}

// Shared is a node of another policy that the limit counts, too.
type Shared struct {
	*record.Node

	// Governed is true if one policy governs the node, and false if several conflict over it.
	// Percentages count only the governed ones.
	Governed bool
	// Granted is true if the node holds a grant, or a ledger has an entry for it.
	Granted bool
}

// Sort judges the records of the nodes, and sorts the nodes for a policy, given the ledger that
// counts for it.
func (g Governor) Sort(policy *v1alpha1.RebootPolicy, l ledger.Ledger, nodes []*record.Node, now time.Time) Sorted {
	all := Sorted{
		Entries: l.Entries(), Governed: make([]*record.Node, 0, len(nodes)), Conflicts: map[string][]string{}, ByName: map[string]*record.Node{},
	}
	numbers := record.NumbersOf(nodes, max(g.Ledgers.Seq, policy.Status.Seq))
	for _, n := range nodes {
		if all.Entries.OwnOf(n.Name) == nil { // the ledger vouches for a record
			var from time.Time
			n, from = numbers.Judge(n, now)
			all.BelievedFrom = timing.Earliest(all.BelievedFrom, from)
		}
		all.add(n, g, policy, l)
	}
	byName := func(a, b *record.Node) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(all.ControlPlane, byName)
	slices.SortFunc(all.Unlisted, byName)
	slices.SortFunc(all.Orphans, func(a, b *record.Node) int {
		return cmp.Or(cmp.Compare(a.Entry(a.Name).Seq, b.Entry(b.Name).Seq), byName(a, b))
	})
	return all
}

// add sorts one node.
func (all *Sorted) add(n *record.Node, g Governor, policy *v1alpha1.RebootPolicy, l ledger.Ledger) {
	if all.Held(n) {
		all.ByName[n.Name] = n
	}
	at := g.Govern(n)
	switch {
	case at.Policy == policy.Name:
		all.Governed = append(all.Governed, n)
	case slices.Contains(at.Rivals, policy.Name):
		all.ByName[n.Name], all.Conflicts[n.Name] = n, at.Rivals
	case at.IsOf(l.With):
		granted := n.Outstanding() || len(g.Ledgers.Owners(n.Name)) > 0
		all.Sharing = append(all.Sharing, Shared{Node: n, Governed: at.Policy != "", Granted: granted})
	}
	if n.ControlPlane {
		all.ControlPlane = append(all.ControlPlane, n)
	}
	switch {
	case !n.Outstanding() || all.Entries.Has(n.Name) || l.HeldInAnother(n) || !l.AnswersFor(n, at.Policy == policy.Name):
	case at.Policy == policy.Name || selects(policy, n):
		all.Orphans = append(all.Orphans, n)
	default:
		all.Unlisted = append(all.Unlisted, n)
	}
}

// selects reports whether a policy selects the node, even if another policy governs it. A policy
// that is being deleted governs nothing but selects its nodes until it is gone.
func selects(policy *v1alpha1.RebootPolicy, n *record.Node) bool {
	selector, err := policy.Spec.NodeSelector.Selector()
	return err == nil && selector.Matches(labels.Set(n.Labels))
}

// Held reports whether the node is in the middle of a reboot, under any policy.
func (all *Sorted) Held(n *record.Node) bool { return n.Outstanding() || all.Entries.Has(n.Name) }
