package plan_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// shown is an earlier condition RebootPermitted.
var shown = nodeCondition(v1alpha1.NodeRebootPermitted, corev1.ConditionFalse, 0)

// TestReboots_Decisions checks which nodes a policy answers for, and its decisions. Without a
// decision the condition stays as it is.
func TestReboots_Decisions(t *testing.T) {
	const active = protocol.GrantActive
	waits := plan.Decision{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonPaused, Message: "policy workers is paused"}
	on := func(node string, d plan.Decision) plan.Decision {
		d.Node = node
		return d
	}
	granted := plan.Decision{Node: "a", Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonGranted, Message: "granted by policy workers, number 1"}
	conflict := plan.Decision{
		Node: "a", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonPolicyConflict,
		Message: "policies workers, zoo select the node with the same priority; raise spec.priority of one",
	}
	rivals := []*v1alpha1.RebootPolicy{policy("workers"), policy("zoo")}
	cases := map[string]struct {
		situation situation
		want      []plan.Decision
	}{
		"waiting nodes, by name":       {one(policy("workers", paused(nil, "")), needy("b"), needy("a")), []plan.Decision{on("a", waits), on("b", waits)}},
		"nothing on a node in service": {one(policy("workers"), newHost("a")), nil},
		"nothing while the engine is unreachable": {
			one(policy("workers"), newHost("a", nodeCondition(v1alpha1.NodeRebootRequired, corev1.ConditionUnknown, 0))), nil,
		},
		"a condition that no longer applies is removed": {one(policy("workers"), newHost("a", shown)), []plan.Decision{{Node: "a"}}},
		"a node that this plan grants shows the grant":  {one(policy("workers"), needy("a")), nil},
		"a node whose grant is due shows the grant":     {one(policy("workers", holding(1, entry("a", 1))), needy("a", shown)), nil},
		"a node with a grant":                           {one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active))), []plan.Decision{granted}},
		"a rebooting node whose agent has removed the need and the answer": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", grant(1, active), progress(1, protocol.PhaseRebooting))), nil,
		},
		"a rebooting node whose agent has kept the answer": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", shown, grant(1, active), progress(1, protocol.PhaseRebooting))), []plan.Decision{granted},
		},
		"a node that is not back in time": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", notReady, grant(1, active, grantedAt(-time.Hour)), progress(1, protocol.PhaseRebooting, phaseAt(-time.Hour)))),
			[]plan.Decision{{
				Node: "a", Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonRebootTimedOut, MachineLost: true,
				Message: "the node was sent to reboot at Mon 2026-06-01 21:00:00 UTC and was not back within 30m0s; " +
					"it keeps its slot. Check the machine; once you are sure it is off, delete the Node to free the slot",
			}},
		},
		"a node in an attempt whose progress cannot be read": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active), annotated(v1alpha1.AnnotationProgress, "null"))),
			[]plan.Decision{{
				Node: "a", Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonRecordUnreadable,
				Message: "annotation reboot-operator.io/progress: null is not a record; the node keeps its slot until the agent repairs the record",
			}},
		},
		"a cancelled grant permits nothing, even while the agent still drains": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, protocol.GrantCancelled), progress(1, protocol.PhaseDraining))), nil,
		},
		"a grant that is about to be cancelled": {
			one(policy("workers", paused(nil, ""), holding(1, entry("a", 1))), needy("a", grant(1, active))), nil,
		},
		"an entry that is about to be released": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", shown, grant(1, protocol.GrantFinished))), nil,
		},
		"an entry without a Node":            {one(policy("workers", holding(1, entry("a", 1)))), nil},
		"a grant that was found on the node": {one(policy("workers"), needy("a", shown, grant(1, active))), nil},
		"a node that another policy reboots": {
			one(policy("workers"), needy("a", shown, grant(1, active, givenBy("other")))).with(policy("other", selects("pool", "other"))), nil,
		},
		"a node of another policy":                 {one(policy("workers"), needy("a", shown)).with(policy("other", priority(1))), nil},
		"a conflict, reported by the first policy": {situation{policies: rivals, hosts: hosts(needy, "a")}, []plan.Decision{conflict}},
		"a conflict is not reported by the second": {one(rivals[1], needy("a")).with(rivals[0]), nil},
		"a conflict about a node that a third policy reboots": {
			situation{
				policies: append(rivals[:2:2], policy("third", selects("pool", "third"))),
				hosts:    []*host{needy("a", grant(1, active, givenBy("third")))},
			}, nil,
		},
		"a node whose before-hooks run": {
			one(policy("workers", hooked("example.com/a"), holding(1, entry("a", 1))), needy("a", phase(1, v1alpha1.HooksBefore, 0))),
			[]plan.Decision{{Node: "a", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForHook, Message: `waiting for annotations to be "true" by Mon 2026-06-01 23:00:00 UTC: example.com/a`}},
		},
		"a node whose after-hooks run": {
			one(policy("workers", hooked("example.com/a"), holding(1, entry("a", 1))), newHost("a", grant(1, active, grantedAt(-time.Hour)),
				progress(1, protocol.PhaseRebooting, phaseAt(-time.Hour)), rebooted(-40*minute, -40*minute), phase(1, v1alpha1.HooksAfter, 0))),
			[]plan.Decision{{Node: "a", Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonWaitingForHook, Message: `waiting for annotations to be "true" by Mon 2026-06-01 23:00:00 UTC: example.com/a`}},
		},
		"a conflict about a node that needs no reboot":          {situation{policies: rivals, hosts: hosts(newHost, "a")}, nil},
		"a conflict about a node that no longer needs a reboot": {situation{policies: rivals, hosts: hosts(newHost, "a", shown)}, []plan.Decision{{Node: "a"}}},
		"a conflict about a node that reboots is reported when it is back": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active), progress(1, protocol.PhaseDraining))).with(policy("zoo")), []plan.Decision{granted},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "decisions", tc.want, tc.situation.plan().Decisions, unasked)
		})
	}
}

