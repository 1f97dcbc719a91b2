package plan_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

func maxFailures(n int32) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Spec.MaxFailures = &n }
}

// was sets condition Halted as it was written at a time counted from the evening.
func was(status metav1.ConditionStatus, reason v1alpha1.Reason, message string, since time.Duration) func(*v1alpha1.RebootPolicy) {
	c := metav1.Condition{Type: v1alpha1.ConditionHalted, Status: status, Reason: string(reason), Message: message, LastTransitionTime: at(since)}
	return func(p *v1alpha1.RebootPolicy) { p.Status.Conditions = []metav1.Condition{c} }
}

var halted = was(metav1.ConditionTrue, v1alpha1.ReasonTooManyFailures, "2 nodes failed", 0)

// resumedAt sets when an administrator resumed the policy, counted from the evening.
func resumedAt(since time.Duration) func(*v1alpha1.RebootPolicy) {
	return was(metav1.ConditionFalse, v1alpha1.ReasonResumed, "resumed: fixed", since)
}

// lost adds a reboot during which the Node was deleted to the history.
func lost(node, ring string, ended time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.History = append(p.Status.History, v1alpha1.PastReboot{
			Node: node, Ring: ring, Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGoneInReboot, EndedAt: at(ended),
		})
	}
}

// aborted adds attempt number 1 of a node, which its agent gave up, to the history.
func aborted(node string, ended time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.History = append(p.Status.History, v1alpha1.PastReboot{
			Node: node, Seq: 1, Result: v1alpha1.RebootAborted, Reason: v1alpha1.ReasonDrainTimedOut, EndedAt: at(ended),
		})
	}
}

// TestReboots_ADeletedNodeFailsIfItWasRebooting checks that the ledger records each reboot that
// may be past the point of no return, in any cluster. If such a Node is deleted, that counts as one
// failure at once. It does not count if the agent had not come so far.
func TestReboots_ADeletedNodeFailsIfItWasRebooting(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for _, r := range p.Reboots {
			if r.Rebooting() && r.Action != underway.ReleaseEntry && r.Entry.RebootingAt == nil {
				t.Fatalf("%s reboots, and the ledger does not know\n%v", r.Entry.Node, s)
			}
			if n := r.Node; n != nil && r.Action == underway.Wait && n.In(r.Entry.Seq, protocol.PhaseDraining) && r.Entry.RebootingAt != nil {
				t.Fatalf("%s drains, and reboots by the ledger\n%v", n.Name, s)
			}
		}
		if p.Halt.Halted || p.Halt.Reason == v1alpha1.ReasonResumed || snapshot.Ledger.Apart() {
			return
		}
		snapshot.Policy = snapshot.Policy.DeepCopy()
		snapshot.Ledger = snapshot.Ledger.Updated(snapshot.Policy)
		maxFailures(1)(snapshot.Policy)
		snapshot.Policy.Status.History, snapshot.Policy.Status.Grants = nil, p.Ledger.Own()
		rebooting := slices.ContainsFunc(p.Ledger.Own(), func(e v1alpha1.LedgerEntry) bool {
			return e.RebootingAt != nil && snapshot.Ledger.Owns(e)
		})
		snapshot.Nodes = nil
		if after := plan.Of(snapshot); after.Halt.Halted != rebooting {
			t.Fatalf("every Node is deleted: halted %t, rebooting %t, ledger %+v\n%v", after.Halt.Halted, rebooting, p.Ledger.Own(), s)
		}
	})
}

