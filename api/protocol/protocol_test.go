package protocol_test

import (
	"testing"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var (
	// twoManagers is the search that the design relies on. Two managers act on stale reads, two
	// nodes share a limit of one, and there are two grants. Every process may die at any line.
	twoManagers = model{policies: 1, leaders: 2, nodes: 2, limit: 1, grants: 2}
	// twoPolicies has one node that moves between two policies. Both may grant its reboot, and
	// their numbers are unrelated.
	twoPolicies = model{policies: 2, leaders: 2, nodes: 1, limit: 1, grants: 2}
	// byHand lets somebody reboot the host at any time, outside the protocol.
	byHand = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, byHand: true}
	// recreated lets somebody delete the Node at any time. The Node that the kubelet then registers has
	// not seen any grant.
	recreated = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 3, recreated: true}
	// withdrawn lets the managers withdraw grants that they could not publish, and adopt grants
	// that a stopped manager publishes late.
	withdrawn = model{policies: 1, leaders: 2, nodes: 2, limit: 1, grants: 2, withdraws: true}
	// shared is twoManagers with one policy for each node. The second policy shares the limit of
	// the first.
	shared = model{policies: 2, leaders: 2, nodes: 2, limit: 1, grants: 2, shared: true}
	// broken lets somebody make the progress unreadable at any time.
	broken = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, breaks: true}
	// cordons lets an administrator cordon and uncordon the Node at any time. In untracked this
	// happens only outside of an attempt, because there only the progress shows who cordoned the
	// node.
	cordons   = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, cordons: true}
	untracked = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, cordons: true, untracked: true}
	// restored lets somebody restore the machine to a snapshot of its previous boot at any time.
	// The Node keeps its progress.
	restored = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, restores: true}
	// refused has a logind that either refuses for ever or agrees and takes some time. In sameBoot
	// the host also keeps its boot ID.
	refused  = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, refuses: true}
	sameBoot = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, refuses: true, sameBoot: true}
	// oneManager is byHand with one manager and two nodes, which is a small search.
	oneManager = model{policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, byHand: true}
)

// TestProtocol_KeepsTheLimit searches every interleaving of the functions that ship. The manager's
// are Publish, Cancel, Finish, Releasable, Withdraw, Withdrawn, Adopt and Enter. The agent's are
// Listed, Start, Commit, MayCall, NoteBoot, Abort, Retreat and Repair. Both call Uncordons.
//
// In every world all disrupted nodes are in the ledger and within the limit, and a node that is
// down can be put back in service (behaviours 16, 17, 61). An administrator's cordon is never
// undone (behaviours 43, 44).
func TestProtocol_KeepsTheLimit(t *testing.T) {
	cases := map[string]struct {
		model model
		// atLeast is slightly below the number of worlds. Fewer worlds mean that the model has lost
		// moves and could not find a fault any more.
		atLeast int
	}{
		"two managers, two nodes, one of them at a time":      {twoManagers, 900_000},
		"a node that moves between two policies":              {twoPolicies, 900_000},
		"a host that is rebooted by hand (behaviour 50)":      {byHand, 50_000},
		"a Node that is registered again":                     {recreated, 600_000},
		"one manager, and hosts rebooted by hand":             {oneManager, 50_000},
		"grants that cannot be published":                     {withdrawn, 6_000_000},
		"two policies that share one limit":                   {shared, 1_000_000},
		"an unreadable progress":                              {broken, 400_000},
		"a cordon of an administrator":                        {cordons, 1_000_000},
		"a cordon of an administrator, without managedFields": {untracked, 400_000},
		"a machine that is restored to a snapshot":            {restored, 20_000},
		"a logind that refuses":                               {refused, 10_000},
		"a host that keeps its boot ID":                       {sameBoot, 10_000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := search(tc.model, capped())
			t.Logf("%d worlds, not counting those that differ in who is who only", len(s.worlds))
			if s.wrong {
				t.Fatal(s.path())
			}
			if capped() == 0 && len(s.worlds) < tc.atLeast {
				t.Errorf("fewer than %d worlds: the model has lost moves", tc.atLeast)
			}
		})
	}
}

// capped returns the largest number of worlds to visit, or 0 for all.
func capped() int {
	if testing.Short() {
		return 30_000
	}
	return 0
}

