package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// rebootStep is what is to be done about a reboot, for comparing.
type rebootStep struct {
	Action   plan.Action
	Reason   v1alpha1.Reason
	Message  string
	Stage    v1alpha1.HookStage
	FailedAt time.Time
	Until    time.Time
	// DrainUntil is when drain.timeout ends the drain.
	DrainUntil time.Time
}

// The reboot of these tables is number 5 of policy workers, of node worker-1.
const rebootSeq = 5

type rebootCase struct {
	node    []func(*host)
	policy  []func(*v1alpha1.RebootPolicy)
	now     time.Duration
	window  *window.State
	needs   bool
	gone    bool
	madeFor types.UID // the Node that the ledger names
	another *v1alpha1.RebootPolicy
	want    rebootStep
}

func (tc rebootCase) reboot(t *testing.T) plan.Reboot {
	t.Helper()
	machine := newHost
	if tc.needs {
		machine = needy
	}
	e := entry("worker-1", rebootSeq)
	e.NodeUID = tc.madeFor
	s := one(policy("workers", append(tc.policy, holding(rebootSeq, e))...))
	s.now, s.window = evening.Add(tc.now), tc.window
	if !tc.gone {
		s.hosts = []*host{machine("worker-1", tc.node...)}
	}
	if tc.another != nil {
		s.policies = append(s.policies, tc.another)
	}
	p := s.plan()
	if len(p.Reboots) != 1 {
		t.Fatalf("reboots: %+v", p.Reboots)
	}
	return p.Reboots[0]
}

// uid is that of the Node.
func uid(of types.UID) func(*host) { return func(h *host) { h.node.UID = of } }

func testReboots(t *testing.T, cases map[string]rebootCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := tc.reboot(t)
			same(t, "reboot", tc.want, rebootStep{f.Action, f.Reason, f.Message, f.Stage, f.FailedAt, f.Until, f.DrainUntil})
		})
	}
}