// TestReboots_Halt checks that a policy stops when maxFailures nodes have failed since the last
// success, and goes on when an administrator resumes it.
func TestReboots_Halt(t *testing.T) {
	drainFailed := func(at time.Duration) func(*host) {
		return progress(1, protocol.PhaseAborted, phaseAt(at), failed(1, v1alpha1.ReasonDrainTimedOut, "db-0 stays"))
	}
	later := func(after time.Duration, s situation) situation {
		s.now = evening.Add(after)
		return s
	}
	strict := func(mods ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
		return policy("workers", append(options(maxFailures(1)), mods...)...)
	}
	healthy, resumed := halt.State{Reason: v1alpha1.ReasonHealthy}, halt.State{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"}
	haltedBy := func(message string) halt.State {
		return halt.State{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: message}
	}
	haltedByA := func(reason v1alpha1.Reason) halt.State {
		return haltedBy("1 node failed since the last success (maxFailures is 1): a (" + string(reason) + ")")
	}
	goneInReboot := entry("a", 5)
	goneInReboot.RebootingAt, goneInReboot.NodeUID = new(at(-10*minute)), "uid"
	lateReboot := options(grant(5, protocol.GrantActive, grantedAt(-time.Hour)), progress(5, protocol.PhaseRebooting, phaseAt(-time.Hour)), notReady)
	// refusedAt returns a node that is back and whose hook began half an hour ago. It shows since
	// the given time that the hook refused.
	refusedAt := func(since time.Duration) []func(*host) {
		return options(grant(5, protocol.GrantActive, grantedAt(-time.Hour)), progress(5, protocol.PhaseRebooting, phaseAt(-time.Hour)), rebooted(-40*minute, -40*minute),
			phase(5, v1alpha1.HooksAfter, -30*minute), annotated("example.com/a", "failed: no disk"), func(h *host) {
				h.node.Status.Conditions = append(h.node.Status.Conditions, corev1.NodeCondition{
					Type: v1alpha1.NodeRebootPermitted, Status: corev1.ConditionTrue, Reason: string(v1alpha1.ReasonHookFailed),
					LastHeartbeatTime: at(since), LastTransitionTime: at(-time.Hour),
				})
			})
	}
	cases := map[string]struct {
		situation situation
		want      halt.State
	}{
		"nothing failed":                        {one(policy("workers"), needy("a")), healthy},
		"one node failed, and maxFailures is 2": {one(policy("workers"), needy("a", drainFailed(-minute)), needy("b")), healthy},
		"halted, with the condition's message but without the command": {
			one(policy("workers", was(metav1.ConditionTrue, v1alpha1.ReasonTooManyFailures, "1 node failed"+halt.ResumeHint("workers"), -minute)), needy("a")), haltedBy("1 node failed"),
		},
		"two failed": {
			one(policy("workers"), needy("b", drainFailed(-minute)), needy("a", drainFailed(-time.Hour)), needy("c")),
			haltedBy("2 nodes failed since the last success (maxFailures is 2): a (DrainTimedOut), b (DrainTimedOut)"),
		},
		"a try of a closed budget failed, and maxFailures is 1": {one(strict(), needy("a", failedTry(3, minute)), needy("b")), healthy},
		"one node failed, and maxFailures is 1":                 {one(strict(), needy("a", drainFailed(-minute))), haltedByA(v1alpha1.ReasonDrainTimedOut)},
		"more failed nodes than a message names": {
			one(policy("workers", maxFailures(3)), hosts(needy, "worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 worker-7", drainFailed(-minute))...),
			haltedBy("7 nodes failed since the last success (maxFailures is 3): worker-1 (DrainTimedOut), worker-2 (DrainTimedOut), " +
				"worker-3 (DrainTimedOut), worker-4 (DrainTimedOut), worker-5 (DrainTimedOut) and 2 more"),
		},
		"a node's clock a day ahead: it failed after its grant": {
			one(strict(), needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(24*time.Hour))),
			haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
		"a resume holds when the node is granted again": {
			one(strict(resumedAt(-minute)),
				needy("a", grant(2, protocol.GrantActive), drainFailed(24*time.Hour))),
			resumed,
		},
		"a resume holds when the day has passed": {
			later(24*time.Hour, one(strict(resumedAt(0)),
				needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(24*time.Hour)))),
			resumed,
		},
		"a resume after the grant counts as one after the failure": {
			one(strict(resumedAt(0)),
				needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(24*time.Hour))),
			resumed,
		},
		"a node's clock ten minutes ahead, and a resume in between: the manager saw the end before the resume": {
			one(strict(aborted("a", -2*minute), resumedAt(-minute)),
				needy("a", grant(1, protocol.GrantActive, grantedAt(-3*minute)), drainFailed(8*minute))),
			resumed,
		},
		"a node's clock ten minutes ahead, and a resume before the end": {
			one(strict(aborted("a", -minute), resumedAt(-2*minute)),
				needy("a", grant(1, protocol.GrantActive, grantedAt(-3*minute)), drainFailed(8*minute))),
			haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
		"a node's clock a day behind: it failed after its grant, and after everything before the grant": {
			one(strict(lastReboot(-2*minute)), needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(-24*time.Hour))),
			haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
		"a node's clock a day behind, and a success since its grant": {
			one(strict(lastReboot(0)), needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(-24*time.Hour))), healthy,
		},
		"a node that failed many times counts once": {
			one(policy("workers"), needy("a", progress(1, protocol.PhaseAborted, failed(9, v1alpha1.ReasonDrainTimedOut, "")))), healthy,
		},
		"a success since the failure": {
			one(policy("workers", lastReboot(-minute)), needy("a", drainFailed(-2*minute)), needy("b", drainFailed(-3*minute))), healthy,
		},
		"a success in the same second": {
			one(policy("workers", lastReboot(-minute)), needy("a", drainFailed(-minute)), needy("b", drainFailed(-minute))), healthy,
		},
		"a node that failed and no longer needs a reboot": {one(strict(), newHost("a", drainFailed(-minute))), healthy},
		"a cancelled attempt is not a failure": {
			one(strict(), needy("a", progress(1, protocol.PhaseAborted, failed(0, v1alpha1.ReasonCancelled, "")))), healthy,
		},
		"a node of another policy": {one(strict(), needy("a", drainFailed(-minute))).with(policy("other", priority(1))), healthy},
		"a node that did not come back (behaviour 26)": {
			one(strict(holding(5, entry("a", 5))), newHost("a", lateReboot...)), haltedByA(v1alpha1.ReasonRebootTimedOut),
		},
		"a node that did not come back, and a success since": {
			one(strict(holding(5, entry("a", 5)), lastReboot(-minute)), newHost("a", lateReboot...)), healthy,
		},
		"a drain whose agent is dead": {
			one(strict(holding(5, entry("a", 5))), needy("a", grant(5, protocol.GrantActive, grantedAt(-time.Hour)), progress(5, protocol.PhaseDraining, phaseAt(-time.Hour)))),
			haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
		"a finished reboot that is not released, of a node that is not Ready again": {
			one(strict(holding(5, entry("a", 5))), newHost("a", append(lateReboot[1:], grant(5, protocol.GrantFinished), bootID("two"))...)), healthy,
		},
		"a deleted Node": {one(strict(holding(5, entry("a", 5)))), healthy},
		"a Node that was deleted past the point of no return": {
			one(strict(holding(5, goneInReboot))), haltedByA(v1alpha1.ReasonNodeGoneInReboot),
		},
		"a Node that is registered again": {
			one(strict(holding(5, goneInReboot)), newHost("a", uid("other"))), haltedByA(v1alpha1.ReasonNodeGoneInReboot),
		},
		"a Node that was deleted in its reboot, by the history, and a failure": {
			one(policy("workers", lost("a", "", -minute)), needy("b", drainFailed(-minute))),
			haltedBy("2 nodes failed since the last success (maxFailures is 2): a (NodeGoneInReboot), b (DrainTimedOut)"),
		},
		"as many deleted Nodes as the history holds, although maxFailures is higher": {
			one(policy("workers", maxFailures(1000), func(p *v1alpha1.RebootPolicy) {
				for i := range v1alpha1.MaxHistory {
					lost("worker-"+strconv.Itoa(i), "", -minute)(p)
				}
			})),
			haltedBy("10 nodes failed since the last success (no policy goes on after 10 deleted Nodes): worker-0 (NodeGoneInReboot), worker-1 (NodeGoneInReboot), " +
				"worker-2 (NodeGoneInReboot), worker-3 (NodeGoneInReboot), worker-4 (NodeGoneInReboot) and 5 more"),
		},
		"a Node that was deleted in its reboot, and a success since":                           {one(strict(lost("a", "", -2*minute), lastReboot(-minute))), healthy},
		"a Node that was deleted in its reboot, and resumed since":                             {one(strict(lost("a", "", -2*minute), resumedAt(-minute))), resumed},
		"a Node that was deleted in its reboot, by the clock of a leader that was a day ahead": {one(strict(lost("a", "", 24*time.Hour))), healthy},
		"a halted policy stays halted, with its message":                                       {one(policy("workers", halted), needy("a")), haltedBy("2 nodes failed")},
		"an administrator resumes": {
			one(policy("workers", halted, resume("fixed")), needy("a", drainFailed(0)), needy("b", drainFailed(0))), resumed,
		},
		"an administrator resumes without a reason: the shell drops the value, so it must count": {
			one(policy("workers", halted, resume("")), needy("a")), halt.State{Reason: v1alpha1.ReasonResumed, Message: "resumed: no reason given"},
		},
		"an administrator resumes with a text that is too long for a status": {
			one(policy("workers", resume(strings.Repeat("x", 40_000))), needy("a")),
			halt.State{Reason: v1alpha1.ReasonResumed, Message: "resumed: " + strings.Repeat("x", 509) + "…"},
		},
		"resumed, and failures before that do not count": {
			one(strict(resumedAt(-minute), lastReboot(-time.Hour)), needy("a", drainFailed(-2*minute))), resumed,
		},
		"resumed, and failed again": {one(strict(resumedAt(-3*minute)), needy("a", drainFailed(-2*minute))), haltedByA(v1alpha1.ReasonDrainTimedOut)},
		"resumed by the clock of a leader that was a day ahead, and failed again": {
			one(strict(resumedAt(24*time.Hour)), needy("a", drainFailed(-2*minute))), haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
		"resumed, and a success since, and failed again": {
			one(strict(resumedAt(-5*minute), lastReboot(-3*minute)), needy("a", drainFailed(-2*minute))), haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
		"resumed, and a success since, and failed between the two": {
			one(strict(resumedAt(-5*minute), lastReboot(-3*minute)), needy("a", drainFailed(-4*minute))), resumed,
		},
		"a success in the future does not hide failures": {
			one(strict(lastReboot(time.Hour)), needy("a", drainFailed(-2*minute))), haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
		"a resume does not bring back a failure older than the last success": {
			one(strict(lastReboot(time.Hour), func(p *v1alpha1.RebootPolicy) {
				p.Status.History = append(p.Status.History, v1alpha1.PastReboot{Node: "b", Result: v1alpha1.RebootSucceeded, EndedAt: at(-minute)})
			}), needy("a", drainFailed(-2*minute))), healthy,
		},
		"a success by the clock of a leader that was a little ahead": {one(strict(lastReboot(minute)), needy("a", drainFailed(-2*minute))), healthy},
		"a before-hook refused": {
			one(strict(), needy("a", grant(5, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonHookFailed)))),
			haltedByA(v1alpha1.ReasonHookFailed),
		},
		"a drain failed and then a before-hook refused: that is one node": {
			one(policy("workers"), needy("a", drainFailed(-time.Hour), grant(5, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonHookTimedOut)))), healthy,
		},
		"a cancelled grant whose agent still drains: that is one node": {
			one(policy("workers", holding(5, entry("a", 5))), needy("a", grant(5, protocol.GrantCancelled, cancelledAt(-time.Hour, v1alpha1.ReasonHookFailed)),
				progress(5, protocol.PhaseDraining, phaseAt(-time.Hour)))), healthy,
		},
		"a before-hook refused, and a success since": {
			one(strict(lastReboot(-minute)), needy("a", grant(5, protocol.GrantCancelled, cancelledAt(-2*minute, v1alpha1.ReasonHookFailed)))), healthy,
		},
		"an after-hook refused": {
			one(strict(hooked("example.com/a"), holding(5, entry("a", 5))), newHost("a", grant(5, protocol.GrantActive, grantedAt(-time.Hour)),
				progress(5, protocol.PhaseRebooting, phaseAt(-time.Hour)), rebooted(-40*minute, -40*minute),
				phase(5, v1alpha1.HooksAfter, -30*minute), annotated("example.com/a", "failed: no disk"))),
			haltedByA(v1alpha1.ReasonHookFailed),
		},
		"an after-hook refused after another node was back in service, although it began before": {
			one(strict(hooked("example.com/a"), holding(5, entry("a", 5)), lastReboot(-10*minute)), newHost("a", refusedAt(-5*minute)...)),
			haltedByA(v1alpha1.ReasonHookFailed),
		},
		"an after-hook refused, and a success since": {
			one(strict(hooked("example.com/a"), holding(5, entry("a", 5)), lastReboot(-minute)), newHost("a", refusedAt(-5*minute)...)), healthy,
		},
		"an after-hook refused, and resumed since": {
			one(strict(hooked("example.com/a"), holding(5, entry("a", 5)), resumedAt(-minute)),
				newHost("a", refusedAt(-5*minute)...)),
			resumed,
		},
		"an after-hook refused, by the clock of a leader that was a day ahead, and resumed since": {
			one(strict(hooked("example.com/a"), holding(5, entry("a", 5)), resumedAt(-minute)),
				newHost("a", refusedAt(24*time.Hour)...)),
			resumed,
		},
		"healthy until now, and the first failures": {
			one(strict(was(metav1.ConditionFalse, v1alpha1.ReasonHealthy, "", 0)), needy("a", drainFailed(-2*minute))),
			haltedByA(v1alpha1.ReasonDrainTimedOut),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "halt", tc.want, tc.situation.plan().Halt)
		})
	}
}

