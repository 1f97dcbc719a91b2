package plan_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// TestReboots_Adopt checks that outstanding grants that no ledger holds are found again before
// anything is granted (behaviours 16, 61).
func TestReboots_Adopt(t *testing.T) {
	const active = protocol.GrantActive
	two := atMost("2")
	// shared returns a policy that had its own ledger up to number 9 and now shares the limit of
	// another one, which is used up.
	shared := func(ledger func(*v1alpha1.RebootPolicy)) situation {
		return situation{
			policies: []*v1alpha1.RebootPolicy{
				policy("gpu", selects("pool", "gpu"), sharing("workers"), holding(9)), policy("workers", selects("pool", "cpu"), ledger),
			},
			hosts: []*host{needy("gpu-1", label("pool", "gpu"), grant(9, active, givenBy("gpu"))), newHost("cpu-1", label("pool", "cpu"))},
		}
	}
	a := []v1alpha1.LedgerEntry{entry("a", 7)}
	cases := map[string]struct {
		situation situation
		adopted   []v1alpha1.LedgerEntry
		granted   []string
		seq       int64
		// learned is true if the ledger must be written although no entry changes.
		learned bool
	}{
		"a grant that the ledger has lost": {situation: one(policy("workers"), needy("a", grant(7, active)), needy("b")), adopted: a, seq: 7},
		"a reboot that the ledger has lost, of a node that no longer needs it": {
			situation: one(policy("workers"), newHost("a", grant(7, active), progress(7, protocol.PhaseRebooting)), needy("b")), adopted: a, seq: 7,
		},
		"a cancelled grant under which the agent still drains": {
			situation: one(policy("workers"), needy("a", grant(7, protocol.GrantCancelled), progress(7, protocol.PhaseDraining))), adopted: a, seq: 7,
		},
		"the number after the adopted ones": {
			situation: one(policy("workers", two), needy("a", grant(7, active)), needy("b")), adopted: a, granted: []string{"b"}, seq: 8,
		},
		"no more than the limit allows, by number and name": {
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
				needy("a", grant(7, active)), newHost("z", grant(1, protocol.GrantFinished))),
			adopted: a, seq: 7,
		},
		"not a grant of a node that the ledger holds under a higher number": {
			situation: one(policy("workers", holding(8, entry("a", 8))), needy("a", grant(7, active))), seq: 8,
		},
		"not grants that are over": {
			situation: one(policy("workers"), newHost("a", grant(7, protocol.GrantFinished), progress(7, protocol.PhaseRebooting)),
				newHost("b", grant(8, protocol.GrantCancelled)), newHost("c", grant(9, active), progress(9, protocol.PhaseAborted))),
		},
		"not a grant of another policy": {
			situation: one(policy("workers", two, priority(1)), needy("a", grant(7, active, givenBy("other")))).with(policy("other")),
		},
		"a grant of this policy on a node that another policy governs now": {
			situation: one(policy("workers"), needy("a", grant(7, active), label("pool", "db")), needy("b")).with(policy("other", selects("pool", "db"), priority(1))),
			adopted:   a, seq: 7,
		},
		"not from a node that another policy selects, even if the grant names this policy": {
			situation: one(policy("workers", selects("pool", "web")), needy("a", grant(7, active), label("pool", "db")), needy("b", label("pool", "web"))).with(policy("other", selects("pool", "db"))),
			granted:   []string{"b"}, seq: 1,
		},
		"a node that no policy governs": {
			situation: one(policy("workers", selects("pool", "web")), needy("a", grant(7, active), progress(7, protocol.PhaseRebooting)), needy("b", label("pool", "web"))),
			granted:   []string{"b"}, seq: 1,
		},
		"a grant of this policy while it is being deleted": {situation: one(policy("workers", deleted), needy("a", grant(7, active))), adopted: a, seq: 7},
		"a grant dated in the future counts from now, because its agent accepts it": {
			situation: one(policy("workers"), needy("a", grant(7, active, grantedAt(24*time.Hour))), needy("b")), adopted: a, seq: 7,
		},
		"not progress dated in the future without a grant": {
			situation: one(policy("workers"), newHost("a", progress(7, protocol.PhaseRebooting, phaseAt(24*time.Hour))), needy("b")),
			granted:   []string{"b"}, seq: 1,
		},
		"a grant of a policy that no longer exists": {
			situation: one(policy("workers"), needy("a", grant(7, active, givenBy("gone")))), adopted: a, seq: 7,
		},
		"a grant of a deleted policy on a node that another policy governs": {
			situation: one(policy("workers"), needy("a", grant(7, active, givenBy("gone")))).with(policy("other", priority(1))),
		},
		"the policy's own numbers, which the shared ledger does not have yet": {
			situation: shared(holding(1, entry("cpu-1", 1))), seq: 9, learned: true,
		},
		"a grant whose number the shared ledger has": {
			situation: shared(holding(9, entry("cpu-1", 1))), adopted: []v1alpha1.LedgerEntry{grantedFor("gpu", entry("gpu-1", 9))}, seq: 9,
		},
		"a reboot whose grant somebody removed": {
			situation: one(policy("workers"), newHost("a", progress(7, protocol.PhaseRebooting))), adopted: a, seq: 7,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			adopted := slices.Clone(tc.adopted)
			for i, e := range adopted {
				if node := nodeNamed(tc.situation.snapshot(), e.Node); node.Progress == nil || node.Progress.Seq < e.Seq {
					adopted[i].WithdrawnAt = &metav1.Time{Time: evening} // another node may have its slot by now
				}
			}
			same(t, "adopted", adopted, p.Ledger.Adopted)
			same(t, "granted", tc.granted, names(p.Ledger.Granted))
			same(t, "seq", tc.seq, p.Ledger.Seq)
			same(t, "ledger changes", len(p.Ledger.Adopted)+len(p.Ledger.Granted)+len(p.Released()) > 0 || tc.learned, p.Ledger.Changed())
		})
	}
}

