package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

func failuresMax(n int32) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Spec.Failures = &v1alpha1.Failures{Max: &n} }
}

// resumedAt is a policy that an administrator resumed at an instant, counted from the evening.
func resumedAt(since time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionHalted, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonResumed), LastTransitionTime: at(since),
		}}
	}
}

// lost puts a reboot in whose course the Node was deleted into the history.
func lost(node, ring string, ended time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.History = append(p.Status.History, v1alpha1.PastReboot{
			Node: node, Ring: ring, Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGoneInReboot, EndedAt: at(ended),
		})
	}
}

// Whatever a cluster looks like, the ledger knows of each reboot that may be past the point of no return. Where its Node is deleted, that is
// one failure at once, and none where the agent had not come so far.
func TestReboots_ADeletedNodeFailsWhereItWasRebooting(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for _, r := range p.Reboots {
			if r.Rebooting() && r.Action != plan.ReleaseEntry && r.Entry.RebootingAt == nil {
				t.Fatalf("%s reboots, and the ledger does not know\n%v", r.Entry.Node, s)
			}
			if n := r.Node; n != nil && r.Action == plan.Wait && n.In(r.Entry.Seq, protocol.PhaseDraining) && r.Entry.RebootingAt != nil {
				t.Fatalf("%s drains, and reboots by the ledger\n%v", n.Name, s)
			}
		}
		if p.Halt.Halted || p.Halt.Reason == v1alpha1.ReasonResumed || snapshot.Ledger != nil || p.InLedgerOf != "" {
			return
		}
		snapshot.Policy = snapshot.Policy.DeepCopy()
		failuresMax(1)(snapshot.Policy)
		snapshot.Policy.Status.History, snapshot.Policy.Status.Grants = nil, p.Ledger()
		rebooting := slices.ContainsFunc(p.Ledger(), func(e v1alpha1.LedgerEntry) bool {
			return e.RebootingAt != nil && snapshot.Governor.OwnerOf(snapshot.Policy.Name, e) == snapshot.Policy.Name
		})
		snapshot.Nodes = nil
		if after := plan.Of(snapshot); after.Halt.Halted != rebooting {
			t.Fatalf("every Node is deleted: halted %t, rebooting %t, ledger %+v\n%v", after.Halt.Halted, rebooting, p.Ledger(), s)
		}
	})
}