// TestProtocol_NeedsEachGuard removes one guard at a time. The search must then find a violation,
// which shows that it can find one at all.
func TestProtocol_NeedsEachGuard(t *testing.T) {
	unpublished := func(r protocol.Record, e v1alpha1.LedgerEntry) bool { return r.Grant == nil || r.Grant.Seq < e.Seq }
	cancelled := func(r protocol.Record, e v1alpha1.LedgerEntry) bool {
		return r.Grant != nil && r.Grant.Seq == e.Seq && r.Grant.State == protocol.GrantCancelled
	}
	cases := map[string]struct {
		model  model
		ablate func(*model)
	}{
		"noderv: the Node's resourceVersion":                             {twoManagers, func(m *model) { m.noNodeVersion = true }},
		"cas: the ledger's resourceVersion":                              {twoManagers, func(m *model) { m.noLedgerVersion = true }},
		"order: a grant is cancelled on the Node before its release":     {twoManagers, func(m *model) { m.alsoReleasable = unpublished }},
		"cancelwait: a release waits until the agent cannot start":       {twoManagers, func(m *model) { m.alsoReleasable = cancelled }},
		"owner: a cancelled grant keeps its policy's name":               {twoPolicies, func(m *model) { m.renames = true }},
		"uid: the ledger has the UID of the Node":                        {recreated, func(m *model) { m.noUID = true }},
		"gone: a live read shows that the Node is another one":           {recreated, func(m *model) { m.believesGone = true }},
		"busy: a newer grant waits until an older one is over":           {twoPolicies, func(m *model) { m.publishesWhileBusy = true }},
		"mark: a grant is withdrawn in the ledger before its release":    {withdrawn, func(m *model) { m.noMark = true }},
		"look: a live read after the mark does not show the grant":       {withdrawn, func(m *model) { m.noLook = true }},
		"check: the agent reads the ledger before it begins":             {withdrawn, func(m *model) { m.noCheck = true }},
		"shared: two policies that share a limit write one ledger":       {shared, func(m *model) { m.ownLedger = true }},
		"sharedcas: that ledger's resourceVersion":                       {shared, func(m *model) { m.noLedgerVersion = true }},
		"repair: not while the host may be going down":                   {broken, func(m *model) { m.repairsCommitted = true }},
		"cordon: managedFields show an administrator's cordon":           {cordons, func(m *model) { m.noOwner = true }},
		"before: progress shows that the agent has not cordoned":         {untracked, func(m *model) { m.anyonesCordon = true }},
		"live: logind is called only while the grant is in force":        {restored, func(m *model) { m.noLive = true }},
		"going: an attempt is not given up while the host is going down": {refused, func(m *model) { m.blind = true }},
		"adopt: a grant that has not begun is adopted as withdrawn":      {withdrawn, func(m *model) { m.adoptsUnmarked = true }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.ablate(&tc.model)
			s := search(tc.model, 0)
			if !s.wrong {
				t.Fatalf("nothing is wrong in %d worlds", len(s.worlds))
			}
			t.Log("without it: " + s.path())
		})
	}
}

// TestProtocol_LeadsBack shows that from every world there is a way back to an empty ledger and all
// nodes in service, without a cordon.
func TestProtocol_LeadsBack(t *testing.T) {
	cases := map[string]model{
		"one manager, and hosts rebooted by hand": oneManager,
		"a logind that refuses":                   {policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, refuses: true},
		"a host that keeps its boot ID":           {policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, refuses: true, sameBoot: true},
		"a machine that is restored":              {policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, restores: true},
		"a Node that is registered again":         {policies: 1, leaders: 1, nodes: 1, limit: 1, grants: 3, recreated: true, byHand: true},
		"grants that cannot be published":         {policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, withdraws: true},
		"two policies that share one limit":       {policies: 2, leaders: 1, nodes: 2, limit: 1, grants: 2, shared: true},
		"two policies":                            {policies: 2, leaders: 1, nodes: 1, limit: 1, grants: 3, byHand: true},
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			if capped() != 0 {
				t.Skip("needs all worlds")
			}
			s := search(m, 0)
			if i := s.lost(); i >= 0 {
				t.Fatalf("no way leads back. %s", s.pathTo(i))
			}
		})
	}
}