// TestReboots_BackOff checks that a failed attempt blocks the node for 5 minutes, doubling to 6
// hours. At the end of that time the node may be rebooted.
func TestReboots_BackOff(t *testing.T) {
	cases := map[string]struct {
		failures int32
		want     time.Duration
	}{
		"first failure":          {1, 5 * time.Minute},
		"second":                 {2, 10 * time.Minute},
		"third":                  {3, 20 * time.Minute},
		"seventh":                {7, 320 * time.Minute},
		"eighth":                 {8, 6 * time.Hour},
		"ninth":                  {9, 6 * time.Hour},
		"any number of failures": {math.MaxInt32, 6 * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers"), needy("worker-1",
				progress(1, protocol.PhaseAborted, failed(tc.failures, v1alpha1.ReasonDrainTimedOut, "db-0 stays"))))
			s.now = evening.Add(tc.want - time.Second)
			if p := s.plan(); len(p.Ledger.Granted) != 0 || !p.Next.Equal(evening.Add(tc.want)) {
				t.Errorf("a second before: granted %v, next %v", p.Ledger.Granted, p.Next)
			}
			s.now = evening.Add(tc.want)
			if p := s.plan(); len(p.Ledger.Granted) != 1 {
				t.Errorf("then: %+v", p.Decisions)
			}
		})
	}
}

