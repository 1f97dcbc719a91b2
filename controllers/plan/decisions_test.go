package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// shown is a condition RebootPermitted from before.
var shown = nodeCondition(v1alpha1.NodeRebootPermitted, corev1.ConditionFalse, 0)

// TestReboots_Decisions: which nodes a policy answers for, and what it reports. Where there is no decision, the condition
// stays as it is.
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
		"a condition that has nothing to say any more is removed": {one(policy("workers"), newHost("a", shown)), []plan.Decision{{Node: "a"}}},
		"a node that is granted now is answered by the grant":     {one(policy("workers"), needy("a")), nil},
		"a node whose grant is due gets its answer by it":         {one(policy("workers", holding(1, entry("a", 1))), needy("a", shown)), nil},
		"a node with a grant": {one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active))), []plan.Decision{granted}},
		"a node that reboots, and whose agent has withdrawn question and answer": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", grant(1, active), progress(1, protocol.PhaseRebooting))), nil,
		},
		"a node that reboots, and whose agent has left the answer there": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", shown, grant(1, active), progress(1, protocol.PhaseRebooting))), []plan.Decision{granted},
		},
		"a node that is not back in time": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", notReady, grant(1, active, grantedAt(-time.Hour)), progress(1, protocol.PhaseRebooting, phaseAt(-time.Hour)))),
			[]plan.Decision{{
				Node: "a", Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonRebootTimedOut, MachineLost: true,
				Message: "the node was sent to reboot at Mon 2026-06-01 21:00:00 UTC and was not back within 30m0s; " +
					"its slot is kept: see to the machine; once it is proved off, deleting the Node frees the slot",
			}},
		},
		"a node under way whose progress cannot be read": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active), annotated(v1alpha1.AnnotationProgress, "null"))),
			[]plan.Decision{{
				Node: "a", Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonRecordUnreadable,
				Message: "annotation reboot-operator.io/progress: null is no record; the slot is kept until the agent repairs it",
			}},
		},
		"a grant that is taken back permits nothing, even while the agent drains still": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, protocol.GrantCancelled), progress(1, protocol.PhaseDraining))), nil,
		},
		"a grant that is about to be taken back": {
			one(policy("workers", paused(nil, ""), holding(1, entry("a", 1))), needy("a", grant(1, active))), nil,
		},
		"an entry that is about to be released": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", shown, grant(1, protocol.GrantFinished))), nil,
		},
		"an entry without a Node":     {one(policy("workers", holding(1, entry("a", 1)))), nil},
		"a grant that is found again": {one(policy("workers"), needy("a", shown, grant(1, active))), nil},
		"a node that another policy reboots": {
			one(policy("workers"), needy("a", shown, grant(1, active, givenBy("other")))).with(policy("other", selects("pool", "other"))), nil,
		},
		"a node of another policy":                        {one(policy("workers"), needy("a", shown)).with(policy("other", priority(1))), nil},
		"a conflict, reported by the first of the rivals": {situation{policies: rivals, hosts: hosts(needy, "a")}, []plan.Decision{conflict}},
		"a conflict is not reported by the second":        {one(rivals[1], needy("a")).with(rivals[0]), nil},
		"a conflict about a node that a third policy reboots": {
			situation{
				policies: append(rivals[:2:2], policy("third", selects("pool", "third"))),
				hosts:    []*host{needy("a", grant(1, active, givenBy("third")))},
			}, nil,
		},
		"a node whose before-hooks are asked": {
			one(policy("workers", hooked("example.com/a"), holding(1, entry("a", 1))), needy("a", phase(1, v1alpha1.HooksBefore, 0))),
			[]plan.Decision{{Node: "a", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForHook, Message: `waiting until each is "true": example.com/a`}},
		},
		"a node whose after-hooks are asked": {
			one(policy("workers", hooked("example.com/a"), holding(1, entry("a", 1))), newHost("a", grant(1, active, grantedAt(-time.Hour)),
				progress(1, protocol.PhaseRebooting, phaseAt(-time.Hour)), rebooted(-40*minute, -40*minute), phase(1, v1alpha1.HooksAfter, 0))),
			[]plan.Decision{{Node: "a", Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonWaitingForHook, Message: `waiting until each is "true": example.com/a`}},
		},
		"a conflict about a node that needs nothing":          {situation{policies: rivals, hosts: hosts(newHost, "a")}, nil},
		"a conflict about a node that needs nothing any more": {situation{policies: rivals, hosts: hosts(newHost, "a", shown)}, []plan.Decision{{Node: "a"}}},
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

