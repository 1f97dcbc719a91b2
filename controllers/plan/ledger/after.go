package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// After is the ledger of a policy as a plan leaves it.
type After struct {
	// Policy is the name of the policy that has the ledger in its status.
	Policy string
	// Limit is the limit of the ledger. It counts the nodes of all policies in With.
	Limit int32
	// With are the policies that share the limit, including the one that has it, sorted. It is nil if
	// there is only one.
	With []string
	// Seq is the highest sequence number.
	Seq int64
	// Kept are the policy's entries that stay, in the order of the ledger.
	Kept []v1alpha1.LedgerEntry
	// Granted and Adopted are new entries. Adopted ones already have a grant on their Node.
	Granted, Adopted []v1alpha1.LedgerEntry
	// Others are entries of other policies.
	Others []v1alpha1.LedgerEntry

	// recorded is the number in the ledger before the plan.
	recorded int64
	// differs is true if more than new entries has to be written.
	differs bool
}

// After returns the ledger with those entries of the policy that stay. limit is the policy's limit as
// the ledger counts it. If the spec no longer names the ledger, its limit stays as it is.
func (l Ledger) After(policy *v1alpha1.RebootPolicy, limit int32, kept []v1alpha1.LedgerEntry) After {
	before, entries := l.Policy.Status, l.Entries()
	if l.Moved && l.Apart() {
		limit = before.Limit
	}
	a := After{
		Policy: l.Policy.Name, Limit: limit, With: l.With, Seq: max(policy.Status.Seq, before.Seq), Kept: kept, Others: entries.Others,
		recorded: before.Seq, differs: len(kept) < len(entries.Own),
	}
	for _, e := range kept {
		a.differs = a.differs || l.differs(e, *entries.OwnOf(e.Node))
	}
	return a
}

// differs reports whether an entry has to be written because of what a plan changed in it. The
// policy's own ledger is written with the rest of its status, so the times of an entry can wait for
// that.
func (l Ledger) differs(e, before v1alpha1.LedgerEntry) bool {
	withdrawn := e.WithdrawnAt != nil && before.WithdrawnAt == nil
	return withdrawn || l.Apart() && ((e.RebootingAt == nil) != (before.RebootingAt == nil) || !e.At.Equal(&before.At))
}

// Grant adds the entry of a new grant.
func (a *After) Grant(e v1alpha1.LedgerEntry) { a.Seq, a.Granted = e.Seq, append(a.Granted, e) }

// Adopt takes an outstanding grant back into the ledger that has lost it. The API server refuses new
// numbers above the limit, so a grant that does not fit is adopted once the ledger has recorded its
// number. Until then it counts against the limit.
func (a *After) Adopt(e v1alpha1.LedgerEntry) {
	a.Seq = max(a.Seq, e.Seq)
	unrecorded, entries := e.Seq > a.recorded, len(a.All())
	if unrecorded && entries >= int(a.Limit) || entries >= v1alpha1.MaxGrants {
		a.differs = a.differs || unrecorded
		return
	}
	a.Adopted = append(a.Adopted, e)
}

// Own returns the policy's entries.
func (a *After) Own() []v1alpha1.LedgerEntry { return slices.Concat(a.Kept, a.Adopted, a.Granted) }

// All returns all entries, including those of other policies. Their order is the same in every
// policy's plan.
func (a *After) All() []v1alpha1.LedgerEntry {
	if len(a.Others) == 0 {
		return a.Own()
	}
	entries := slices.Concat(a.Others, a.Own())
	slices.SortStableFunc(entries, func(a, b v1alpha1.LedgerEntry) int { return cmp.Compare(a.Seq, b.Seq) })
	return entries
}

// Changed reports whether the ledger has to be written before the next plan.
func (a *After) Changed() bool { return a.differs || len(a.Granted)+len(a.Adopted) > 0 }

// Enter puts the ledger into the status of a policy, if that policy has it.
func (a *After) Enter(policy string, status *v1alpha1.RebootPolicyStatus) {
	if policy == a.Policy {
		status.Limit, status.Seq, status.Grants = a.Limit, a.Seq, a.All()
	}
}

// Together says how many slots of a shared limit are in use, or returns "" if the policy shares
// with nobody.
func (a *After) Together() string {
	if a.With == nil {
		return ""
	}
	return fmt.Sprintf("policies %s have %d of at most %d together", strings.Join(a.With, ", "), len(a.All()), a.Limit)
}