// TestReboots_AMachineThatIsReadyHasNotFailed checks that only machines that are down get condition
// RebootFailed, because health controllers power those off. A node that is Ready still runs the
// previous boot, because an inhibitor delays the reboot for example, or shows unreadable progress.
func TestReboots_AMachineThatIsReadyHasNotFailed(t *testing.T) {
	const none, failed = corev1.ConditionStatus(""), corev1.ConditionTrue
	long := grant(1, protocol.GrantActive, grantedAt(-2*time.Hour))
	reboots, unreadable := progress(1, protocol.PhaseRebooting, phaseAt(-2*time.Hour)), annotated(v1alpha1.AnnotationProgress, "?")
	for name, tc := range map[string]struct {
		node []func(*host)
		want corev1.ConditionStatus
	}{
		"it is down":                                   {options(long, reboots, notReady), failed},
		"it is Ready on the previous boot":             {options(long, reboots), none},
		"its progress cannot be read, and it is down":  {options(long, unreadable, notReady), failed},
		"its progress cannot be read, and it is Ready": {options(long, unreadable), none},
		"it is up, and its agent does not report":      {options(long, reboots, bootID("two"), notReportedBack(0)), none},
	} {
		t.Run(name, func(t *testing.T) {
			decisions := one(policy("workers", holding(1, entry("a", 1))), newHost("a", tc.node...)).plan().Decisions
			if len(decisions) != 1 || decisions[0].Reason == v1alpha1.ReasonGranted || decisions[0].RebootFailed().Status != tc.want {
				t.Errorf("decided %+v, want RebootFailed %q", decisions, tc.want)
			}
		})
	}
}

// TestUngoverned checks the decisions about nodes that no policy selects, by name.
func TestUngoverned(t *testing.T) {
	s := situation{
		policies: []*v1alpha1.RebootPolicy{policy("web", selects("pool", "web")), policy("rival", selects("pool", "web")), policy("db", selects("pool", "db"), holding(2, entry("listed", 2)))},
		hosts: []*host{
			needy("waits"), newHost("in-service"), newHost("shown", shown), needy("governed", label("pool", "db")),
			needy("disputed", label("pool", "web")), needy("reboots", grant(1, protocol.GrantActive, givenBy("db"))),
			newHost("abandoned", shown, grant(1, protocol.GrantActive), progress(1, protocol.PhaseRebooting)), newHost("listed", grant(2, protocol.GrantActive)),
			newHost("fought over", label("pool", "web"), shown, grant(1, protocol.GrantActive, givenBy("gone")), progress(1, protocol.PhaseRebooting)),
		},
	}.snapshot()
	want := []plan.Decision{
		{
			Node: "abandoned", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoPolicy,
			Message: "the policy that granted this reboot was deleted, and no policy selects the node; create a RebootPolicy that selects it",
		},
		{
			Node: "fought over", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonPolicyConflict,
			Message: "the policy that granted this reboot was deleted, and policies rival, web select the node with the same priority; raise spec.priority of one",
		},
		{Node: "shown"},
		{Node: "waits", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoPolicy, Message: "no RebootPolicy selects this node"},
	}
	same(t, "decisions", want, plan.Ungoverned(s.Governor, s.Nodes))
}

