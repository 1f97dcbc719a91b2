package protocol_test

import (
	"testing"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var (
	// twoManagers is the search that the design rests on. It has two managers that act on stale readings, two nodes of which one may be
	// down, and two grants. All may die at any line.
	twoManagers = model{policies: 1, leaders: 2, nodes: 2, limit: 1, grants: 2}
	// twoPolicies may both grant a reboot of one node, because it moves from one to the other. Their numbers are unrelated.
	twoPolicies = model{policies: 2, leaders: 2, nodes: 1, limit: 1, grants: 2}
	// byHand has somebody reboot the host at any time, behind everybody's back.
	byHand = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, byHand: true}
	// anew has somebody delete the Node at any time, and its kubelet register it anew: it has seen no number then.
	anew = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 3, anew: true}
	// withdrawn has the managers withdraw grants that they could not publish, and adopt those that a stopped one publishes late.
	withdrawn = model{policies: 1, leaders: 2, nodes: 2, limit: 1, grants: 2, withdraws: true}
	// shared is twoManagers with a policy for each node, of which one shares the limit of the other.
	shared = model{policies: 2, leaders: 2, nodes: 2, limit: 1, grants: 2, shared: true}
	// broken has somebody write over the progress at any time.
	broken = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, breaks: true}
	// cordons has an administrator cordon and uncordon the Node at any time. untracked has him do so only while no attempt is under way,
	// because nothing but the progress shows whose cordon it is.
	cordons   = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, cordons: true}
	untracked = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, cordons: true, untracked: true}
	// restored has somebody restore the machine to a snapshot of its previous boot at any time. The progress of then is still there.
	restored = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, restores: true}
	// refused has a logind that may refuse for ever, and takes its time otherwise. sameBoot is a host that keeps its boot ID.
	refused  = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, refuses: true}
	sameBoot = model{policies: 1, leaders: 2, nodes: 1, limit: 1, grants: 2, refuses: true, sameBoot: true}
	// oneManager is the same with two nodes, and small.
	oneManager = model{policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, byHand: true}
)

// TestProtocol_KeepsTheLimit searches every interleaving of the functions that ship. The manager's are Publish, Cancel, Finish,
// Releasable, Withdraw, Withdrawn, Adopt and Enter. The agent's are Listed, Start, Commit, MayCall, NoteBoot, Abort, Retreat and Repair. Both call Uncordons. No
// world has a disrupted node outside the ledger, more than the limit, or a node down that nobody could put back in service (behaviours
// 16, 17, 61). In none is an administrator's cordon undone (behaviours 43, 44).
func TestProtocol_KeepsTheLimit(t *testing.T) {
	cases := map[string]struct {
		model model
		// atLeast is a little less than the number of worlds: a model that loses moves finds nothing any more.
		atLeast int
	}{
		"two managers, two nodes, one of them at a time": {twoManagers, 900_000},
		"a node that moves between two policies":         {twoPolicies, 900_000},
		"a host that is rebooted by hand (behaviour 50)": {byHand, 50_000},
		"a Node that is registered anew":                 {anew, 600_000},
		"one manager, and hosts rebooted by hand":        {oneManager, 50_000},
		"grants that cannot be published":                {withdrawn, 6_000_000},
		"two policies that share one limit":              {shared, 1_000_000},
		"a progress that nobody can read":                {broken, 400_000},
		"a cordon of an administrator":                   {cordons, 1_000_000},
		"such a cordon, without managedFields":           {untracked, 400_000},
		"a machine that is restored to a snapshot":       {restored, 20_000},
		"a logind that refuses":                          {refused, 10_000},
		"a host that keeps its boot ID":                  {sameBoot, 10_000},
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

// capped is how many worlds are visited at most; 0: all.
func capped() int {
	if testing.Short() {
		return 30_000
	}
	return 0
}

// TestProtocol_NeedsEachGuard takes one guard away at a time. Then the search must find what breaks: else it could find
// nothing at all.
func TestProtocol_NeedsEachGuard(t *testing.T) {
	unpublished := func(r protocol.Record, e v1alpha1.LedgerEntry) bool { return r.Grant == nil || r.Grant.Seq < e.Seq }
	cancelled := func(r protocol.Record, e v1alpha1.LedgerEntry) bool {
		return r.Grant != nil && r.Grant.Seq == e.Seq && r.Grant.State == protocol.GrantCancelled
	}
	cases := map[string]struct {
		model  model
		ablate func(*model)
	}{
		"noderv: the Node's resourceVersion":                          {twoManagers, func(m *model) { m.noNodeVersion = true }},
		"cas: the ledger's resourceVersion":                           {twoManagers, func(m *model) { m.noLedgerVersion = true }},
		"order: a grant is cancelled on the Node before its release":  {twoManagers, func(m *model) { m.alsoReleasable = unpublished }},
		"cancelwait: a release waits until the agent cannot start":    {twoManagers, func(m *model) { m.alsoReleasable = cancelled }},
		"owner: a cancelled grant keeps its policy's name":            {twoPolicies, func(m *model) { m.renames = true }},
		"uid: the ledger names the very Node":                         {anew, func(m *model) { m.noUID = true }},
		"gone: a live reading shows that the Node is another one":     {anew, func(m *model) { m.believesGone = true }},
		"busy: a newer grant waits until an older one is over":        {twoPolicies, func(m *model) { m.publishesWhileBusy = true }},
		"mark: a grant is withdrawn in the ledger before its release": {withdrawn, func(m *model) { m.noMark = true }},
		"look: a live reading after the mark does not show the grant": {withdrawn, func(m *model) { m.noLook = true }},
		"check: the agent reads the ledger before it begins":          {withdrawn, func(m *model) { m.noCheck = true }},
		"shared: two policies that share a limit write one ledger":    {shared, func(m *model) { m.ownLedger = true }},
		"sharedcas: that ledger's resourceVersion":                    {shared, func(m *model) { m.noLedgerVersion = true }},
		"repair: not where the host may be going down":                {broken, func(m *model) { m.repairsCommitted = true }},
		"cordon: managedFields show that it is an administrator's":    {cordons, func(m *model) { m.noOwner = true }},
		"before: progress shows that the agent has not cordoned":      {untracked, func(m *model) { m.anyonesCordon = true }},
		"live: logind is called only while the grant is in force":     {restored, func(m *model) { m.noLive = true }},
		"going: it is not given up while the host is going down":      {refused, func(m *model) { m.blind = true }},
		"adopt: a grant that has not begun is adopted as withdrawn":   {withdrawn, func(m *model) { m.adoptsUnmarked = true }},
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

// TestProtocol_LeadsBack: whatever happened, there is a way back to an empty ledger and all nodes in service, without a cordon.
func TestProtocol_LeadsBack(t *testing.T) {
	cases := map[string]model{
		"one manager, and hosts rebooted by hand": oneManager,
		"a logind that refuses":                   {policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, refuses: true},
		"a host that keeps its boot ID":           {policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, refuses: true, sameBoot: true},
		"a machine that is restored":              {policies: 1, leaders: 1, nodes: 2, limit: 1, grants: 2, restores: true},
		"a Node that is registered anew":          {policies: 1, leaders: 1, nodes: 1, limit: 1, grants: 3, anew: true, byHand: true},
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