// TestPlan_Ledger checks the ledger after a plan: entries that stay, then adopted ones, then new
// ones, and never released ones.
func TestPlan_Ledger(t *testing.T) {
	p := one(policy("workers", atMost("9"), holding(3, entry("a", 1), entry("b", 2), entry("c", 3))),
		needy("a", grant(1, protocol.GrantActive)), newHost("b", grant(2, protocol.GrantFinished)), needy("c", grant(3, protocol.GrantActive)),
		needy("d", grant(4, protocol.GrantActive)), needy("e", label(v1alpha1.LabelOSVersion, "1.0")),
	).plan()
	found := entry("d", 4)
	found.WithdrawnAt = &metav1.Time{Time: evening}
	granted := entry("e", 5)
	granted.NeedSince, granted.OSVersion = metav1.NewTime(evening.Add(-time.Hour)), "1.0"
	same(t, "ledger", []v1alpha1.LedgerEntry{entry("a", 1), entry("c", 3), found, granted}, p.Ledger.Own())
}

// TestReboots_AdoptsNoMoreThanAStatusHolds checks that a ledger adopts no more entries than a
// status may hold.
func TestReboots_AdoptsNoMoreThanAStatusHolds(t *testing.T) {
	s := one(policy("workers", holding(9)))
	for i := range v1alpha1.MaxGrants + 1 {
		s.hosts = append(s.hosts, needy(fmt.Sprintf("worker-%d", i), grant(9, protocol.GrantActive)))
	}
	p := s.plan()
	if len(p.Ledger.Own()) != v1alpha1.MaxGrants {
		t.Errorf("%d entries, want %d", len(p.Ledger.Own()), v1alpha1.MaxGrants)
	}
	s.policies[0].Status.Grants = p.Ledger.Own()
	if p := s.plan(); p.Ledger.Changed() {
		t.Errorf("the full ledger changes: %d adopted, %d granted, %d released", len(p.Ledger.Adopted), len(p.Ledger.Granted), len(p.Released()))
	}
}