// TestReboots_Halt: a policy stops by itself when failures.max nodes have failed since the last success, and goes on when
// an administrator requests it.
func TestReboots_Halt(t *testing.T) {
	drainFailed := func(at time.Duration) func(*host) {
		return progress(1, protocol.PhaseAborted, phaseAt(at), failed(1, v1alpha1.ReasonDrainTimedOut, "db-0 stays"))
	}
	allFailed := func(size int) (hosts []*host) {
		for i := range size {
			hosts = append(hosts, needy(fmt.Sprintf("worker-%d", i+1), drainFailed(-minute)))
		}
		return hosts
	}
	later := func(after time.Duration, s situation) situation {
		s.now = evening.Add(after)
		return s
	}
	halted := func(is bool, reason v1alpha1.Reason, message string, since time.Duration) func(*v1alpha1.RebootPolicy) {
		c := metav1.Condition{Type: v1alpha1.ConditionHalted, Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
		if is {
			c.Status = metav1.ConditionTrue
		}
		c.LastTransitionTime = metav1.NewTime(evening.Add(since))
		return func(p *v1alpha1.RebootPolicy) { p.Status.Conditions = []metav1.Condition{c} }
	}
	succeeded := func(at time.Duration) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) { p.Status.LastRebootAt = &metav1.Time{Time: evening.Add(at)} }
	}
	most := failuresMax
	workers := func(options ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
		return policy("workers", options...)
	}
	healthy := plan.Halt{Reason: v1alpha1.ReasonHealthy}
	haltedBy := func(message string) plan.Halt {
		return plan.Halt{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: message}
	}
	goneInReboot := entry("a", 5)
	goneInReboot.RebootingAt, goneInReboot.NodeUID = new(at(-10*minute)), "uid"
	lateReboot := options(grant(5, protocol.GrantActive, grantedAt(-time.Hour)), progress(5, protocol.PhaseRebooting, phaseAt(-time.Hour)), notReady)
	// refusedAt is a node that is back, whose hook was asked half an hour ago, and which shows since then that it refused.
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
		want      plan.Halt
	}{
		"nothing failed": {one(workers(), needy("a")), healthy},
		"one failed, two may": {
			one(workers(), needy("a", drainFailed(-minute)), needy("b")), healthy,
		},
		"halted, as the condition has it, without the command": {
			one(workers(halted(true, v1alpha1.ReasonTooManyFailures, "1 node failed"+plan.ResumeHint("workers"), -minute)), needy("a")), haltedBy("1 node failed"),
		},
		"two failed": {
			one(workers(), needy("b", drainFailed(-minute)), needy("a", drainFailed(-time.Hour)), needy("c")),
			haltedBy("2 nodes failed since the last success (failures.max is 2): a (DrainTimedOut), b (DrainTimedOut)"),
		},
		"one failed, one may": {
			one(workers(most(1)), needy("a", drainFailed(-minute))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"more failed than anybody reads": {
			one(workers(most(3)), allFailed(7)...),
			haltedBy("7 nodes failed since the last success (failures.max is 3): worker-1 (DrainTimedOut), worker-2 (DrainTimedOut), " +
				"worker-3 (DrainTimedOut), worker-4 (DrainTimedOut), worker-5 (DrainTimedOut) and 2 more"),
		},
		"a clock that is a day ahead: it failed after its grant": {
			one(workers(most(1)), needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(24*time.Hour))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"and a resume holds when the node is granted anew": {
			one(workers(most(1), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -minute)),
				needy("a", grant(2, protocol.GrantActive), drainFailed(24*time.Hour))),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"and when the day has passed": {
			later(24*time.Hour, one(workers(most(1), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", 0)),
				needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(24*time.Hour)))),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"and a resume after the grant is one after the failure": {
			one(workers(most(1), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", 0)),
				needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(24*time.Hour))),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"a clock that is a day behind: it failed after its grant, and after what came before that": {
			one(workers(most(1), succeeded(-2*minute)), needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(-24*time.Hour))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"a clock that is a day behind, and a success since its grant": {
			one(workers(most(1), succeeded(0)), needy("a", grant(1, protocol.GrantActive, grantedAt(-minute)), drainFailed(-24*time.Hour))), healthy,
		},
		"a node that failed many times is one node": {
			one(workers(), needy("a", progress(1, protocol.PhaseAborted, failed(9, v1alpha1.ReasonDrainTimedOut, "")))), healthy,
		},
		"a success since": {
			one(workers(succeeded(-minute)), needy("a", drainFailed(-2*minute)), needy("b", drainFailed(-3*minute))), healthy,
		},
		"a success in the very second": {
			one(workers(succeeded(-minute)), needy("a", drainFailed(-minute)), needy("b", drainFailed(-minute))), healthy,
		},
		"a node that failed and does not ask any more": {
			one(workers(most(1)), newHost("a", drainFailed(-minute))), healthy,
		},
		"an attempt that was cancelled is no failure": {
			one(workers(most(1)), needy("a", progress(1, protocol.PhaseAborted, failed(0, v1alpha1.ReasonCancelled, "")))), healthy,
		},
		"a node of another policy": {
			situation{
				policies: []*v1alpha1.RebootPolicy{workers(most(1)), policy("other", priority(1))},
				hosts:    []*host{needy("a", drainFailed(-minute))},
			}, healthy,
		},
		"a node that did not come back (behaviour 26)": {
			one(workers(most(1), holding(5, entry("a", 5))), newHost("a", lateReboot...)),
			haltedBy("1 node failed since the last success (failures.max is 1): a (RebootTimedOut)"),
		},
		"a node that did not come back, and a success since": {
			one(workers(most(1), holding(5, entry("a", 5)), succeeded(-minute)), newHost("a", lateReboot...)), healthy,
		},
		"a drain whose agent is dead": {
			one(workers(most(1), holding(5, entry("a", 5))), needy("a", grant(5, protocol.GrantActive, grantedAt(-time.Hour)), progress(5, protocol.PhaseDraining, phaseAt(-time.Hour)))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"a finished reboot that is not released, of a node that is not Ready again": {
			one(workers(most(1), holding(5, entry("a", 5))), newHost("a", append(lateReboot[1:], grant(5, protocol.GrantFinished), bootID("two"))...)),
			healthy,
		},
		"a Node that is gone": {one(workers(most(1), holding(5, entry("a", 5)))), healthy},
		"a Node that is gone, which was past the point of no return": {
			one(workers(most(1), holding(5, goneInReboot))), haltedBy("1 node failed since the last success (failures.max is 1): a (NodeGoneInReboot)"),
		},
		"one that is registered anew": {
			one(workers(most(1), holding(5, goneInReboot)), newHost("a", uid("other"))), haltedBy("1 node failed since the last success (failures.max is 1): a (NodeGoneInReboot)"),
		},
		"a Node that was deleted in its reboot, by the history, and a failure": {
			one(workers(lost("a", "", -minute)), needy("b", drainFailed(-minute))),
			haltedBy("2 nodes failed since the last success (failures.max is 2): a (NodeGoneInReboot), b (DrainTimedOut)"),
		},
		"a Node that was deleted in its reboot, and a success since": {one(workers(most(1), lost("a", "", -2*minute), succeeded(-minute))), healthy},
		"a Node that was deleted in its reboot, and resumed since": {
			one(workers(most(1), lost("a", "", -2*minute), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -minute))),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"a Node that was deleted in its reboot, by the clock of a leader that was a day ahead": {one(workers(most(1), lost("a", "", 24*time.Hour))), healthy},
		"halted stays halted, in the words it halted with": {
			one(workers(halted(true, v1alpha1.ReasonTooManyFailures, "2 nodes failed", 0)), needy("a")), haltedBy("2 nodes failed"),
		},
		"an administrator resumes": {
			one(workers(halted(true, v1alpha1.ReasonTooManyFailures, "2 nodes failed", 0), resume("fixed")), needy("a", drainFailed(0)), needy("b", drainFailed(0))),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"an administrator resumes without a reason: the shell drops the value, so it must count": {
			one(workers(halted(true, v1alpha1.ReasonTooManyFailures, "2 nodes failed", 0), resume("")), needy("a")),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: no reason given"},
		},
		"an administrator resumes with more words than a status holds": {
			one(workers(resume(strings.Repeat("x", 40_000))), needy("a")),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: " + strings.Repeat("x", 509) + "…"},
		},
		"resumed, and failures before that do not count": {
			one(workers(most(1), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -minute), succeeded(-time.Hour)), needy("a", drainFailed(-2*minute))),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"resumed, and failed again": {
			one(workers(most(1), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -3*minute)), needy("a", drainFailed(-2*minute))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"resumed by the clock of a leader that was a day ahead, and failed again": {
			one(workers(most(1), resumedAt(24*time.Hour)), needy("a", drainFailed(-2*minute))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"resumed, and a success since, and failed again": {
			one(workers(most(1), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -5*minute), succeeded(-3*minute)), needy("a", drainFailed(-2*minute))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"resumed, and a success since, and failed between the two": {
			one(workers(most(1), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -5*minute), succeeded(-3*minute)), needy("a", drainFailed(-4*minute))),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"a success in the future hides no failure": {
			one(workers(most(1), succeeded(time.Hour)), needy("a", drainFailed(-2*minute))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
		"a success by the clock of a leader that was a little ahead": {
			one(workers(most(1), succeeded(minute)), needy("a", drainFailed(-2*minute))), healthy,
		},
		"a before-hook refused": {
			one(workers(most(1)), needy("a", grant(5, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonHookFailed)))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (HookFailed)"),
		},
		"a drain failed and then a before-hook refused: that is one node": {
			one(workers(), needy("a", drainFailed(-time.Hour), grant(5, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonHookTimedOut)))), healthy,
		},
		"a cancelled grant whose agent drains on all the same: that is one node": {
			one(workers(holding(5, entry("a", 5))), needy("a", grant(5, protocol.GrantCancelled, cancelledAt(-time.Hour, v1alpha1.ReasonHookFailed)),
				progress(5, protocol.PhaseDraining, phaseAt(-time.Hour)))), healthy,
		},
		"a before-hook refused, and a success since": {
			one(workers(most(1), succeeded(-minute)), needy("a", grant(5, protocol.GrantCancelled, cancelledAt(-2*minute, v1alpha1.ReasonHookFailed)))), healthy,
		},
		"an after-hook refused": {
			one(workers(most(1), hooked("example.com/a"), holding(5, entry("a", 5))), newHost("a", grant(5, protocol.GrantActive, grantedAt(-time.Hour)),
				progress(5, protocol.PhaseRebooting, phaseAt(-time.Hour)), rebooted(-40*minute, -40*minute),
				phase(5, v1alpha1.HooksAfter, -30*minute), annotated("example.com/a", "failed: no disk"))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (HookFailed)"),
		},
		"an after-hook refused after another node was back in service, though it was asked before": {
			one(workers(most(1), hooked("example.com/a"), holding(5, entry("a", 5)), succeeded(-10*minute)), newHost("a", refusedAt(-5*minute)...)),
			haltedBy("1 node failed since the last success (failures.max is 1): a (HookFailed)"),
		},
		"an after-hook refused, and a success since": {
			one(workers(most(1), hooked("example.com/a"), holding(5, entry("a", 5)), succeeded(-minute)), newHost("a", refusedAt(-5*minute)...)), healthy,
		},
		"an after-hook refused, and resumed since": {
			one(workers(most(1), hooked("example.com/a"), holding(5, entry("a", 5)), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -minute)),
				newHost("a", refusedAt(-5*minute)...)),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"an after-hook refused, by the clock of a leader that was a day ahead, and resumed since": {
			one(workers(most(1), hooked("example.com/a"), holding(5, entry("a", 5)), halted(false, v1alpha1.ReasonResumed, "resumed: fixed", -minute)),
				newHost("a", refusedAt(24*time.Hour)...)),
			plan.Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"},
		},
		"healthy until now, and the first failures": {
			one(workers(most(1), halted(false, v1alpha1.ReasonHealthy, "", 0)), needy("a", drainFailed(-2*minute))),
			haltedBy("1 node failed since the last success (failures.max is 1): a (DrainTimedOut)"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "halt", tc.want, tc.situation.plan().Halt)
		})
	}
}