// ungoverned returns the situation without a policy that decides.
func ungoverned(s situation) plan.Snapshot {
	snapshot := s.snapshot()
	snapshot.Policy = nil
	return snapshot
}

// blockingCheck returns the check that blocks and how many passed before it. Later ones must not
// have been reached.
func blockingCheck(t *testing.T, checks []plan.Outcome) (v1alpha1.Reason, int) {
	t.Helper()
	var check v1alpha1.Reason
	passed := 0
	for _, c := range checks {
		want := plan.Passed
		switch {
		case check != "":
			want = plan.NotReached
		case c.Result == plan.Blocks:
			check, want = c.Check, plan.Blocks
		default:
			passed++
		}
		if c.Result != want || (c.Message == "") != (want == plan.NotReached) {
			t.Errorf("%s: %s %q, want %s", c.Check, c.Result, c.Message, want)
		}
	}
	return check, passed
}

// TestExplain checks the explanation of worker-1, with the message of the plan.
func TestExplain(t *testing.T) {
	closed := window.State{OpensAt: evening.Add(24 * time.Hour)}
	cp, other := label(record.ControlPlaneLabels[0], ""), label("pool", "other")
	cases := map[string]struct {
		snapshot plan.Snapshot
		reason   v1alpha1.Reason
		// check is the check that blocks, after passed others.
		check  v1alpha1.Reason
		passed int
		until  time.Time
		due    bool
		reboot underway.Action
	}{
		"a node that needs no reboot": {snapshot: one(policy("workers"), newHost("worker-1")).snapshot()},
		"a node that does not exist":  {snapshot: one(policy("workers"), needy("worker-2")).snapshot()},
		"nothing blocks":              {snapshot: one(policy("workers"), needy("worker-1")).snapshot(), passed: 29, due: true},
		"a closed window": {
			snapshot: one(policy("workers"), needy("worker-1")).in(closed).snapshot(),
			reason:   v1alpha1.ReasonWindowClosed, check: v1alpha1.ReasonWindowClosed, passed: 8, until: evening.Add(24 * time.Hour),
		},
		"a check that blocks for another reason than its name": {
			snapshot: one(policy("cp", selects("pool", "cp")), needy("worker-1", cp, label("pool", "cp")), newHost("worker-2", cp, other)).with(policy("other", selects("pool", "other"))).snapshot(),
			reason:   v1alpha1.ReasonPolicyConflict, check: v1alpha1.ReasonControlPlaneGuard, passed: 23,
		},
		"no policy selects it": {
			snapshot: ungoverned(one(policy("workers", selects("pool", "web")), needy("worker-1"))),
			reason:   v1alpha1.ReasonNoPolicy, check: v1alpha1.ReasonNoPolicy, passed: 0,
		},
		"no policy selects it, and it needs no reboot": {snapshot: ungoverned(one(policy("workers", selects("pool", "web")), newHost("worker-1")))},
		"a grant that is in the ledger but not on the node": {
			snapshot: one(policy("workers", holding(7, entry("worker-1", 7))), needy("worker-1")).snapshot(), reboot: underway.PublishGrant,
		},
		"a drain": {
			snapshot: one(policy("workers", holding(7, entry("worker-1", 7))),
				needy("worker-1", cordoned, grant(7, protocol.GrantActive), progress(7, protocol.PhaseDraining))).snapshot(),
			reason: v1alpha1.ReasonGranted, reboot: underway.Wait,
		},
		"hooks before the drain: False without checks": {
			snapshot: one(policy("workers", hooked("example.com/a"), holding(7, entry("worker-1", 7))),
				needy("worker-1", phase(7, v1alpha1.HooksBefore, 0))).snapshot(),
			reason: v1alpha1.ReasonWaitingForHook, reboot: underway.Wait,
		},
		"a grant that the ledger has lost": {
			snapshot: one(policy("workers"), needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseRebooting))).snapshot(),
			reboot:   underway.Wait,
		},
		"a reboot that is over and still in the ledger": {
			snapshot: one(policy("workers", holding(7, entry("worker-1", 7))), newHost("worker-1", grant(7, protocol.GrantFinished))).snapshot(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := plan.Explain(tc.snapshot, "worker-1")
			check, passed := blockingCheck(t, e.Checks)
			var reboot underway.Action
			if e.Reboot != nil {
				reboot = e.Reboot.Action
			}
			got := []any{e.Decision.Reason, check, passed, e.Until, e.Due, reboot}
			same(t, "explanation", []any{tc.reason, tc.check, tc.passed, tc.until, tc.due, tc.reboot}, got)
		})
	}
}