// TestReboots_AMachineThatIsReadyHasNotFailed: health controllers power off what has condition RebootFailed. A node that is Ready still
// runs the boot from before, where an inhibitor may hold the reboot up, or shows a progress that nobody can read.
func TestReboots_AMachineThatIsReadyHasNotFailed(t *testing.T) {
	const none, failed = corev1.ConditionStatus(""), corev1.ConditionTrue
	long := grant(1, protocol.GrantActive, grantedAt(-2*time.Hour))
	reboots, unreadable := progress(1, protocol.PhaseRebooting, phaseAt(-2*time.Hour)), annotated(v1alpha1.AnnotationProgress, "?")
	for name, tc := range map[string]struct {
		node []func(*host)
		want corev1.ConditionStatus
	}{
		"it is down":                                   {options(long, reboots, notReady), failed},
		"it is Ready on the boot from before":          {options(long, reboots), none},
		"its progress cannot be read, and it is down":  {options(long, unreadable, notReady), failed},
		"its progress cannot be read, and it is Ready": {options(long, unreadable), none},
		"it is up, and its agent does not report":      {options(long, reboots, bootID("two"), nodeCondition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, 0)), none},
	} {
		t.Run(name, func(t *testing.T) {
			decisions := one(policy("workers", holding(1, entry("a", 1))), newHost("a", tc.node...)).plan().Decisions
			if len(decisions) != 1 || decisions[0].Reason == v1alpha1.ReasonGranted || decisions[0].RebootFailed().Status != tc.want {
				t.Errorf("decided %+v, want RebootFailed %q", decisions, tc.want)
			}
		})
	}
}

// TestUngoverned: what is reported on nodes that no policy selects, by name.
func TestUngoverned(t *testing.T) {
	s := situation{
		policies: []*v1alpha1.RebootPolicy{policy("web", selects("pool", "web")), policy("rival", selects("pool", "web")), policy("db", selects("pool", "db"), holding(2, entry("listed", 2)))},
		hosts: []*host{
			needy("waits"), newHost("in-service"), newHost("shown", shown), needy("governed", label("pool", "db")),
			needy("disputed", label("pool", "web")), needy("reboots", grant(1, protocol.GrantActive, givenBy("db"))),
			newHost("abandoned", shown, grant(1, protocol.GrantActive), progress(1, protocol.PhaseRebooting)), newHost("listed", grant(2, protocol.GrantActive)),
		},
	}.snapshot()
	want := []plan.Decision{
		{
			Node: "abandoned", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoPolicy,
			Message: "the policy that granted the reboot of this node does not exist any more, and no other one selects it: nothing puts it back in service, " +
				"or takes the grant back; create a RebootPolicy that selects it",
		},
		{Node: "shown"},
		{Node: "waits", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoPolicy, Message: "no RebootPolicy selects this node"},
	}
	same(t, "decisions", want, plan.Ungoverned(s.Governor, s.Nodes))
}

// TestReboots_Counts: the numbers of status and metrics.
func TestReboots_Counts(t *testing.T) {
	const active = protocol.GrantActive
	p := situation{
		policies: []*v1alpha1.RebootPolicy{
			policy("workers", atMost("5"), failuresMax(9), holding(4, entry("drains", 1), entry("late", 2), entry("back", 3), entry("gone", 4))),
			policy("zoo", selects("zoo", "yes")),
		},
		hosts: []*host{
			needy("drains", grant(1, active), progress(1, protocol.PhaseDraining)),
			newHost("late", grant(2, active, grantedAt(-time.Hour)), progress(2, protocol.PhaseRebooting, phaseAt(-time.Hour)), notReady),
			newHost("back", grant(3, protocol.GrantFinished), progress(3, protocol.PhaseRebooting)),
			needy("next"), needy("failed", progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, ""))),
			newHost("broken", notReady), newHost("mute", nodeCondition(v1alpha1.NodeRebootRequired, corev1.ConditionUnknown, 0)),
			newHost("bare", func(h *host) { h.node.Status.Conditions = h.node.Status.Conditions[:1] }),
			needy("disputed", label("zoo", "yes")),
		},
	}.plan()
	want := v1alpha1.NodeCounts{
		Selected: 8, Reporting: 6, RebootRequired: 3, Permitted: 3, Rebooting: 1, Blocked: 2, Unavailable: 4, Failed: 2,
	}
	same(t, "counts", want, p.Counts)
	same(t, "conflicts", map[string][]string{"disputed": {"workers", "zoo"}}, p.Conflicts)
}

