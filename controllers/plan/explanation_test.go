package plan_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// ungoverned is the situation without a policy that decides.
func ungoverned(s situation) plan.Snapshot {
	snapshot := s.snapshot()
	snapshot.Policy = nil
	return snapshot
}

// objects is the check that objects, and how many passed before it; every later one must not have been reached.
func objects(t *testing.T, checks []plan.Outcome) (v1alpha1.Reason, int) {
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

// TestExplain: what is explained of worker-1, in the words of the plan.
func TestExplain(t *testing.T) {
	closed := window.State{OpensAt: evening.Add(24 * time.Hour)}
	cp, other := label(plan.ControlPlaneLabels[0], ""), label("pool", "other")
	cases := map[string]struct {
		snapshot plan.Snapshot
		reason   v1alpha1.Reason
		// check objects, after so many passed.
		check  v1alpha1.Reason
		passed int
		until  time.Time
		due    bool
		reboot plan.Action
	}{
		"a node that needs no reboot": {snapshot: one(policy("workers"), newHost("worker-1")).snapshot()},
		"a node that is not there":    {snapshot: one(policy("workers"), needy("worker-2")).snapshot()},
		"nothing objects":             {snapshot: one(policy("workers"), needy("worker-1")).snapshot(), passed: 28, due: true},
		"a closed window": {
			snapshot: one(policy("workers"), needy("worker-1")).in(closed).snapshot(),
			reason:   v1alpha1.ReasonWindowClosed, check: v1alpha1.ReasonWindowClosed, passed: 8, until: evening.Add(24 * time.Hour),
		},
		"a check that objects for another reason than its own word": {
			snapshot: one(policy("cp", selects("pool", "cp")), needy("worker-1", cp, label("pool", "cp")), newHost("worker-2", cp, other)).with(policy("other", selects("pool", "other"))).snapshot(),
			reason:   v1alpha1.ReasonPolicyConflict, check: v1alpha1.ReasonControlPlaneGuard, passed: 22,
		},
		"no policy selects it": {
			snapshot: ungoverned(one(policy("workers", selects("pool", "web")), needy("worker-1"))),
			reason:   v1alpha1.ReasonNoPolicy, check: v1alpha1.ReasonNoPolicy, passed: 0,
		},
		"no policy selects it, and it needs no reboot": {snapshot: ungoverned(one(policy("workers", selects("pool", "web")), newHost("worker-1")))},
		"a grant that is in the ledger and not on the node": {
			snapshot: one(policy("workers", holding(7, entry("worker-1", 7))), needy("worker-1")).snapshot(), reboot: plan.PublishGrant,
		},
		"a drain": {
			snapshot: one(policy("workers", holding(7, entry("worker-1", 7))),
				needy("worker-1", cordoned, grant(7, protocol.GrantActive), progress(7, protocol.PhaseDraining))).snapshot(),
			reason: v1alpha1.ReasonGranted, reboot: plan.Wait,
		},
		"hooks before the drain: the answer is no, and there are no checks": {
			snapshot: one(policy("workers", hooked("example.com/a"), holding(7, entry("worker-1", 7))),
				needy("worker-1", phase(7, v1alpha1.HooksBefore, 0))).snapshot(),
			reason: v1alpha1.ReasonWaitingForHook, reboot: plan.Wait,
		},
		"a grant that the ledger has lost": {
			snapshot: one(policy("workers"), needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseRebooting))).snapshot(),
			reboot:   plan.Wait,
		},
		"a reboot that is over and still in the ledger": {
			snapshot: one(policy("workers", holding(7, entry("worker-1", 7))), newHost("worker-1", grant(7, protocol.GrantFinished))).snapshot(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := plan.Explain(tc.snapshot, "worker-1")
			check, passed := objects(t, e.Checks)
			var reboot plan.Action
			if e.Reboot != nil {
				reboot = e.Reboot.Action
			}
			got := []any{e.Decision.Reason, check, passed, e.Until, e.Due, reboot}
			same(t, "explanation", []any{tc.reason, tc.check, tc.passed, tc.until, tc.due, tc.reboot}, got)
		})
	}
}