// TestExplain_Ignored checks the messages of checks that pass only because something is ignored.
func TestExplain_Ignored(t *testing.T) {
	until := evening.Add(time.Hour)
	closed, freeze := &window.State{OpensAt: evening.Add(24 * time.Hour)}, &window.State{OpensAt: evening.Add(24 * time.Hour), Name: "freeze", Blackout: true}
	for name, tc := range map[string]struct {
		policy *v1alpha1.RebootPolicy
		host   *host
		window *window.State
		want   map[v1alpha1.Reason]string
	}{
		"nothing is blocked": {policy("workers"), needy("worker-1"), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonPaused: "the policy is not paused", v1alpha1.ReasonBlackout: "no blackout is in force", v1alpha1.ReasonWindowClosed: "a window is open, or the policy has none",
		}},
		"an urgent policy that is paused": {policy("workers", paused(nil, ""), urgent(until, "Pause", "Windows", "Blackouts")), needy("worker-1"), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonPaused:       "the policy is paused; spec.urgent.all ignores that until Mon 2026-06-01 23:00:00 UTC",
			v1alpha1.ReasonBlackout:     "spec.urgent.all ignores blackouts until Mon 2026-06-01 23:00:00 UTC",
			v1alpha1.ReasonWindowClosed: "spec.urgent.all ignores windows until Mon 2026-06-01 23:00:00 UTC",
		}},
		"an urgent policy that does not ignore pauses": {policy("workers", urgent(until, "Windows")), needy("worker-1"), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonPaused: "the policy is not paused", v1alpha1.ReasonBlackout: "no blackout is in force",
		}},
		"an urgent request in a blackout": {policy("workers", allowsUrgent), needy("worker-1", urgently), freeze, map[v1alpha1.Reason]string{
			v1alpha1.ReasonBlackout:       "blackout freeze is in force; the urgent request ignores that until the node is rebooted",
			v1alpha1.ReasonWindowClosed:   "no window is open; the urgent request ignores that until the node is rebooted",
			v1alpha1.ReasonWindowTooShort: "no window is open; the urgent request ignores that until the node is rebooted",
		}},
		"an urgent request in a window": {policy("workers", allowsUrgent), needy("worker-1", urgently), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonBlackout: "no blackout is in force", v1alpha1.ReasonWindowClosed: "a window is open, or the policy has none",
		}},
		"a window that is about to close": {policy("workers", allowsUrgent), needy("worker-1", urgently), &window.State{Open: true, ClosesAt: evening.Add(minute)}, map[v1alpha1.Reason]string{
			v1alpha1.ReasonWindowClosed:   "a window is open, or the policy has none",
			v1alpha1.ReasonWindowTooShort: "the window closes Mon 2026-06-01 22:01:00 UTC; the urgent request ignores that until the node is rebooted",
		}},
		"a node past its deadline": {policy("workers", deadline(time.Hour), ignoresWindows), needy("worker-1", needsSince(2*time.Hour)), closed, map[v1alpha1.Reason]string{
			v1alpha1.ReasonWindowClosed: "no window is open; spec.urgent.overdue ignores that since Mon 2026-06-01 21:00:00 UTC, until the node is rebooted",
		}},
		"an inhibitor that the policy ignores": {policy("workers", ignoresInhibitors), needy("worker-1", agentBlocking(`{"reason":"Inhibited","message":"dpkg"}`)), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonInhibited: "dpkg; spec.reboot.inhibitors ignores that", v1alpha1.ReasonCoordinatorConflict: "no other program is set up to reboot the host",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(tc.policy, tc.host)
			s.window = tc.window
			for _, c := range plan.Explain(s.snapshot(), "worker-1").Checks {
				if want, ok := tc.want[c.Check]; ok && (c.Message != want || c.Result != plan.Passed) {
					t.Errorf("%s: %s %q, want %q", c.Check, c.Result, c.Message, want)
				}
			}
		})
	}
}