// A dry run counts what is, not what would be.
func TestReboots_CountsOfADryRun(t *testing.T) {
	p := one(policy("workers", dryRun, atMost("1")), needy("a", needsSince(5*time.Hour)), needy("b")).plan()
	want := v1alpha1.NodeCounts{Selected: 2, Reporting: 2, RebootRequired: 2, Blocked: 2}
	same(t, "counts", want, p.Counts)
	same(t, "since when the oldest waits", evening.Add(-5*time.Hour), p.OldestPending)
}

// A status with more reasons than the API takes would be refused, and with it every grant.
func TestReboots_BlockedByReasonsOfTheAgentsOwn(t *testing.T) {
	var hosts []*host
	for i := range 40 {
		reason := string(rune('A'+i%26)) + strings.Repeat("x", i)
		hosts = append(hosts, needy(fmt.Sprintf("n%02d", i), objecting(`{"reason":"`+reason+`","message":""}`)))
	}
	if p := one(policy("workers"), hosts...).plan(); len(p.Blocked) != 32 || p.Counts.Blocked != 40 {
		t.Errorf("%d reasons for %d nodes, want 32 for 40", len(p.Blocked), p.Counts.Blocked)
	}
}

// TestReboots_Blocked: why nodes wait: five names at most for a reason; the reasons that need somebody first, because kubectl has
// room for one; then the most frequent, ties by name.
func TestReboots_Blocked(t *testing.T) {
	p := one(policy("workers", atMost("0")),
		append(hosts(needy, "n7 n6 n5 n4 n3 n2 n1"), needy("p2", annotated(v1alpha1.AnnotationPaused, "true")),
			needy("p1", annotated(v1alpha1.AnnotationPaused, "true")), needy("x", notReady), needy("y", objecting(`{"reason":"Inhibited"}`)))...,
	).plan()
	want := []v1alpha1.BlockedNodes{
		{Reason: v1alpha1.ReasonInhibited, Count: 1, Nodes: []string{"y"}},
		{Reason: v1alpha1.ReasonNodeUnavailable, Count: 1, Nodes: []string{"x"}},
		{Reason: v1alpha1.ReasonBudgetExhausted, Count: 7, Nodes: []string{"n1", "n2", "n3", "n4", "n5"}},
		{Reason: v1alpha1.ReasonNodePaused, Count: 2, Nodes: []string{"p1", "p2"}},
	}
	same(t, "blocked", want, p.Blocked)
}

// TestReboots_OldestPending: since when the node has waited that has waited longest.
func TestReboots_OldestPending(t *testing.T) {
	cases := map[string]struct {
		situation situation
		want      time.Time
	}{
		"nobody waits":            {situation: one(policy("workers"), newHost("a"))},
		"the only one is granted": {situation: one(policy("workers"), needy("a"))},
		"the one that is not granted": {
			one(policy("workers"), needy("a", needsSince(5*time.Hour)), needy("b", needsSince(3*time.Hour)), needy("c")), evening.Add(-3 * time.Hour),
		},
		"not one that reboots": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", needsSince(5*time.Hour), grant(1, protocol.GrantActive)), needy("b")),
			evening.Add(-time.Hour),
		},
		"one that backs off": {
			one(policy("workers"), needy("a", progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))), evening.Add(-time.Hour),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "since when the oldest waits", tc.want, tc.situation.plan().OldestPending)
		})
	}
}
