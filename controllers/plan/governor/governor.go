// Package governor knows which policy governs which node.
package governor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Governor knows which policy governs which node: the one of highest priority among those that
// select it. A policy that governs no node may still have to finish a reboot, as the ledgers say.
type Governor struct {
	rules []rule
	// Ledgers are the ledgers of all policies, including those that govern nothing.
	Ledgers ledger.Ledgers
	// Invalid says, by policy, what is wrong with its selector. Such a policy governs no node, so
	// its error cannot take nodes from other policies. It reports itself as not accepted.
	Invalid map[string]string
}

type rule struct {
	policy   string
	priority int32
	selector labels.Selector
	// invalid is true if the policy governs its nodes but reboots none, because its status calls
	// its current spec invalid.
	invalid bool
}

// selects reports whether the policy selects the node. No policy selects nodes that run Windows.
func (r rule) selects(n *record.Node) bool {
	return !n.Windows && r.selector.Matches(labels.Set(n.Labels))
}

// Of compiles the selectors of all policies. A policy that is being deleted governs
// nothing.
func Of(policies []v1alpha1.RebootPolicy) Governor {
	g := Governor{Ledgers: ledger.Of(policies), Invalid: map[string]string{}}
	for i := range policies {
		p := &policies[i]
		if p.DeletionTimestamp != nil {
			continue
		}
		selector, err := p.Spec.NodeSelector.Selector()
		if err != nil {
			g.Invalid[p.Name] = message.Shorten(record.MaxMessage, fmt.Sprintf("the policy governs no node, because spec.nodeSelector cannot be evaluated: %v", err))
			continue
		}
		g.rules = append(g.rules, rule{policy: p.Name, priority: p.Spec.Priority, selector: selector, invalid: isInvalid(p)})
	}
	slices.SortFunc(g.rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.policy, b.policy))
	})
	return g
}

// isInvalid reports whether the manager has found the policy's current spec invalid.
func isInvalid(p *v1alpha1.RebootPolicy) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAccepted)
	return c != nil && c.Reason == string(v1alpha1.ReasonInvalid) && c.ObservedGeneration == p.Generation
}

// Withheld returns the nodes that a policy selects but an invalid policy of higher priority
// governs, by the name of that policy.
func (g Governor) Withheld(nodes []*record.Node, policy string) map[string][]string {
	withheld := map[string][]string{}
	if !slices.ContainsFunc(g.rules, func(r rule) bool { return r.invalid }) {
		return withheld
	}
	for _, n := range nodes {
		if by := g.withholder(n, policy); by != "" {
			withheld[by] = append(withheld[by], n.Name)
		}
	}
	return withheld
}

// withholder returns the invalid policy that governs the node although this one selects it too,
// with a lower priority, or "". An invalid policy keeps its nodes, because nobody knows which nodes
// its owner wanted to hold back.
func (g Governor) withholder(n *record.Node, policy string) string {
	first := slices.IndexFunc(g.rules, func(r rule) bool { return r.selects(n) })
	if first < 0 || !g.rules[first].invalid {
		return ""
	}
	highest := g.rules[first]
	if slices.ContainsFunc(g.rules, func(r rule) bool { return r.policy == policy && r.priority < highest.priority && r.selects(n) }) {
		return highest.policy
	}
	return ""
}

// Governance is the result for one node. If both fields are empty, no policy selects it.
type Governance struct {
	// Policy is the policy that governs the node, or empty if none does or several conflict.
	Policy string
	// Rivals are the policies that select the node with the same, highest priority, if there are
	// several.
	Rivals []string
}

// IsOf reports whether one of the policies governs the node or conflicts over it.
func (g Governance) IsOf(policies []string) bool {
	return slices.Contains(policies, g.Policy) || slices.ContainsFunc(g.Rivals, func(rival string) bool { return slices.Contains(policies, rival) })
}

// Selection is a policy that selects a node.
type Selection struct {
	Policy   string
	Priority int32
}