// TestReboots_BeforeTheStart: until the agent begins, everything that blocks the reboot still counts.
func TestReboots_BeforeTheStart(t *testing.T) {
	active := grant(rebootSeq, protocol.GrantActive)
	takenBack := func(reason v1alpha1.Reason, message string) rebootStep {
		return rebootStep{Action: plan.CancelGrant, Reason: reason, Message: message}
	}
	deleted := func(p *v1alpha1.RebootPolicy) { p.DeletionTimestamp = &metav1.Time{Time: evening} }
	testReboots(t, map[string]rebootCase{
		"the node does not know of it yet": {
			needs: true, want: rebootStep{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted},
		},
		"it is the very Node that the ledger names": {
			needs: true, node: options(uid("1")), madeFor: "1", want: rebootStep{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted},
		},
		"the node shows an older grant": {
			needs: true, node: []func(*host){grant(4, protocol.GrantFinished)}, want: rebootStep{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted},
		},
		"the agent has five minutes": {
			needs: true, node: []func(*host){active}, now: 299 * time.Second,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "granted; the agent has not begun yet", Until: instantAfter(5 * minute)},
		},
		"the agent is silent": {
			needs: true, node: []func(*host){active}, now: 5 * minute,
			want: takenBack(v1alpha1.ReasonAgentSilent, "the agent did not act on its grant within 5m0s: is the agent's pod running on this node?"),
		},
		"the node was rebooted by hand (behaviour 50)": {
			needs: true, node: []func(*host){active, bootID("worker-1-boot-2")},
			want: takenBack(v1alpha1.ReasonCancelled, "the node was rebooted by somebody else after the grant"),
		},
		"the need is withdrawn (behaviour 3)": {
			node: []func(*host){active}, want: takenBack(v1alpha1.ReasonCancelled, "the node does not ask for a reboot any more"),
		},
		"the need is withdrawn before the grant is published": {
			want: takenBack(v1alpha1.ReasonCancelled, "the node does not ask for a reboot any more"),
		},
		"something holds the host up": {
			needs: true, node: []func(*host){active, objecting(`{"reason":"Inhibited","message":"dpkg: upgrading"}`)},
			want: takenBack(v1alpha1.ReasonInhibited, "dpkg: upgrading"),
		},
		"another policy of the same priority selects the node": {
			needs: true, node: []func(*host){active}, another: policy("rivals"),
			want: takenBack(v1alpha1.ReasonPolicyConflict, "policies rivals, workers select the node with the same priority"),
		},
		"another policy governs the node": {
			needs: true, node: []func(*host){active}, another: policy("better", priority(1)),
			want: takenBack(v1alpha1.ReasonNoPolicy, "policy workers does not govern the node any more"),
		},
		"no policy governs the node": {
			needs: true, node: []func(*host){active}, policy: []func(*v1alpha1.RebootPolicy){selects("pool", "db")},
			want: takenBack(v1alpha1.ReasonNoPolicy, "policy workers does not govern the node any more"),
		},
		"the policy is being deleted": {
			needs: true, node: []func(*host){active}, policy: []func(*v1alpha1.RebootPolicy){deleted},
			want: takenBack(v1alpha1.ReasonCancelled, "policy workers is being deleted"),
		},
		"the policy only reports now": {
			needs: true, node: []func(*host){active}, policy: []func(*v1alpha1.RebootPolicy){dryRun},
			want: takenBack(v1alpha1.ReasonDryRun, "policy workers only reports"),
		},
		"the node is paused (behaviour 23)": {
			needs: true, node: []func(*host){active, annotated(v1alpha1.AnnotationPaused, "true")},
			want: takenBack(v1alpha1.ReasonNodePaused, "the node is paused; kubectl annotate node worker-1 reboot-operator.io/paused- goes on"),
		},
		"the policy is paused (behaviour 22)": {
			needs: true, node: []func(*host){active}, policy: []func(*v1alpha1.RebootPolicy){paused(nil, "")},
			want: takenBack(v1alpha1.ReasonPaused, "policy workers is paused"),
		},
		"the window has closed (behaviour 35)": {
			needs: true, node: []func(*host){active}, window: &window.State{},
			want: takenBack(v1alpha1.ReasonWindowClosed, "no window is open; none opens within a year"),
		},
		"the node is not Ready any more": {
			needs: true, node: []func(*host){active, notReady},
			want: takenBack(v1alpha1.ReasonNodeUnavailable, "the node is not Ready: a reboot could not be proved; repair it first"),
		},
		"the agent objects (behaviour 46)": {
			needs: true, node: []func(*host){active, objecting(`{"reason":"Inhibited","message":"dpkg"}`)},
			want: takenBack(v1alpha1.ReasonInhibited, "dpkg"),
		},
		"locksmithd has started since (behaviour 57)": {
			needs: true, node: []func(*host){active, objecting(`{"reason":"CoordinatorConflict","message":"locksmithd"}`)},
			want: takenBack(v1alpha1.ReasonCoordinatorConflict, "locksmithd"),
		},
		"the budget is used up by others since, which is no reason": {
			needs: true, node: []func(*host){active, cordoned},
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "granted; the agent has not begun yet", Until: instantAfter(5 * minute)},
		},
		"the node is in the middle of another policy's grant": {
			needs: true, node: []func(*host){grant(3, protocol.GrantActive, givenBy("old")), progress(3, protocol.PhaseRebooting)},
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "waits until grant 3 of policy old is over"},
		},
		"the progress cannot be read, and nobody has repaired it in time": {
			needs: true, node: []func(*host){active, annotated(v1alpha1.AnnotationProgress, "?")}, now: time.Hour,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonRebootTimedOut, FailedAt: instantAfter(time.Hour),
				Message: "how far the reboot granted at Mon 2026-06-01 22:00:00 UTC is cannot be read, and was not repaired in time: annotation " +
					"reboot-operator.io/progress: invalid character '?' looking for beginning of value; its slot is kept: see to the machine and its agent; " +
					"once it is proved off, deleting the Node frees the slot",
			},
		},
		"the agent is silent, whatever a grant of 2099 says": {
			needs: true, node: []func(*host){grant(rebootSeq, protocol.GrantActive, grantedAt(73*365*24*time.Hour))},
			want: takenBack(v1alpha1.ReasonRecordUnreadable, "the grant is of Thu 2099-05-14 22:00:00 UTC, more than an hour ahead"),
		},
		"the progress cannot be read: the agent may be anywhere": {
			needs: true, node: []func(*host){active, annotated(v1alpha1.AnnotationProgress, "?")}, now: 59 * minute,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonRecordUnreadable, Until: instantAfter(time.Hour),
				Message: "annotation reboot-operator.io/progress: invalid character '?' looking for beginning of value; the slot is kept until the agent repairs it",
			},
		},
		"the progress cannot be read, and the node does not show it yet": {
			needs: true, node: []func(*host){annotated(v1alpha1.AnnotationProgress, "?")},
			want: rebootStep{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted},
		},
	})
}

