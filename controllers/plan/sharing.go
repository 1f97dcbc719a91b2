package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A policy with concurrency.shared has its entries in the ledger of the policy that it names: one compare-and-swap decides about the
// slots of both. Entries stay in their ledger until they end, whatever the spec names meanwhile. The policy grants nothing in another
// one until then.

// listed is an entry of a ledger.
type listed struct {
	ledger, node string
	seq          int64
}

// share notes whose limit counts for a policy, or why none does. One level is enough: a policy whose limit is shared may not share
// another one's.
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

// SharedWith are the policies that one limit counts, with the one that has it, in order; nil: only the policy itself.
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

// Sharing is for a forecast. A policy counts against the limit of the ledger that has its entries, also where its spec names another
// one by now.
func (g Governor) Sharing(policy, ledger string) Governor {
	g.shares = maps.Clone(g.shares)
	delete(g.shares, policy)
	if ledger != policy {
		g.shares[policy] = ledger
	}
	return g
}

// OwnerOf is the policy that has to see an entry of a ledger to its end. It is the one that granted or, where that is gone, the one
// with the ledger.
func (g Governor) OwnerOf(ledger string, e v1alpha1.LedgerEntry) string {
	if g.knows(e.Policy) {
		return e.Policy
	}
	return ledger
}

// LedgerOf is the policy whose ledger has the entries of a policy. It is the one in which entries are left although the spec names
// another, or the one that it names. Nil: its own.
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

// Holder is the policy whose ledger has the entries.
func (s Snapshot) Holder() *v1alpha1.RebootPolicy {
	if s.Ledger != nil {
		return s.Ledger
	}
	return s.Policy
}

// Owns reports whether an entry of the ledger is the policy's own.
func (s Snapshot) Owns(e v1alpha1.LedgerEntry) bool {
	return s.Governor.OwnerOf(s.Holder().Name, e) == s.Policy.Name
}

// limited is all that one limit counts beside the nodes of the policy that is decided about.
type limited struct {
	// with are the policies, in order; nil: the policy alone.
	with []string
	// most is the limit as written.
	most intstr.IntOrString
	// ledger is the name of the policy whose ledger it is, and elsewhere reports that the spec names another one.
	ledger    string
	elsewhere bool
	// own and others are the entries of the ledger: of the policy, and of those beside it.
	own, others []v1alpha1.LedgerEntry
	// selected is how many nodes the other policies govern, and down are those of them that are unavailable, and why.
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

// tag is the policy that an entry names: none in its own ledger.
func (l *limited) tag(policy string) string {
	if l.ledger == policy {
		return ""
	}
	return policy
}

// add counts a node of another policy, or of several that are rivals. A percentage is of those that one policy governs.
func (l *limited) add(n *Node, g Governance, inLedger bool) {
	if g.Policy != "" {
		l.selected++
	}
	if n.Outstanding() || inLedger {
		l.down[n.Name] = holdsGrant
	} else if n.Unavailable() {
		l.down[n.Name] = why(n)
	}
}

// sharedPolicyNotFound keeps a policy from granting that has no limit to share.
func sharedPolicyNotFound(v view, _ *Node) *Blocked {
	if why := v.Governor.unshared[v.name]; why != "" {
		return blocked(v1alpha1.ReasonSharedPolicyNotFound, "policy %s %s", v.name, why)
	}
	return nil
}

// otherLedger keeps new entries out of every ledger until those in one that the spec does not name any more have ended.
func (l *limited) otherLedger(policy string) *Blocked {
	if !l.elsewhere {
		return nil
	}
	return blocked(v1alpha1.ReasonBudgetExhausted, "waiting for its turn: reboots that policy %s was granted in the ledger of policy %s have to end "+
		"before spec.concurrency counts as it is now", policy, l.ledger)
}

// of names the policies whose nodes one limit counts together. Empty: there is one.
func (l *limited) of() string {
	if l.with == nil {
		return ""
	}
	return " of policies " + list(l.with) + " together"
}

// replaced reports whether another policy, or this one in another ledger, sees the grant that the node shows to its end.
func (g Governor) replaced(n *Node, policy, ledger string) bool {
	if n.Grant.Policy == policy {
		return g.inOther(n, ledger)
	}
	return g.knows(n.Grant.Policy)
}

// inOther reports whether another ledger has the grant that the node shows.
func (g Governor) inOther(n *Node, ledger string) bool {
	is := n.Grant
	return is != nil && is.LedgerName() != ledger && g.entries[listed{is.LedgerName(), n.Name, is.Seq}]
}

// take counts what other policies have down, or are about to.
func (l *limited) take(s *share) {
	maps.Copy(s.used, l.down)
	for _, e := range l.others {
		s.granted++
		s.used[e.Node] = holdsGrant
	}
}