// TestReboots_BackOffOfAClockThatIsOff checks that a wrong clock does not change a node's back-off
// much, in either direction. It counts from the time when the drain must have ended, never from the
// future or from before the grant.
func TestReboots_BackOffOfAClockThatIsOff(t *testing.T) {
	const longest = 5*time.Minute + 20*time.Minute + 5*time.Minute // to begin, to drain, and to detach volumes
	for name, off := range map[string]time.Duration{
		"ahead by an hour": time.Hour, "ahead by a year": 365 * 24 * time.Hour, "behind by an hour": -time.Hour, "behind by twenty years": -20 * 365 * 24 * time.Hour,
	} {
		s := one(policy("workers"), needy("worker-1", grant(1, protocol.GrantActive),
			progress(1, protocol.PhaseAborted, phaseAt(off), failed(1, v1alpha1.ReasonDrainTimedOut, ""))))
		for after, want := range map[time.Duration]int{
			minute: 0, longest + 5*time.Minute - time.Second: 0, longest + 5*time.Minute: 1, off.Abs() - minute: 1, off.Abs() + minute: 1,
		} {
			s.now = evening.Add(after)
			if p := s.plan(); len(p.Ledger.Granted) != want {
				t.Errorf("%s, %s after the grant: granted %v, decisions %v", name, after, p.Ledger.Granted, p.Decisions)
			}
		}
	}
}

