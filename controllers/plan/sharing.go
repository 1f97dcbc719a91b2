package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// A policy with concurrency.shared keeps its entries in the ledger of the policy that it names, so
// one compare-and-swap decides about the slots of both. If the spec changes, entries stay in their
// ledger until they end, and the policy grants nothing in another ledger until then.

// listed identifies an entry of a ledger.
type listed struct {
	ledger, node string
	seq          int64
}

// share records whose limit counts for a policy, or why none does. Sharing has one level: a policy
// whose limit is shared may not share another policy's.
func (g *Governor) share(p *v1alpha1.RebootPolicy, policies []v1alpha1.RebootPolicy) {
	name := p.Spec.Shared()
	if name == "" {
		return
	}
	i := slices.IndexFunc(policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
	switch {
	case i < 0:
		g.unshared[p.Name] = fmt.Sprintf("shares the limit of policy %s, which does not exist: create it, or correct spec.concurrency.shared", name)
	case policies[i].DeletionTimestamp != nil:
		g.unshared[p.Name] = fmt.Sprintf("shares the limit of policy %s, which is being deleted: correct spec.concurrency.shared", name)
	case policies[i].Spec.Shared() != "":
		g.chained[p.Name] = fmt.Sprintf("spec.concurrency.shared: policy %s shares the limit of policy %s itself; name a policy that does not",
			name, policies[i].Spec.Shared())
	default:
		g.shares[p.Name] = name
	}
}

// SharedWith returns the names of all policies that share the policy's limit, including the policy
// that has it, sorted. It returns nil if the policy shares with nobody.
func (g Governor) SharedWith(policy string) []string {
	limit := cmp.Or(g.shares[policy], policy)
	var all []string
	for name, of := range g.shares {
		if of == limit {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return nil
	}
	all = append(all, limit)
	slices.Sort(all)
	return all
}

// Sharing returns a Governor for a forecast, in which the policy counts against the limit of the
// ledger that holds its entries, even if its spec already names another policy.
func (g Governor) Sharing(policy, ledger string) Governor {
	g.shares = maps.Clone(g.shares)
	delete(g.shares, policy)
	if ledger != policy {
		g.shares[policy] = ledger
	}
	return g
}

// OwnerOf returns the policy that has to finish the reboot of a ledger entry: the one that granted
// it, or the one with the ledger if that policy no longer exists.
func (g Governor) OwnerOf(ledger string, e v1alpha1.LedgerEntry) string {
	if g.knows(e.Policy) {
		return e.Policy
	}
	return ledger
}

// LedgerOf returns the policy whose status holds the entries of a policy: one that still has open
// entries, or else the one that its spec names. It returns nil if that is the policy itself.
func (g Governor) LedgerOf(policy *v1alpha1.RebootPolicy, policies []v1alpha1.RebootPolicy) *v1alpha1.RebootPolicy {
	var is *v1alpha1.RebootPolicy
	named := cmp.Or(g.shares[policy.Name], policy.Name)
	for i := range policies {
		p := &policies[i]
		has := func(e v1alpha1.LedgerEntry) bool { return g.OwnerOf(p.Name, e) == policy.Name }
		if is == nil && p.Name == named || p.Name != named && slices.ContainsFunc(p.Status.Grants, has) {
			is = p
		}
	}
	if is == nil || is.Name == policy.Name {
		return nil
	}
	return is
}

// Holder returns the policy whose ledger holds the entries.
func (s Snapshot) Holder() *v1alpha1.RebootPolicy {
	if s.Ledger != nil {
		return s.Ledger
	}
	return s.Policy
}

// Owns reports whether an entry of the ledger belongs to the policy.
func (s Snapshot) Owns(e v1alpha1.LedgerEntry) bool {
	return s.Governor.OwnerOf(s.Holder().Name, e) == s.Policy.Name
}

// limited holds what one limit counts besides the nodes of the policy that is decided about.
type limited struct {
	// with are the policies that share the limit, sorted, or nil if the policy shares with nobody.
	with []string
	// most is the limit as the user wrote it.
	most intstr.IntOrString
	// ledger is the name of the policy that has the ledger. elsewhere is true if the spec already
	// names another one.
	ledger    string
	elsewhere bool
	// own are the policy's entries in the ledger, and others those of the policies that share it.
	own, others []v1alpha1.LedgerEntry
	// selected is the number of nodes that the other policies govern. down are the unavailable ones
	// among them, with the cause.
	selected int
	down     map[string]string
}

func limitedOf(s Snapshot) limited {
	name := s.Policy.Name
	l := limited{with: s.Governor.SharedWith(name), most: s.Holder().Spec.MaxUnavailableOrDefault(), ledger: s.Holder().Name, down: map[string]string{}}
	l.elsewhere = l.ledger != cmp.Or(s.Governor.shares[name], name)
	for _, e := range s.Holder().Status.Grants {
		if s.Owns(e) {
			l.own = append(l.own, e)
		} else {
			l.others = append(l.others, e)
		}
	}
	return l
}

// tag returns the policy name to write into an entry, or "" in the policy's own ledger.
func (l *limited) tag(policy string) string {
	if l.ledger == policy {
		return ""
	}
	return policy
}

// add counts a node of another policy, or of several in conflict. Percentages count only nodes that
// one policy governs.
func (l *limited) add(n *record.Node, g Governance, inLedger bool) {
	if g.Policy != "" {
		l.selected++
	}
	if n.Outstanding() || inLedger {
		l.down[n.Name] = holdsGrant
	} else if n.Unavailable() {
		l.down[n.Name] = why(n)
	}
}

// sharedPolicyNotFound blocks all nodes if the policy has no limit to share.
func sharedPolicyNotFound(c *choice, _ *record.Node) *Blocked {
	if why := c.Governor.unshared[c.name]; why != "" {
		return blocked(v1alpha1.ReasonSharedPolicyNotFound, "policy %s %s", c.name, why)
	}
	return nil
}

// otherLedger blocks new entries while entries remain in a ledger that the spec no longer names.
func (l *limited) otherLedger(policy string) *Blocked {
	if !l.elsewhere {
		return nil
	}
	return blocked(v1alpha1.ReasonBudgetExhausted, "waiting for its turn: spec.concurrency.shared changed, and reboots of policy %s "+
		"still count against the limit of policy %s", policy, l.ledger)
}

// of names the policies whose nodes the limit counts together, or returns "" if there is only one.
func (l *limited) of() string {
	if l.with == nil {
		return ""
	}
	return " of policies " + list(l.with) + " together"
}

// replaced reports whether the grant that the node shows belongs to another policy, or to this one
// in another ledger.
func (g Governor) replaced(n *record.Node, policy, ledger string) bool {
	if n.Grant.Policy == policy {
		return g.inOther(n, ledger)
	}
	return g.knows(n.Grant.Policy)
}

// inOther reports whether another ledger holds the grant that the node shows.
func (g Governor) inOther(n *record.Node, ledger string) bool {
	is := n.Grant
	return is != nil && is.LedgerName() != ledger && g.entries[listed{is.LedgerName(), n.Name, is.Seq}]
}

// take counts the nodes of other policies that are down or about to go down.
func (l *limited) take(s *share) {
	maps.Copy(s.used, l.down)
	for _, e := range l.others {
		s.granted++
		s.used[e.Node] = holdsGrant
	}
}