// Selecting returns the policies that select a node, by descending priority, then by name.
func (g Governor) Selecting(n *record.Node) []Selection {
	var selecting []Selection
	for _, r := range g.rules {
		if r.selects(n) {
			selecting = append(selecting, Selection{Policy: r.policy, Priority: r.priority})
		}
	}
	return selecting
}

// Govern finds the policy of a node by the node's labels. It runs for thousands of nodes, so it
// allocates nothing unless policies conflict.
func (g Governor) Govern(n *record.Node) Governance {
	selects := func(r rule) bool { return r.selects(n) }
	first := slices.IndexFunc(g.rules, selects)
	if first < 0 {
		return Governance{}
	}
	highest := g.rules[first]
	var others []string
	for _, r := range g.rules[first+1:] {
		if r.priority < highest.priority {
			break
		}
		if selects(r) {
			others = append(others, r.policy)
		}
	}
	if len(others) == 0 {
		return Governance{Policy: highest.policy}
	}
	return Governance{Rivals: append([]string{highest.policy}, others...)}
}

// Leaves reports whether no policy is concerned with a node: none selects it, and it is not in the
// middle of a reboot.
func (g Governor) Leaves(n *record.Node) bool {
	at := g.Govern(n)
	return at.Policy == "" && len(at.Rivals) == 0 && !n.Outstanding()
}

// Abandons returns why no policy finishes the node's reboot, or nil if one does. It happens if no
// policy governs the node and the granting policy was removed by force.
func (g Governor) Abandons(n *record.Node) *block.Block {
	at := g.Govern(n)
	if at.Policy != "" || !n.Outstanding() || g.Ledgers.Finishes(n) != "" {
		return nil
	}
	const gone = "the policy that granted this reboot was deleted, and "
	if len(at.Rivals) > 0 {
		return block.New(v1alpha1.ReasonPolicyConflict, gone+"%s", ConflictMessage(at.Rivals))
	}
	return block.New(v1alpha1.ReasonNoPolicy, gone+"no policy selects the node; create a RebootPolicy that selects it%s", g.Unread())
}

// Unread names the policies whose selectors cannot be evaluated, because they might select the
// node.
func (g Governor) Unread() string {
	if len(g.Invalid) == 0 {
		return ""
	}
	return "; spec.nodeSelector cannot be evaluated in " + message.Some(slices.Sorted(maps.Keys(g.Invalid)))
}

// Responsible returns the policy whose plan answers for a node, or "". That is the policy that has
// to finish its reboot. Otherwise it is the one that governs the node, or the first policy of a
// conflict.
func (g Governor) Responsible(n *record.Node) string {
	at := g.Govern(n)
	if len(at.Rivals) > 0 {
		at.Policy = at.Rivals[0]
	}
	return cmp.Or(g.Ledgers.Finishes(n), at.Policy)
}

// Affected returns the policies whose plans depend on a node: the one that governs it, or all that
// conflict over it, with those that share their limits, and those that have granted it a reboot. ""
// stands for the nodes without a policy.
func (g Governor) Affected(n *record.Node) []string {
	at := g.Govern(n)
	selecting, names := at.Rivals, g.Ledgers.Owners(n.Name)
	if len(selecting) == 0 {
		selecting = []string{at.Policy}
	}
	if n.Grant != nil {
		names = append(names, n.Grant.Policy)
	}
	for _, name := range selecting {
		names = append(append(names, name), g.Ledgers.SharedWith(name)...)
	}
	if n.ControlPlane { // each policy checks all of them before it grants one
		names = append(names, g.Ledgers.Policies()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Freed returns the policies whose nodes may wait for the slot of an entry that has left a ledger.
// The node is nil if it does not exist.
func (g Governor) Freed(holder string, e v1alpha1.LedgerEntry, n *record.Node) []string {
	owner, names := g.Ledgers.Owner(holder, e), g.Ledgers.SharedWith(holder)
	if owner != holder { // which may not share the limit any more
		names = append(names, holder)
	}
	if n == nil {
		return names
	}
	// The limit of the policy that governs the node counts it, whatever ledger has the entry. The
	// owner plans again by itself after it has released the entry.
	return append(names, slices.DeleteFunc(g.Affected(n), func(name string) bool { return name == owner })...)
}