// TestReboots_BackOffOfAnEndThatTheManagerHasSeen checks that the back-off counts at the latest
// from the time when the manager saw the attempt end.
func TestReboots_BackOffOfAnEndThatTheManagerHasSeen(t *testing.T) {
	s := one(policy("workers", aborted("worker-1", minute)), needy("worker-1", grant(1, protocol.GrantActive),
		progress(1, protocol.PhaseAborted, phaseAt(20*minute), failed(1, v1alpha1.ReasonDrainTimedOut, ""))))
	for after, want := range map[time.Duration]int{6*minute - time.Second: 0, 6 * minute: 1} {
		s.now = evening.Add(after)
		if p := s.plan(); len(p.Ledger.Granted) != want {
			t.Errorf("%s after the grant: granted %v, decisions %v", after, p.Ledger.Granted, p.Decisions)
		}
	}
}

// TestReboots_HookBackOff checks that a node whose before-hooks refused gives its slot to others
// for a quarter of an hour.
func TestReboots_HookBackOff(t *testing.T) {
	s := one(policy("workers", maxFailures(3)),
		needy("worker-1", grant(1, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonHookFailed), because("example.com/a: failed: no disk."))),
		needy("worker-2", grant(1, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonHookTimedOut)))) // without a message
	s.now = evening.Add(14 * minute)
	var got []string
	p := s.plan()
	for _, d := range p.Decisions {
		got = append(got, d.Message)
	}
	want := []string{
		"the last attempt failed (HookFailed): example.com/a: failed: no disk; the next attempt is due Mon 2026-06-01 22:15:00 UTC; to retry now: kubectl annotate node worker-1 reboot-operator.io/retry=1 --overwrite",
		"the last attempt failed (HookTimedOut); the next attempt is due Mon 2026-06-01 22:15:00 UTC; to retry now: kubectl annotate node worker-2 reboot-operator.io/retry=1 --overwrite",
	}
	same(t, "messages", want, got)
	same(t, "failed", int32(2), p.Counts.Failed)
	if s.now = evening.Add(15 * minute); len(s.plan().Ledger.Granted) != 1 {
		t.Error("held back for longer than a quarter of an hour")
	}
}

