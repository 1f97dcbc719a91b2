package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestReboots_Adopt: outstanding grants that no ledger holds are found again, before anything is granted (behaviours 16, 61).
func TestReboots_Adopt(t *testing.T) {
	const active = v1alpha1.GrantActive
	two := atMost("2")
	cases := map[string]struct {
		situation situation
		adopted   []v1alpha1.LedgerEntry
		granted   []string
		seq       int64
		// learned: the ledger must be written though no entry changes.
		learned bool
	}{
		"a grant that the ledger has lost": {
			situation: one(policy("workers"), needy("a", grant(7, active)), needy("b")),
			adopted:   []v1alpha1.LedgerEntry{entry("a", 7)}, seq: 7,
		},
		"a reboot that the ledger has lost, of a node that does not ask any more": {
			situation: one(policy("workers"), newHost("a", grant(7, active), progress(7, v1alpha1.PhaseRebooting)), needy("b")),
			adopted:   []v1alpha1.LedgerEntry{entry("a", 7)}, seq: 7,
		},
		"a cancelled grant under which the agent drains still": {
			situation: one(policy("workers"), needy("a", grant(7, v1alpha1.GrantCancelled), progress(7, v1alpha1.PhaseDraining))),
			adopted:   []v1alpha1.LedgerEntry{entry("a", 7)}, seq: 7,
		},
		"the number after the adopted ones": {
			situation: one(policy("workers", two), needy("a", grant(7, active)), needy("b")),
			adopted:   []v1alpha1.LedgerEntry{entry("a", 7)}, granted: []string{"b"}, seq: 8,
		},
		"no more than the limit takes, by number and name": {
			situation: one(policy("workers", two), needy("a", grant(9, active)), needy("c", grant(7, active)), needy("b", grant(7, active)), needy("d")),
			adopted:   []v1alpha1.LedgerEntry{entry("b", 7), entry("c", 7)}, seq: 9, learned: true,
		},
		"all, once the ledger knows their numbers": {
			situation: one(policy("workers", holding(9)), needy("a", grant(9, active)), needy("b", grant(7, active)), needy("c", grant(8, active))),
			adopted:   []v1alpha1.LedgerEntry{entry("b", 7), entry("c", 8), entry("a", 9)}, seq: 9,
		},
		"the numbers alone when the limit is 0": {
			situation: one(policy("workers", atMost("0")), needy("a", grant(7, active))), seq: 7, learned: true,
		},
		"a slot that is released in the same write": {
			situation: one(policy("workers", holding(1, entry("z", 1))),
				needy("a", grant(7, active)), newHost("z", grant(1, v1alpha1.GrantFinished))),
			adopted: []v1alpha1.LedgerEntry{entry("a", 7)}, seq: 7,
		},
		"not what the ledger holds, under whatever number": {
			situation: one(policy("workers", holding(8, entry("a", 8))), needy("a", grant(7, active))), seq: 8,
		},
		"not what is over": {
			situation: one(policy("workers"), newHost("a", grant(7, v1alpha1.GrantFinished), progress(7, v1alpha1.PhaseRebooting)),
				newHost("b", grant(8, v1alpha1.GrantCancelled)), newHost("c", grant(9, active), progress(9, v1alpha1.PhaseAborted))),
		},
		"not what another policy has given": {
			situation: situation{
				policies: []*v1alpha1.RebootPolicy{policy("workers", two, priority(1)), policy("other")},
				hosts:    []*host{needy("a", grant(7, active, givenBy("other")))},
			},
		},
		"what this policy gave a node that another one governs now": {
			situation: situation{
				policies: []*v1alpha1.RebootPolicy{policy("workers"), policy("other", selects("pool", "db"), priority(1))},
				hosts:    []*host{needy("a", grant(7, active), label("pool", "db")), needy("b")},
			},
			adopted: []v1alpha1.LedgerEntry{entry("a", 7)}, seq: 7,
		},
		"what a policy gave that is not there any more": {
			situation: one(policy("workers"), needy("a", grant(7, active, givenBy("gone")))),
			adopted:   []v1alpha1.LedgerEntry{entry("a", 7)}, seq: 7,
		},
		"not from a policy that is gone, where another one governs": {
			situation: situation{
				policies: []*v1alpha1.RebootPolicy{policy("workers"), policy("other", priority(1))},
				hosts:    []*host{needy("a", grant(7, active, givenBy("gone")))},
			},
		},
		"a reboot whose grant somebody removed": {
			situation: one(policy("workers"), newHost("a", progress(7, v1alpha1.PhaseRebooting))),
			adopted:   []v1alpha1.LedgerEntry{entry("a", 7)}, seq: 7,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			if diff := cmp.Diff(tc.adopted, p.Adopted); diff != "" {
				t.Errorf("adopted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.granted, names(p.Granted)); diff != "" {
				t.Errorf("granted (-want +got):\n%s", diff)
			}
			if p.Seq != tc.seq {
				t.Errorf("seq %d, want %d", p.Seq, tc.seq)
			}
			if want := len(p.Adopted)+len(p.Granted)+len(p.Released()) > 0 || tc.learned; p.LedgerChanges() != want {
				t.Errorf("ledger changes: %t", p.LedgerChanges())
			}
		})
	}
}

// Ledger is what stays, then what is found again, then what is new; and never what is released.
func TestPlan_Ledger(t *testing.T) {
	p := one(policy("workers", atMost("9"), holding(3, entry("a", 1), entry("b", 2), entry("c", 3))),
		needy("a", grant(1, v1alpha1.GrantActive)), newHost("b", grant(2, v1alpha1.GrantFinished)), needy("c", grant(3, v1alpha1.GrantActive)),
		needy("d", grant(4, v1alpha1.GrantActive)), needy("e"),
	).plan()
	if diff := cmp.Diff([]v1alpha1.LedgerEntry{entry("a", 1), entry("c", 3), entry("d", 4), entry("e", 5)}, p.Ledger()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