// TestExplain_Order checks that the checks run in the order of docs/reasons.md and of the constants
// in api/v1alpha1.
func TestExplain_Order(t *testing.T) {
	var run []v1alpha1.Reason
	for _, c := range plan.Explain(one(policy("workers"), needy("worker-1")).snapshot(), "worker-1").Checks {
		run = append(run, c.Check)
	}
	for path, find := range map[string]struct{ from, to, reason string }{
		"../../docs/reasons.md":                         {"## The order of checks", "\n## ", "(?m)^\\| [0-9]+ \\| `([A-Za-z]+)` \\|"},
		"../../api/v1alpha1/rebootpolicy_conditions.go": {"RebootPermitted=False", "\n)", `(?m)^\tReason[A-Za-z]+ Reason = "([A-Za-z]+)"$`},
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(string(text), find.from)
		list, _, _ = strings.Cut(list, find.to)
		var listed []v1alpha1.Reason
		for _, row := range regexp.MustCompile(find.reason).FindAllStringSubmatch(list, -1) {
			listed = append(listed, v1alpha1.Reason(row[1]))
		}
		if diff := cmp.Diff(listed, run); diff != "" {
			t.Errorf("the order of %s and that of the checks (-listed +run):\n%s", path, diff)
		}
	}
}

// TestResponsible checks which policy answers for a node.
func TestResponsible(t *testing.T) {
	all, web := policy("all"), policy("web", selects("pool", "web"), priority(1))
	held, gone := policy("held", selects("pool", "none"), holding(7, entry("worker-1", 7))), givenBy("gone")
	cases := map[string]struct {
		policies []*v1alpha1.RebootPolicy
		host     *host
		want     string
	}{
		"nobody":                                 {[]*v1alpha1.RebootPolicy{web}, newHost("worker-1"), ""},
		"the policy that governs the node":       {[]*v1alpha1.RebootPolicy{all, web}, newHost("worker-1"), "all"},
		"the first policy in a conflict":         {[]*v1alpha1.RebootPolicy{policy("b"), policy("a")}, newHost("worker-1"), "a"},
		"the policy whose ledger holds the node": {[]*v1alpha1.RebootPolicy{all, held}, newHost("worker-1"), "held"},
		"the policy with an outstanding grant":   {[]*v1alpha1.RebootPolicy{all, web}, newHost("worker-1", grant(7, protocol.GrantActive, givenBy("web"))), "web"},
		"a finished grant does not count":        {[]*v1alpha1.RebootPolicy{all, web}, newHost("worker-1", grant(7, protocol.GrantFinished, givenBy("web"))), "all"},
		"a grant of a policy that is gone":       {[]*v1alpha1.RebootPolicy{all}, newHost("worker-1", grant(7, protocol.GrantActive, gone)), "all"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := situation{policies: tc.policies, hosts: []*host{tc.host}}.snapshot()
			same(t, "responsible", tc.want, s.Governor.Responsible(s.Nodes[0]))
		})
	}
}

// TestExplain_IsThePlan checks that a node's explanation agrees with the plan in any cluster: the
// same reason and message, and exactly that check blocks.
func TestExplain_IsThePlan(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for _, n := range snapshot.Nodes {
			e := plan.Explain(snapshot, n.Name)
			if diff := cmp.Diff(decided(p, n.Name), e.Decision); diff != "" {
				t.Fatalf("node %s is decided and explained otherwise (-plan +explanation):\n%s\n%v", n.Name, diff, s)
			}
			granted := slices.ContainsFunc(p.Ledger.Granted, func(g v1alpha1.LedgerEntry) bool { return g.Node == n.Name })
			if e.Due != granted {
				t.Fatalf("node %s: due %t, granted %t\n%v", n.Name, e.Due, granted, s)
			}
			blocking := 0
			for _, c := range e.Checks {
				if c.Result == plan.Blocks {
					blocking++
				}
			}
			if waits := e.Reboot == nil && e.Decision.Status == corev1.ConditionFalse; waits != (blocking == 1) || blocking > 1 {
				t.Fatalf("node %s: %d checks block, decision %+v\n%v", n.Name, blocking, e.Decision, s)
			}
		}
	})
}