// An administrator ends the back-off of one attempt. The annotation does nothing about a later one.
func TestReboots_RetryEndsTheBackOff(t *testing.T) {
	retry := func(number string) func(*host) { return annotated(v1alpha1.AnnotationRetry, number) }
	drainFailed := progress(7, protocol.PhaseAborted, failed(3, v1alpha1.ReasonDrainTimedOut, "db-0 stays"))
	hookFailed := grant(7, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonHookFailed))
	silent := grant(7, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonAgentSilent))
	closed := replies(policy("workers"), closedBy("default/db-0", "closed"))
	cases := map[string]struct {
		node    []func(*host)
		retried bool
	}{
		"failed drain":                       {[]func(*host){drainFailed, retry("7")}, true},
		"failed drain, earlier attempt":      {[]func(*host){drainFailed, retry("6")}, false},
		"failed drain, a later attempt":      {[]func(*host){drainFailed, retry("8")}, false},
		"failed drain, no number":            {[]func(*host){drainFailed, retry("true")}, false},
		"hook that refused":                  {[]func(*host){hookFailed, retry("7")}, true},
		"hook that refused, earlier attempt": {[]func(*host){hookFailed, retry("6")}, false},
		"silent agent":                       {[]func(*host){silent, retry("7")}, true},
		"reboot that has just succeeded":     {[]func(*host){rebootedAt(evening), retry("1")}, true},
		"failed try of a closed budget":      {[]func(*host){failedTry(2, 0), closed, retry("1")}, true},
		"failed try, earlier attempt":        {[]func(*host){failedTry(2, 0), closed, retry("0")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers"), needy("worker-1", tc.node...)).snapshot()
			s.RebootInterval = record.DefaultRebootInterval
			p := plan.Of(s)
			if tc.retried != (len(p.Ledger.Granted) == 1) {
				t.Errorf("granted %v, decisions %v", p.Ledger.Granted, p.Decisions)
			}
		})
	}
}

// TestReboots_NoBackOff checks what does not hold a node back.
func TestReboots_NoBackOff(t *testing.T) {
	otherBoot := func(p *protocol.Progress) { p.BootID = "another" }
	cases := map[string]func(*host){
		"an attempt that was cancelled":               progress(1, protocol.PhaseAborted, failed(0, v1alpha1.ReasonCancelled, "")),
		"a failure in an earlier boot (behaviour 50)": progress(1, protocol.PhaseAborted, failed(3, v1alpha1.ReasonDrainTimedOut, ""), otherBoot),
		"a silent agent, a quarter of an hour ago":    grant(1, protocol.GrantCancelled, cancelledAt(-15*time.Minute, v1alpha1.ReasonAgentSilent)),
		"a before-hook that refused in an earlier boot": grant(1, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonHookFailed),
			func(g *protocol.Grant) { g.BootID = "another" }),
		"a reboot that is finished": func(h *host) {
			grant(1, protocol.GrantFinished)(h)
			progress(1, protocol.PhaseRebooting, failed(2, "", ""), otherBoot)(h)
		},
	}
	for name, option := range cases {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers"), needy("worker-1", option)).plan()
			if len(p.Ledger.Granted) != 1 || p.Ledger.Granted[0].Seq != 2 {
				t.Errorf("granted %v, decisions %v", p.Ledger.Granted, p.Decisions)
			}
		})
	}
}