// TestExplain_Ignored: what a check reports that passes because what would block is ignored.
func TestExplain_Ignored(t *testing.T) {
	until := evening.Add(time.Hour)
	closed, freeze := &window.State{OpensAt: evening.Add(24 * time.Hour)}, &window.State{OpensAt: evening.Add(24 * time.Hour), Name: "freeze", Blackout: true}
	for name, tc := range map[string]struct {
		policy *v1alpha1.RebootPolicy
		host   *host
		window *window.State
		want   map[v1alpha1.Reason]string
	}{
		"nothing is": {policy("workers"), needy("worker-1"), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonPaused: "the policy is not paused", v1alpha1.ReasonBlackout: "no blackout is in force", v1alpha1.ReasonWindowClosed: "a window is open, or there are none",
		}},
		"an urgent policy that is paused": {policy("workers", paused(nil, ""), urgent(until, "Pause", "Windows", "Blackouts")), needy("worker-1"), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonPaused:       "the policy is paused; spec.urgent ignores that until Mon 2026-06-01 23:00:00 UTC",
			v1alpha1.ReasonBlackout:     "spec.urgent ignores blackouts until Mon 2026-06-01 23:00:00 UTC",
			v1alpha1.ReasonWindowClosed: "spec.urgent ignores windows until Mon 2026-06-01 23:00:00 UTC",
		}},
		"an urgent policy that ignores no pause": {policy("workers", urgent(until, "Windows")), needy("worker-1"), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonPaused: "the policy is not paused", v1alpha1.ReasonBlackout: "no blackout is in force",
		}},
		"an urgent request in a blackout": {policy("workers", allowsUrgent), needy("worker-1", urgently), freeze, map[v1alpha1.Reason]string{
			v1alpha1.ReasonBlackout:       "blackout freeze is in force; the urgent request ignores that until the node is rebooted",
			v1alpha1.ReasonWindowClosed:   "no window is open; the urgent request ignores that until the node is rebooted",
			v1alpha1.ReasonWindowTooShort: "no window is open; the urgent request ignores that until the node is rebooted",
		}},
		"an urgent request in a window": {policy("workers", allowsUrgent), needy("worker-1", urgently), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonBlackout: "no blackout is in force", v1alpha1.ReasonWindowClosed: "a window is open, or there are none",
		}},
		"a window that is about to close": {policy("workers", allowsUrgent), needy("worker-1", urgently), &window.State{Open: true, ClosesAt: evening.Add(minute)}, map[v1alpha1.Reason]string{
			v1alpha1.ReasonWindowClosed:   "a window is open, or there are none",
			v1alpha1.ReasonWindowTooShort: "the window closes Mon 2026-06-01 22:01:00 UTC; the urgent request ignores that until the node is rebooted",
		}},
		"a node past its deadline": {policy("workers", deadline(time.Hour), ignoresWindows), needy("worker-1", needsSince(2*time.Hour)), closed, map[v1alpha1.Reason]string{
			v1alpha1.ReasonWindowClosed: "no window is open; spec.deadline ignores that since Mon 2026-06-01 21:00:00 UTC, until the node is rebooted",
		}},
		"an inhibitor that the policy ignores": {policy("workers", ignoresInhibitors), needy("worker-1", objecting(`{"reason":"Inhibited","message":"dpkg"}`)), nil, map[v1alpha1.Reason]string{
			v1alpha1.ReasonInhibited: "dpkg; spec.reboot.inhibitors ignores that", v1alpha1.ReasonCoordinatorConflict: "no other program may reboot the host",
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

// TestExplain_Order: the checks run in the order of docs/reasons.md, and of the constants in api/v1alpha1.
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

// TestResponsible: one policy answers for a node.
func TestResponsible(t *testing.T) {
	all, web := policy("all"), policy("web", selects("pool", "web"), priority(1))
	held, gone := policy("held", selects("pool", "none"), holding(7, entry("worker-1", 7))), givenBy("gone")
	cases := map[string]struct {
		policies []*v1alpha1.RebootPolicy
		host     *host
		want     string
	}{
		"nobody":                             {[]*v1alpha1.RebootPolicy{web}, newHost("worker-1"), ""},
		"who governs":                        {[]*v1alpha1.RebootPolicy{all, web}, newHost("worker-1"), "all"},
		"the first of rivals":                {[]*v1alpha1.RebootPolicy{policy("b"), policy("a")}, newHost("worker-1"), "a"},
		"who holds it in the ledger":         {[]*v1alpha1.RebootPolicy{all, held}, newHost("worker-1"), "held"},
		"whose grant is outstanding":         {[]*v1alpha1.RebootPolicy{all, web}, newHost("worker-1", grant(7, protocol.GrantActive, givenBy("web"))), "web"},
		"a grant that is over does not bind": {[]*v1alpha1.RebootPolicy{all, web}, newHost("worker-1", grant(7, protocol.GrantFinished, givenBy("web"))), "all"},
		"a grant of a policy that is gone":   {[]*v1alpha1.RebootPolicy{all}, newHost("worker-1", grant(7, protocol.GrantActive, gone)), "all"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := situation{policies: tc.policies, hosts: []*host{tc.host}}.snapshot()
			policies := make([]v1alpha1.RebootPolicy, len(tc.policies))
			for i, p := range tc.policies {
				policies[i] = *p
			}
			same(t, "responsible", tc.want, plan.Responsible(policies, s.Governor, s.Nodes[0]))
		})
	}
}

// TestGovernor_Selecting: all that select the node are reported, who wins first.
func TestGovernor_Selecting(t *testing.T) {
	s := one(policy("b")).with(policy("a"), policy("db", selects("pool", "db"), priority(10)), policy("web", selects("pool", "web")))
	want := []plan.Selection{{Policy: "db", Priority: 10}, {Policy: "a"}, {Policy: "b"}}
	same(t, "selecting", want, s.snapshot().Governor.Selecting(map[string]string{"pool": "db"}))
}
