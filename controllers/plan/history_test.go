package plan_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

func lasts(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func at(d time.Duration) metav1.Time { return metav1.NewTime(evening.Add(d)) }

// TestPlan_History checks the history entry of a reboot when its entry leaves the ledger.
func TestPlan_History(t *testing.T) {
	drainedFrom := func(since time.Duration) func(*protocol.Progress) {
		return func(p *protocol.Progress) { p.DrainStartedAt = new(at(since)) }
	}
	forcing := func(pods int32) func(*protocol.Progress) {
		return func(p *protocol.Progress) { p.PodsForced = pods }
	}
	updates := func(running, version string) func(*protocol.Progress) {
		return func(p *protocol.Progress) { p.Update = &protocol.Update{Running: running, Version: version} }
	}
	kernel := func(version string) func(*host) {
		return func(h *host) { h.node.Status.NodeInfo.KernelVersion = version }
	}
	needed := func(need v1alpha1.Reason) func(*protocol.Grant) { return func(g *protocol.Grant) { g.Need = need } }
	finished := func(g *protocol.Grant) { g.At = at(0) }
	held := policy("workers", holding(7, v1alpha1.LedgerEntry{Node: "a", Seq: 7, BootID: "a-boot-1", At: at(-10 * minute), OSVersion: "1.0", KernelVersion: "6.8.0-49-generic"}))
	past := func(p v1alpha1.PastReboot) []v1alpha1.PastReboot {
		p.Node, p.Seq, p.GrantedAt, p.FromVersion = "a", 7, at(-10*minute), "1.0"
		return []v1alpha1.PastReboot{p}
	}
	cases := map[string]struct {
		situation situation
		want      []v1alpha1.PastReboot
	}{
		"a reboot": {
			one(held, newHost("a", label(v1alpha1.LabelOSVersion, "2.0"), rebooted(-3*minute, -2*minute),
				grant(7, protocol.GrantFinished, finished, needed(v1alpha1.ReasonUpdateStaged)),
				progress(7, protocol.PhaseRebooting, phaseAt(-6*minute), drainedFrom(-9*minute), forcing(3)))),
			past(v1alpha1.PastReboot{
				PodsForced: 3, Result: v1alpha1.RebootSucceeded, Reason: v1alpha1.ReasonUpdateStaged, ToVersion: "2.0", EndedAt: at(0),
				Drain: lasts(3 * minute), Reboot: lasts(4 * minute), Settle: lasts(2 * minute),
			}),
		},
		"a reboot that changes only the kernel": {
			one(held, newHost("a", label(v1alpha1.LabelOSVersion, "1.0"), kernel("6.8.0-50-generic"), rebooted(-3*minute, -2*minute),
				grant(7, protocol.GrantFinished, finished), progress(7, protocol.PhaseRebooting, phaseAt(-6*minute), updates("6.8.0-49", "6.8.0-50")))),
			past(v1alpha1.PastReboot{
				Result: v1alpha1.RebootSucceeded, ToVersion: "1.0", FromKernel: "6.8.0-49-generic", ToKernel: "6.8.0-50-generic", EndedAt: at(0),
				Reboot: lasts(4 * minute), Settle: lasts(2 * minute),
			}),
		},
		"a reboot that changes only the image": {
			one(held, newHost("a", label(v1alpha1.LabelOSVersion, "1.0"), kernel("6.8.0-49-generic"), rebooted(-3*minute, -2*minute),
				grant(7, protocol.GrantFinished, finished), progress(7, protocol.PhaseRebooting, phaseAt(-6*minute), updates("os:1@sha256:0a", "os:1@sha256:1b")))),
			past(v1alpha1.PastReboot{
				Result: v1alpha1.RebootSucceeded, ToVersion: "1.0", Message: "os:1@sha256:0a → os:1@sha256:1b", EndedAt: at(0),
				Reboot: lasts(4 * minute), Settle: lasts(2 * minute),
			}),
		},
		"a reboot that does not apply the update": {
			one(held, needy("a", label(v1alpha1.LabelOSVersion, "1.0"), kernel("6.8.0-49-generic"), rebooted(-3*minute, -2*minute), needsSince(2*minute),
				grant(7, protocol.GrantFinished, finished), progress(7, protocol.PhaseRebooting, phaseAt(-6*minute), updates("os:1@sha256:0a", "os:1@sha256:1b")))),
			past(v1alpha1.PastReboot{
				Result: v1alpha1.RebootSucceeded, ToVersion: "1.0", EndedAt: at(0), Reboot: lasts(4 * minute), Settle: lasts(2 * minute),
			}),
		},
		"a drain that was given up": {
			one(held, needy("a", grant(7, protocol.GrantActive), progress(7, protocol.PhaseAborted, phaseAt(-minute), drainedFrom(-9*minute),
				func(p *protocol.Progress) { p.Reason, p.Message = v1alpha1.ReasonDrainTimedOut, "web-1 stays" }, forcing(math.MaxInt32)))),
			past(v1alpha1.PastReboot{
				PodsForced: math.MaxInt32, Result: v1alpha1.RebootAborted, Reason: v1alpha1.ReasonDrainTimedOut, Message: "web-1 stays",
				EndedAt: at(-minute), Drain: lasts(8 * minute),
			}),
		},
		"a Node that was deleted": {
			one(held), past(v1alpha1.PastReboot{Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGone, Message: "the Node object was deleted", EndedAt: at(0)}),
		},
		"a Node that was deleted in its reboot": {
			one(policy("workers", holding(7, v1alpha1.LedgerEntry{Node: "a", Seq: 7, BootID: "a-boot-1", At: at(-10 * minute), OSVersion: "1.0", RebootingAt: new(at(-5 * minute)), Ring: "canary"}))),
			past(v1alpha1.PastReboot{
				Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGoneInReboot, Ring: "canary", EndedAt: at(0),
				Message: "the Node object was deleted, after it was sent to reboot at Mon 2026-06-01 21:55:00 UTC and before it was back in service: check the machine, or what deletes Nodes",
			}),
		},
		"a grant that was cancelled before the drain disturbed no node": {one(held, needy("a", grant(7, protocol.GrantCancelled))), nil},
		"clocks that disagree measure nothing": {
			one(held, newHost("a", rebooted(-3*minute, -2*minute), grant(7, protocol.GrantFinished, finished),
				progress(7, protocol.PhaseRebooting, phaseAt(minute), drainedFrom(2*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, EndedAt: at(0), Settle: lasts(2 * minute)}),
		},
		"clocks that are years ahead measure nothing, and end nothing in the future": {
			one(held, newHost("a", rebooted(-3*minute, 20*365*24*time.Hour), grant(7, protocol.GrantFinished, grantedAt(time.Hour)),
				progress(7, protocol.PhaseRebooting, phaseAt(-6*minute), drainedFrom(-9*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, EndedAt: at(0), Drain: lasts(3 * minute)}),
		},
		"a drain that was given up by a clock that is years behind": {
			one(held, needy("a", grant(7, protocol.GrantActive), progress(7, protocol.PhaseAborted, phaseAt(-20*365*24*time.Hour), drainedFrom(-20*365*24*time.Hour-8*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootAborted, EndedAt: at(-10 * minute), Drain: lasts(8 * minute)}),
		},
		"a boot whose clock was hours ahead until it was synchronized": {
			one(held, newHost("a", rebooted(-3*minute, 3*time.Hour), grant(7, protocol.GrantFinished, finished), progress(7, protocol.PhaseRebooting, phaseAt(-6*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, EndedAt: at(0)}),
		},
		"a reboot under way is not in the history": {one(held, newHost("a", grant(7, protocol.GrantActive), progress(7, protocol.PhaseRebooting))), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "history", tc.want, p.History(policy("workers"), evening))
		})
	}
}

// keeping sets the history.
func keeping(history []v1alpha1.PastReboot) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Status.History = history }
}

// TestPlan_HistoryIsBounded checks that the oldest entries are dropped, by number and by size, and
// that the previous history is not changed in place.
func TestPlan_HistoryIsBounded(t *testing.T) {
	remembered := func(n int, message string) []v1alpha1.PastReboot {
		var history []v1alpha1.PastReboot
		for i := range n {
			history = append(history, v1alpha1.PastReboot{Node: strconv.Itoa(i), Seq: int64(i), Message: message})
		}
		return history
	}
	gone := one(policy("workers", holding(99, entry("new", 99)))).plan()
	before := remembered(10, "")
	after := gone.History(policy("workers", keeping(before)), evening)
	if len(after) != 10 || after[0].Node != "1" || after[9].Node != "new" || before[0].Node != "0" || len(before) != 10 {
		t.Errorf("of 10 and one more are left %d, from %s to %s", len(after), after[0].Node, after[len(after)-1].Node)
	}
	long := gone.History(policy("workers", keeping(remembered(10, strings.Repeat("x", 1024)))), evening)
	text, err := json.Marshal(long)
	if err != nil || len(text) > 10<<10 || long[len(long)-1].Node != "new" || len(long) < 5 {
		t.Errorf("%d long ones are left, %d bytes, %v", len(long), len(text), err)
	}
	if kept := (&plan.Plan{}).History(policy("workers", keeping(before)), evening); len(kept) != 10 {
		t.Errorf("%d of 10 are kept if nothing ends", len(kept))
	}
}

// TestPlan_HistoryKeepsDeletedNodesThatCount checks that other attempts do not crowd out a Node that was
// deleted in its reboot, until a node of its ring comes back or an administrator resumes the policy.
func TestPlan_HistoryKeepsDeletedNodesThatCount(t *testing.T) {
	attempts := func(p *v1alpha1.RebootPolicy) {
		for i := range v1alpha1.MaxHistory {
			aborted("a", time.Duration(i-30)*time.Second)(p)
		}
	}
	success := func(ring string, ended time.Duration) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Status.History = append(p.Status.History, v1alpha1.PastReboot{Node: "b", Ring: ring, Result: v1alpha1.RebootSucceeded, EndedAt: at(ended)})
		}
	}
	for name, tc := range map[string]struct {
		policy *v1alpha1.RebootPolicy
		kept   bool
	}{
		"nothing has come back":              {policy("workers", lost("gone", "canary", -time.Hour), attempts), true},
		"a node of another ring came back":   {policy("workers", lost("gone", "canary", -time.Hour), success("rest", -minute), attempts), true},
		"a node of its ring came back":       {policy("workers", lost("gone", "canary", -time.Hour), success("canary", -minute), attempts), false},
		"a node of its ring was back before": {policy("workers", success("canary", -2*time.Hour), lost("gone", "canary", -time.Hour), attempts), true},
		"resumed since then":                 {policy("workers", lost("gone", "canary", -time.Hour), attempts, resumedAt(-minute)), false},
	} {
		t.Run(name, func(t *testing.T) {
			history := (&plan.Plan{}).History(tc.policy, evening)
			if kept := history[0].Node == "gone"; kept != tc.kept || len(history) != v1alpha1.MaxHistory {
				t.Errorf("kept %t, want %t: %+v", kept, tc.kept, history)
			}
		})
	}
	t.Run("more than the history holds, with the longest names", func(t *testing.T) {
		p := policy("workers")
		for i := range v1alpha1.MaxHistory {
			lost(strings.Repeat("n", 250)+strconv.Itoa(i), strings.Repeat("r", 63), time.Duration(i)*time.Second-time.Hour)(p)
			p.Status.History[i].Message, p.Status.History[i].FromVersion = strings.Repeat("m", 200), strings.Repeat("v", 63)
		}
		gone := one(policy("workers", holding(99, entry("new", 99)))).plan()
		if history := gone.History(p, evening); !cmp.Equal(history, p.Status.History) {
			t.Errorf("%d are left", len(history))
		}
	})
}

// running sets a run that began an hour ago, with two nodes back.
func running(p *v1alpha1.RebootPolicy) {
	p.Status.Run = &v1alpha1.RunStatus{StartedAt: metav1.NewTime(evening.Add(-time.Hour)), Seq: 4, Rebooted: 2}
}

// TestPlan_Run checks that a run begins with the first grant, counts what ends, and is over when no
// node holds a grant.
func TestPlan_Run(t *testing.T) {
	run := func(ago time.Duration, seq int64, rebooted, failed int32) *v1alpha1.RunStatus {
		return &v1alpha1.RunStatus{StartedAt: metav1.NewTime(evening.Add(-ago)), Seq: seq, Rebooted: rebooted, Failed: failed}
	}
	inProgress := holding(7, entry("worker-1", 7))
	back := newHost("worker-1", grant(7, protocol.GrantFinished), progress(7, protocol.PhaseRebooting))
	aborted := needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))
	for name, tc := range map[string]struct {
		situation situation
		want      *v1alpha1.RunStatus
		over      bool
	}{
		"no node needs a reboot": {one(policy("workers"), newHost("worker-1")), nil, true},
		"no node may go":         {one(policy("workers", atMost("0")), needy("worker-1")), nil, true},
		"the first grant":        {one(policy("workers", holding(7)), needy("worker-1")), run(0, 7, 0, 0), false},
		"the status has no run, but a node holds a grant": {one(policy("workers", inProgress), needy("worker-1")), run(0, 7, 0, 0), false},
		"in progress":                        {one(policy("workers", inProgress, running), needy("worker-1")), run(time.Hour, 4, 2, 0), false},
		"one is back, and the next one goes": {one(policy("workers", inProgress, running), back, needy("worker-2")), run(time.Hour, 4, 3, 0), false},
		"the last one is back":               {one(policy("workers", inProgress, running), back), run(time.Hour, 4, 3, 0), true},
		"one is back, and the next one goes after the spacing": {
			one(policy("workers", spacing(10*minute), inProgress, running), back, needy("worker-2")), run(time.Hour, 4, 3, 0), false,
		},
		"within the spacing, without a run": {one(policy("workers", spacing(10*minute), lastReboot(-minute)), needy("worker-1")), nil, true},
		"the last one failed":               {one(policy("workers", inProgress, running), aborted), run(time.Hour, 4, 2, 1), true},
		"the last one was deleted":          {one(policy("workers", inProgress, running)), run(time.Hour, 4, 2, 1), true},
		"the grant was cancelled before it began": {
			one(policy("workers", inProgress, running), newHost("worker-1", grant(7, protocol.GrantCancelled))), run(time.Hour, 4, 2, 0), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			got, over := p.Run(tc.situation.policies[0].Status, evening)
			same(t, "run", tc.want, got)
			same(t, "over", tc.over, over)
		})
	}
}