// TestReboots_UnderWay: a drain that has begun is finished; only a new boot ID ends a reboot.
func TestReboots_UnderWay(t *testing.T) {
	active := grant(rebootSeq, protocol.GrantActive)
	drains := func(mods ...func(*host)) []func(*host) {
		return append([]func(*host){active, progress(rebootSeq, protocol.PhaseDraining)}, mods...)
	}
	reboots := func(mods ...func(*host)) []func(*host) {
		return append([]func(*host){active, progress(rebootSeq, protocol.PhaseRebooting)}, mods...)
	}
	draining := rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "draining", Until: instantAfter(30 * minute), DrainUntil: instantAfter(20 * minute)}
	rebooting := rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "rebooting", Until: instantAfter(30 * minute)}
	booted := rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "booted; waiting for the node to be Ready and for its agent", Until: instantAfter(30 * minute)}
	timeouts := func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{Timeout: &metav1.Duration{Duration: time.Hour}}
		p.Spec.Reboot = &v1alpha1.Reboot{Timeout: &metav1.Duration{Duration: 2 * time.Hour}}
		p.Spec.Settle = &metav1.Duration{}
	}
	const years = 73 * 365 * 24 * time.Hour
	noted := rebootStep{
		Action: plan.BeginHooks, Reason: v1alpha1.ReasonGranted, Stage: v1alpha1.HooksAfter, Message: "back, with a clock that is off: settling begins",
	}
	notReported := nodeCondition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, 0)
	testReboots(t, map[string]rebootCase{
		"draining": {node: drains(), want: draining},
		"draining while the window closes (behaviour 36)":           {node: drains(), window: &window.State{}, want: draining},
		"draining while the policy is paused (behaviour 22)":        {node: drains(), policy: []func(*v1alpha1.RebootPolicy){paused(nil, "")}, want: draining},
		"draining while the node is paused":                         {node: drains(annotated(v1alpha1.AnnotationPaused, "true")), want: draining},
		"draining while another policy governs the node":            {node: drains(), another: policy("better", priority(1)), want: draining},
		"draining, and rebooted by hand: the agent is going to say": {node: drains(bootID("worker-1-boot-2")), want: draining},
		"draining under a grant that somebody removed":              {node: drains()[1:], want: draining},
		"draining too long: reported, and the slot is kept (behaviour 26)": {node: drains(), now: 30 * minute, want: rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonDrainTimedOut, FailedAt: instantAfter(30 * minute), DrainUntil: instantAfter(20 * minute),
			Message: "the drain began at Mon 2026-06-01 22:00:00 UTC and should have ended within 20m0s; " +
				"its slot is kept until the agent answers: look at the agent's pod on this node",
		}},
		"draining, and its clock is a little behind": {
			node: options(active, progress(rebootSeq, protocol.PhaseDraining, phaseAt(-5*minute))), now: minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "draining", Until: instantAfter(25 * minute), DrainUntil: instantAfter(15 * minute)},
		},
		"draining, and its clock is a day behind: it began after its grant": {
			node: options(active, progress(rebootSeq, protocol.PhaseDraining, phaseAt(-24*time.Hour))), now: minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "draining", Until: instantAfter(35 * minute), DrainUntil: instantAfter(25 * minute)},
		},
		"draining under a grant that somebody removed, and its clock is a day behind: it began after its entry": {
			node: options(progress(rebootSeq, protocol.PhaseDraining, phaseAt(-24*time.Hour))), now: minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "draining", Until: instantAfter(35 * minute), DrainUntil: instantAfter(25 * minute)},
		},
		"draining with a time-out of its own": {
			node: drains(), policy: []func(*v1alpha1.RebootPolicy){timeouts}, now: 69 * minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "draining", Until: instantAfter(70 * minute), DrainUntil: instantAfter(time.Hour)},
		},
		"cordoned, in the lead time: drain.timeout counts from its end": {
			node: drains(), policy: []func(*v1alpha1.RebootPolicy){leads(2 * minute)}, now: minute,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "cordoned; pods are asked to leave from Mon 2026-06-01 22:02:00 UTC on",
				Until: instantAfter(32 * minute), DrainUntil: instantAfter(22 * minute),
			},
		},
		"rebooting": {node: reboots(notReady), want: rebooting},
		"rebooting, and Ready as if nothing happened (behaviour 63)": {node: reboots(), now: 29 * minute, want: rebooting},
		"rebooting, and the need is gone (behaviour 19)":             {node: reboots(notReady), want: rebooting},
		"rebooting, and the kubelet reports no boot ID":              {node: reboots(bootID("")), want: rebooting},
		"up, and not Ready (behaviour 49)":                           {node: reboots(bootID("worker-1-boot-2"), notReady), want: booted},
		"up, and the agent has not reported (behaviour 48)":          {node: reboots(bootID("worker-1-boot-2"), notReported), want: booted},
		"not back in time: reported, and the slot is kept (behaviours 26, 47)": {node: reboots(notReady), now: 30 * minute, want: rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonRebootTimedOut, FailedAt: instantAfter(30 * minute),
			Message: "the node was sent to reboot at Mon 2026-06-01 22:00:00 UTC and was not back within 30m0s; " +
				"its slot is kept: see to the machine; once it is proved off, deleting the Node frees the slot",
		}},
		"not down in time at all, Ready on the same boot (behaviour 47)": {node: reboots(), now: 30 * minute, want: rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonRebootTimedOut, FailedAt: instantAfter(30 * minute),
			Message: "the node was sent to reboot at Mon 2026-06-01 22:00:00 UTC and is Ready on the boot from before, which has not ended within 30m0s; " +
				"its slot is kept: event RebootRefused on the node reports what keeps it, or a reboot by hand ends it",
		}},
		"up in time, and its agent does not report": {node: reboots(bootID("worker-1-boot-2"), notReported), now: 30 * minute, want: rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonAgentSilent, FailedAt: instantAfter(30 * minute),
			Message: "the node was sent to reboot at Mon 2026-06-01 22:00:00 UTC and is Ready again, but its agent has not reported within 30m0s; " +
				"its slot is kept until it does: look at the agent's pod on this node",
		}},
		"rebooting, and its clock is a day behind: it may have drained for as long as it may": {
			node: options(active, progress(rebootSeq, protocol.PhaseRebooting, phaseAt(-24*time.Hour)), notReady), now: minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "rebooting", Until: instantAfter(60 * minute)},
		},
		"not back in time by a clock that is a day behind": {
			node: options(active, progress(rebootSeq, protocol.PhaseRebooting, phaseAt(-24*time.Hour)), notReady), now: 60 * minute,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonRebootTimedOut, FailedAt: instantAfter(60 * minute),
				Message: "the node was sent to reboot at Mon 2026-06-01 22:30:00 UTC and was not back within 30m0s; " +
					"its slot is kept: see to the machine; once it is proved off, deleting the Node frees the slot",
			},
		},
		"rebooting with a time-out of its own": {
			node: reboots(notReady), policy: []func(*v1alpha1.RebootPolicy){timeouts}, now: time.Hour,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "rebooting", Until: instantAfter(2 * time.Hour)},
		},
		"back, and settles from Ready on (behaviour 24)": {node: reboots(rebooted(10*minute, 9*minute)), now: 10 * minute, want: rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Until: instantAfter(11 * minute),
			Message: "back since Mon 2026-06-01 22:10:00 UTC, settling until Mon 2026-06-01 22:11:00 UTC",
		}},
		"back, and settles from the agent's report on": {node: reboots(rebooted(-time.Hour, 9*minute)), now: 9 * minute, want: rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Until: instantAfter(10 * minute),
			Message: "back since Mon 2026-06-01 22:09:00 UTC, settling until Mon 2026-06-01 22:10:00 UTC",
		}},
		"back, and its clock is a little ahead": {node: reboots(rebooted(12*minute, 9*minute)), now: 10 * minute, want: rebootStep{
			Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Until: instantAfter(13 * minute),
			Message: "back since Mon 2026-06-01 22:12:00 UTC, settling until Mon 2026-06-01 22:13:00 UTC",
		}},
		"back, and its clock is an hour ahead: the manager notes that it is back": {
			node: reboots(rebooted(70*minute, 69*minute)), now: 10 * minute, want: noted,
		},
		"back, and its agent's clock is an hour ahead": {
			node: reboots(rebooted(9*minute, 70*minute)), now: 10 * minute, want: noted,
		},
		"back, and its clock is three hours behind": {
			node: reboots(rebooted(-170*minute, -170*minute)), now: 10 * minute, want: noted,
		},
		"and settles from then on, not longer": {
			node: reboots(rebooted(190*minute, 190*minute), phase(rebootSeq, v1alpha1.HooksAfter, 9*minute)), now: 10 * minute,
			want: rebootStep{Action: plan.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"},
		},
		"and not shorter": {
			node: reboots(rebooted(-170*minute, -170*minute), phase(rebootSeq, v1alpha1.HooksAfter, 9*minute)), now: 10*minute - time.Second,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Until: instantAfter(10 * minute),
				Message: "back since Mon 2026-06-01 22:09:00 UTC, settling until Mon 2026-06-01 22:10:00 UTC",
			},
		},
		"draining, by a clock that is in 2099, and it is not overdue yet": {
			node: []func(*host){active, progress(rebootSeq, protocol.PhaseDraining, phaseAt(years))}, now: 34 * minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "draining", Until: instantAfter(35 * minute), DrainUntil: instantAfter(25 * minute)},
		},
		"draining, by a clock that is in 2099": {
			node: []func(*host){active, progress(rebootSeq, protocol.PhaseDraining, phaseAt(years))}, now: 35 * minute,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonDrainTimedOut, FailedAt: instantAfter(35 * minute), DrainUntil: instantAfter(25 * minute), Message: "the drain began at Mon 2026-06-01 22:05:00 UTC " +
					"and should have ended within 20m0s; its slot is kept until the agent answers: look at the agent's pod on this node",
			},
		},
		"draining, by a clock that was three hours ahead, which is now": {
			node: []func(*host){active, progress(rebootSeq, protocol.PhaseDraining, phaseAt(180*minute))}, now: 181 * minute,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonDrainTimedOut, FailedAt: instantAfter(35 * minute), DrainUntil: instantAfter(25 * minute), Message: "the drain began at Mon 2026-06-01 22:05:00 UTC " +
					"and should have ended within 20m0s; its slot is kept until the agent answers: look at the agent's pod on this node",
			},
		},
		"rebooting, by a clock that is in 2099": {
			node: []func(*host){active, progress(rebootSeq, protocol.PhaseRebooting, phaseAt(years)), notReady}, now: time.Hour,
			want: rebootStep{
				Action: plan.Wait, Reason: v1alpha1.ReasonRebootTimedOut, FailedAt: instantAfter(time.Hour), Message: "the node was sent to reboot at Mon 2026-06-01 22:30:00 UTC " +
					"and was not back within 30m0s; its slot is kept: see to the machine; once it is proved off, deleting the Node frees the slot",
			},
		},
		"rebooting, by a clock that is three hours behind, and it is not overdue yet": {
			node: []func(*host){active, progress(rebootSeq, protocol.PhaseRebooting, phaseAt(-180*minute)), notReady}, now: 59 * minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "rebooting", Until: instantAfter(time.Hour)},
		},
		"draining late, after an outage of half an hour": {
			node: []func(*host){active, progress(rebootSeq, protocol.PhaseDraining, phaseAt(30*minute))}, now: 40 * minute,
			want: rebootStep{Action: plan.Wait, Reason: v1alpha1.ReasonGranted, Message: "draining", Until: instantAfter(time.Hour), DrainUntil: instantAfter(50 * minute)},
		},
		"back and settled (behaviour 49)": {
			node: reboots(rebooted(9*minute, 9*minute)), now: 10 * minute,
			want: rebootStep{Action: plan.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"},
		},
		"back late is back": {
			node: reboots(rebooted(9*time.Hour, 9*time.Hour)), now: 10 * time.Hour,
			want: rebootStep{Action: plan.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"},
		},
		"back without a time to settle": {
			node: reboots(rebooted(9*minute, 9*minute)), policy: []func(*v1alpha1.RebootPolicy){timeouts}, now: 9 * minute,
			want: rebootStep{Action: plan.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"},
		},
		"back, though somebody cancelled the grant by hand": {
			node: append(reboots(rebooted(9*minute, 9*minute)), grant(rebootSeq, protocol.GrantCancelled)), now: 10 * minute,
			want: rebootStep{Action: plan.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"},
		},
		"rebooting, and somebody removed the grant": {
			node: reboots()[1:], want: rebootStep{Action: plan.PublishGrant, Reason: v1alpha1.ReasonGranted, Message: "rebooting; the grant is missing"},
		},
	})
}

// TestReboots_Over: when an entry leaves the ledger, and why it ended.
func TestReboots_Over(t *testing.T) {
	released := func(reason v1alpha1.Reason, message string) rebootStep {
		return rebootStep{Action: plan.ReleaseEntry, Reason: reason, Message: message}
	}
	testReboots(t, map[string]rebootCase{
		"the Node is deleted (behaviour 25)": {gone: true, want: released(v1alpha1.ReasonNodeGone, "the Node object was deleted")},
		"the Node is deleted, and another one was registered: it has seen no number": {
			node: options(uid("2")), madeFor: "1", needs: true,
			want: released(v1alpha1.ReasonNodeGone, "the Node object was deleted, and another one was registered under its name"),
		},
		"another Node has the name, and a copy of the record": {
			node: options(uid("2"), grant(rebootSeq, protocol.GrantActive), progress(rebootSeq, protocol.PhaseRebooting)), madeFor: "1",
			want: released(v1alpha1.ReasonNodeGone, "the Node object was deleted, and another one was registered under its name"),
		},
		"finished": {
			node: []func(*host){grant(rebootSeq, protocol.GrantFinished), progress(rebootSeq, protocol.PhaseRebooting)},
			want: released(v1alpha1.ReasonGranted, "back in service"),
		},
		"given up by the agent (behaviour 38)": {
			node: []func(*host){
				grant(rebootSeq, protocol.GrantActive), progress(rebootSeq, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "db-0 stays")),
			},
			want: released(v1alpha1.ReasonDrainTimedOut, "db-0 stays"),
		},
		"given up by the agent, and the grant is gone": {
			node: []func(*host){progress(rebootSeq, protocol.PhaseAborted, failed(1, v1alpha1.ReasonRecordUnreadable, "?"))},
			want: released(v1alpha1.ReasonRecordUnreadable, "?"),
		},
		"taken back before the start": {
			node: []func(*host){grant(rebootSeq, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonPaused)), progress(4, protocol.PhaseAborted)},
			want: released(v1alpha1.ReasonPaused, "the grant was taken back before the drain began"),
		},
		"another policy's grant of the same number": {
			another: policy("better", priority(1)), node: options(grant(rebootSeq, protocol.GrantActive, givenBy("better")), progress(rebootSeq, protocol.PhaseRebooting)),
			want: released(v1alpha1.ReasonCancelled, "a grant of policy better replaced it"),
		},
		"replaced by a newer grant": {
			node: []func(*host){grant(6, protocol.GrantActive, givenBy("better")), progress(rebootSeq, protocol.PhaseRebooting)},
			want: released(v1alpha1.ReasonCancelled, "a newer grant replaced it"),
		},
	})
}
