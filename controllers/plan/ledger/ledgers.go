package ledger

import (
	"maps"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// Ledgers are the ledgers of all policies.
type Ledgers struct {
	// Seq is the highest number in any of them.
	Seq int64

	policies map[string]*v1alpha1.RebootPolicy
	// entries holds the entries of all ledgers, by node.
	entries map[string][]entry
}

// entry is an entry of a ledger. owner is the policy that has to finish it.
type entry struct {
	ledger, owner string
	seq           int64
}

// Of returns the ledgers of all policies.
func Of(policies []v1alpha1.RebootPolicy) Ledgers {
	all := Ledgers{policies: map[string]*v1alpha1.RebootPolicy{}, entries: map[string][]entry{}}
	for i := range policies {
		all.policies[policies[i].Name] = &policies[i]
	}
	for i := range policies {
		p := &policies[i]
		all.Seq = max(all.Seq, p.Status.Seq)
		for _, e := range p.Status.Grants {
			all.entries[e.Node] = append(all.entries[e.Node], entry{p.Name, all.Owner(p.Name, e), e.Seq})
		}
	}
	return all
}

// For returns the ledger that counts for a policy: one that still has entries of it, or else the
// one that its spec names.
func (l Ledgers) For(policy *v1alpha1.RebootPolicy) Ledger {
	named, unusable := l.named(policy)
	name := named
	for _, other := range slices.Sorted(maps.Keys(l.policies)) {
		has := func(e v1alpha1.LedgerEntry) bool { return l.Owner(other, e) == policy.Name }
		if other != named && slices.ContainsFunc(l.policies[other].Status.Grants, has) {
			name = other
		}
	}
	ledger := Ledger{
		Policy: policy, With: l.sharing(named, policy.Name), Unusable: unusable, Moved: name != named, user: policy.Name, all: l,
	}
	if name != policy.Name {
		ledger.Policy = l.policies[name]
	}
	return ledger
}

// named returns the policy whose ledger counts by a policy's spec, which is the policy itself if
// the one that the spec names cannot be used. Sharing has one level: a policy whose limit is shared
// may not share another policy's.
func (l Ledgers) named(p *v1alpha1.RebootPolicy) (name string, unusable *block.Block) {
	other := p.Spec.Shared()
	switch shared := l.policies[other]; {
	case other == "":
	case shared == nil:
		unusable = block.New(v1alpha1.ReasonSharedPolicyNotFound, "spec.concurrency.shared: policy %s does not exist; create it, or correct the field", other)
	case shared.DeletionTimestamp != nil:
		unusable = block.New(v1alpha1.ReasonSharedPolicyNotFound, "spec.concurrency.shared: policy %s is being deleted; correct the field", other)
	case shared.Spec.Shared() != "":
		unusable = block.New(v1alpha1.ReasonInvalid, "spec.concurrency.shared: policy %s shares the limit of policy %s itself; name a policy that does not", other, shared.Spec.Shared())
	default:
		return other, nil
	}
	return p.Name, unusable
}

// SharedWith returns the names of all policies that share a policy's limit, including the policy
// that has it, sorted. It returns nil if the policy shares with nobody.
func (l Ledgers) SharedWith(policy string) []string {
	p := l.policies[policy]
	if p == nil {
		return nil
	}
	named, _ := l.named(p)
	return l.sharing(named, policy)
}

// sharing returns the sorted names of a policy and all others that share a limit, or nil if nobody
// else does.
func (l Ledgers) sharing(limit, policy string) []string {
	with := map[string]bool{limit: true, policy: true}
	for name, p := range l.policies {
		if of, _ := l.named(p); of == limit {
			with[name] = true
		}
	}
	if len(with) == 1 {
		return nil
	}
	return slices.Sorted(maps.Keys(with))
}

// Owner returns the policy that has to finish the reboot of an entry: the one that granted it, or
// the one with the ledger if that policy no longer exists.
func (l Ledgers) Owner(ledger string, e v1alpha1.LedgerEntry) string {
	if l.policies[e.Policy] != nil {
		return e.Policy
	}
	return ledger
}

// grantedBy returns the policy that gave the grant on the node, or "" if it is unknown or no longer
// exists.
func (l Ledgers) grantedBy(n *record.Node) string {
	if n.Grant == nil || l.policies[n.Grant.Policy] == nil {
		return ""
	}
	return n.Grant.Policy
}

// Owners returns the policies that have to finish the entries for a node, in any ledger.
func (l Ledgers) Owners(node string) []string {
	owners := make([]string, len(l.entries[node]))
	for i, e := range l.entries[node] {
		owners[i] = e.owner
	}
	return owners
}

// Finishes returns the policy that has to finish the node's reboot: the one with an entry for it,
// or else the one that gave its outstanding grant. It returns "" if no policy has to.
func (l Ledgers) Finishes(n *record.Node) string {
	switch owners := l.Owners(n.Name); {
	case len(owners) > 0:
		return owners[0]
	case n.Outstanding():
		return l.grantedBy(n)
	}
	return ""
}

// Policies returns the names of all policies.
func (l Ledgers) Policies() []string { return slices.Collect(maps.Keys(l.policies)) }
