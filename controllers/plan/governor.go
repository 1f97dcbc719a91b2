package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Governor knows which policy governs which node: the one of highest priority among those that
// select it.
type Governor struct {
	rules []rule
	// names holds all policies, including those that govern nothing.
	names map[string]bool
	// given is the highest number in the ledgers of all policies.
	given int64
	// shares maps policies to the policy whose limit they share, if it can be used.
	shares map[string]string
	// unshared says, by policy, why the policy whose limit it shares cannot be used: it does not
	// exist or is being deleted. chained says the same if that policy shares another limit itself,
	// which is an error in the spec.
	unshared, chained map[string]string
	// entries are the entries of all ledgers, and inLedger the nodes in any of them.
	entries  map[listed]bool
	inLedger map[string]bool
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

// NewGovernor compiles the selectors of all policies. A policy that is being deleted governs
// nothing.
func NewGovernor(policies []v1alpha1.RebootPolicy) Governor {
	g := Governor{
		names: map[string]bool{}, Invalid: map[string]string{}, shares: map[string]string{}, unshared: map[string]string{}, chained: map[string]string{},
		entries: map[listed]bool{}, inLedger: map[string]bool{},
	}
	for i := range policies {
		p := &policies[i]
		g.names[p.Name], g.given = true, max(g.given, p.Status.Seq)
		g.share(p, policies)
		for _, e := range p.Status.Grants {
			g.entries[listed{p.Name, e.Node, e.Seq}], g.inLedger[e.Node] = true, true
		}
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

// leaves reports whether no policy is concerned with a node: none selects it, and it is not in the
// middle of a reboot.
func (g Governor) leaves(n *record.Node) bool {
	at := g.Govern(n)
	return at.Policy == "" && len(at.Rivals) == 0 && !n.Outstanding()
}

// abandons returns why no policy finishes the node's reboot, or nil if one does. It happens if no
// policy governs the node and the granting policy was removed by force.
func (g Governor) abandons(n *record.Node) *Blocked {
	at := g.Govern(n)
	granted := n.Grant != nil && g.knows(n.Grant.Policy)
	if at.Policy != "" || !n.Outstanding() || granted || g.inLedger[n.Name] {
		return nil
	}
	const gone = "the policy that granted this reboot was deleted, and "
	if len(at.Rivals) > 0 {
		return blocked(v1alpha1.ReasonPolicyConflict, gone+"%s", ConflictMessage(at.Rivals))
	}
	return blocked(v1alpha1.ReasonNoPolicy, gone+"no policy selects the node; create a RebootPolicy that selects it%s", g.unread())
}

func (g Governor) knows(policy string) bool { return g.names[policy] }

// unread names the policies whose selectors cannot be evaluated, because they might select the
// node.
func (g Governor) unread() string {
	if len(g.Invalid) == 0 {
		return ""
	}
	return "; spec.nodeSelector cannot be evaluated in " + someOf(slices.Sorted(maps.Keys(g.Invalid)))
}