// TestReboots_Strays checks that a policy finishes a grant that names it even on a node outside its
// ledger and selector. So a node that moved to another policy while the ledger was lost is not left
// cordoned.
func TestReboots_Strays(t *testing.T) {
	const active = protocol.GrantActive
	type step struct {
		Action underway.Action
		Reason v1alpha1.Reason
	}
	for name, tc := range map[string]struct {
		node *host
		want step
	}{
		"it is cancelled before the drain": {needy("a", label("pool", "db"), grant(7, active)), step{underway.CancelGrant, v1alpha1.ReasonNoPolicy}},
		"a drain goes on": {
			needy("a", label("pool", "db"), grant(7, active), progress(7, protocol.PhaseDraining)), step{underway.Wait, v1alpha1.ReasonGranted},
		},
		"a reboot is finished": {
			newHost("a", label("pool", "db"), grant(7, active, grantedAt(-time.Hour)), progress(7, protocol.PhaseRebooting, phaseAt(-50*minute)), rebooted(-40*minute, -40*minute)),
			step{underway.FinishGrant, v1alpha1.ReasonGranted},
		},
		"a reboot that does not end is reported": {
			newHost("a", label("pool", "db"), grant(7, active, grantedAt(-time.Hour)), progress(7, protocol.PhaseRebooting, phaseAt(-50*minute)), notReady),
			step{underway.Wait, v1alpha1.ReasonRebootTimedOut},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy("workers", selects("pool", "web"), maxFailures(1))
			s := one(p, tc.node, needy("b", label("pool", "web"))).with(policy("other", selects("pool", "db")))
			got := s.plan()
			if len(got.Unlisted) != 1 {
				t.Fatalf("unlisted: %+v", got.Unlisted)
			}
			same(t, "unlisted", tc.want, step{got.Unlisted[0].Action, got.Unlisted[0].Reason})
			again := got.Again(s.snapshot(), new(tc.node.view()), got.Unlisted[0].Entry)
			same(t, "by a newer reading", got.Unlisted[0].Action, again.Action)
			if diff := cmp.Diff([]string{"b"}, names(got.Ledger.Granted)); diff != "" || got.Halt.Halted || got.Counts.Unavailable != 1 {
				t.Errorf("granted (-want +got):\n%s%+v %+v", diff, got.Halt, got.Counts)
			}
			s.policies[0], s.policies[1] = s.policies[1], s.policies[0]
			if other := s.plan(); other.Counts.Unavailable != 1 || len(other.Ledger.Granted)+len(other.Ledger.Adopted)+len(other.Unlisted) > 0 {
				t.Errorf("the policy that governs the node counts it: %+v", other.Counts)
			}
		})
	}
}

// TestReboots_NumbersOfAFormerPolicy checks that numbers far above all ledgers are credible if
// several nodes agree, as after a deleted policy. One node alone cannot raise the numbers.
func TestReboots_NumbersOfAFormerPolicy(t *testing.T) {
	const far = 1 << 40
	over := func(name string, seq int64) *host {
		return needy(name, grant(seq, protocol.GrantFinished, grantedAt(-2*time.Hour)))
	}
	for name, tc := range map[string]struct {
		hosts   []*host
		known   *v1alpha1.RebootPolicy
		granted []string
		seq     int64
	}{
		"a policy that is applied again goes on with its nodes": {
			hosts: []*host{over("a", far), over("b", far+1), over("c", far+9), over("d", 3), needy("e")}, granted: []string{"a", "b", "c", "d", "e"}, seq: far + 12,
		},
		"one node alone does not count": {
			hosts: []*host{over("a", far), over("b", 4), over("c", 3), needy("d")}, granted: []string{"b", "c", "d"}, seq: 7,
		},
		"a number far from those of a former policy's nodes": {
			hosts: []*host{over("a", far), over("b", far+1), over("c", 2*far)}, granted: []string{"a", "b"}, seq: far + 2,
		},
		"a node from another policy with numbers that high": {
			hosts: []*host{over("a", far)}, known: policy("other", selects("pool", "db"), holding(far)), granted: []string{"a"}, seq: far + 1,
		},
		"several nodes with numbers that leave none above them": {
			hosts: []*host{over("a", math.MaxInt64), over("b", math.MaxInt64-1), over("c", 1<<62+1), needy("d")}, granted: []string{"d"}, seq: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers", atMost("9")), tc.hosts...)
			if tc.known != nil {
				s.policies = append(s.policies, tc.known)
			}
			p := s.plan()
			granted := names(p.Ledger.Granted)
			slices.Sort(granted)
			same(t, "granted", tc.granted, granted)
			same(t, "seq", tc.seq, p.Ledger.Seq)
		})
	}
}