// TestPlan_HistoryOfUnexpectedReboots checks that reboots without a grant enter the history once, at
// their time, and at most three of them.
func TestPlan_HistoryOfUnexpectedReboots(t *testing.T) {
	rebootedItself := func(ago time.Duration, from, to string) func(*host) {
		return func(h *host) {
			annotate(h.node, v1alpha1.AnnotationEngines, protocol.Engines{
				BootID: h.bootID(), Unexpected: &protocol.UnexpectedReboot{At: at(-ago), FromVersion: from, ToVersion: to},
			}.String())
		}
	}
	unexpected := func(node string, ago time.Duration, from, to string) v1alpha1.PastReboot {
		return v1alpha1.PastReboot{
			Node: node, Result: v1alpha1.RebootUnexpected, GrantedAt: at(-ago), EndedAt: at(-ago), FromVersion: from, ToVersion: to,
		}
	}
	succeeded := func(ago time.Duration) v1alpha1.PastReboot {
		return v1alpha1.PastReboot{Node: "s", Seq: 1, Result: v1alpha1.RebootSucceeded, EndedAt: at(-ago)}
	}
	var crowd []*host
	var last []v1alpha1.PastReboot
	for i := range 8 {
		crowd = append(crowd, newHost(strconv.Itoa(i), rebootedItself(time.Duration(10-i)*minute, "", "")))
		if i >= 5 {
			last = append(last, unexpected(strconv.Itoa(i), time.Duration(10-i)*minute, "", ""))
		}
	}
	full := func(ago time.Duration) []v1alpha1.PastReboot {
		history := make([]v1alpha1.PastReboot, v1alpha1.MaxHistory)
		for i := range history {
			history[i] = succeeded(ago - time.Duration(i)*time.Second)
		}
		return history
	}
	for name, tc := range map[string]struct {
		hosts        []*host
		before, want []v1alpha1.PastReboot
	}{
		"none":                                             {hosts: []*host{newHost("a")}},
		"a node at rest":                                   {hosts: []*host{newHost("a", rebootedItself(5*minute, "1.0", "2.0"))}, want: []v1alpha1.PastReboot{unexpected("a", 5*minute, "1.0", "2.0")}},
		"in the order of time":                             {[]*host{newHost("a", rebootedItself(5*minute, "", ""))}, []v1alpha1.PastReboot{succeeded(6 * minute), succeeded(4 * minute)}, []v1alpha1.PastReboot{succeeded(6 * minute), unexpected("a", 5*minute, "", ""), succeeded(4 * minute)}},
		"older than all of a full history":                 {[]*host{newHost("a", rebootedItself(2*time.Hour, "", ""))}, full(time.Hour), full(time.Hour)},
		"from another boot":                                {hosts: []*host{newHost("a", rebootedItself(5*minute, "", ""), bootID("another"))}},
		"dated by a clock that is ahead":                   {hosts: []*host{newHost("a", rebootedItself(-time.Hour, "", ""))}},
		"with versions that do not fit a status":           {hosts: []*host{newHost("a", rebootedItself(5*minute, "not a version", strings.Repeat("1", 64)))}, want: []v1alpha1.PastReboot{unexpected("a", 5*minute, "", "")}},
		"only the last three, from more than three nodes":  {hosts: crowd, want: last},
		"only the last three in the history":               {hosts: []*host{newHost("z", rebootedItself(minute, "", ""))}, before: last, want: append(last[1:3:3], unexpected("z", minute, "", ""))},
		"more than three in the history, none of them new": {hosts: crowd[:1], before: last, want: last},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers"), tc.hosts...).plan()
			once := p.History(policy("workers", keeping(tc.before)), evening)
			same(t, "history", tc.want, once)
			same(t, "history, once more", once, p.History(policy("workers", keeping(once)), evening))
		})
	}
}
