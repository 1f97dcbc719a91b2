package plan_test

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

func paused(until *metav1.Time, reason string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = &v1alpha1.Pause{Until: until, Reason: reason} }
}

func dryRun(p *v1alpha1.RebootPolicy) { p.Spec.Mode = v1alpha1.ModeDryRun }

// TestReboots_WhyBlocked checks each reason that blocks a node, with the message that users read.
func TestReboots_WhyBlocked(t *testing.T) {
	soon, past := metav1.NewTime(evening.Add(time.Hour)), metav1.NewTime(evening)
	closed := window.State{OpensAt: evening.Add(24 * time.Hour)}
	back := func(since time.Duration, by string) func(*host) {
		return grant(1, protocol.GrantFinished, grantedAt(since), givenBy(by))
	}
	cases := map[string]struct {
		situation situation
		// reason and message are those of worker-1. An empty reason means that it is granted.
		reason  v1alpha1.Reason
		message string
	}{
		"nothing blocks it": {situation: one(policy("workers"), needy("worker-1"))},
		"paused node (behaviour 23)": {
			one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "true"))),
			v1alpha1.ReasonNodePaused, "the node is paused; to resume: kubectl annotate node worker-1 reboot-operator.io/paused-",
		},
		"node paused for a reason (behaviour 23)": {
			one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "disk swap"))),
			v1alpha1.ReasonNodePaused, "the node is paused: disk swap; to resume: kubectl annotate node worker-1 reboot-operator.io/paused-",
		},
		"node paused for a reason of 256 KiB": {
			one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationPaused, strings.Repeat("x", 256<<10)))),
			v1alpha1.ReasonNodePaused, "the node is paused: " + strings.Repeat("x", 253) + "…; to resume: kubectl annotate node worker-1 reboot-operator.io/paused-",
		},
		"node paused until a time": {
			one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "until=2026-06-01T22:00:01Z disk swap"))),
			v1alpha1.ReasonNodePaused, "the node is paused until Mon 2026-06-01 22:00:01 UTC: disk swap; to resume: kubectl annotate node worker-1 reboot-operator.io/paused-",
		},
		"node whose pause has just ended": {situation: one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "until=2026-06-01T22:00:00Z disk swap")))},
		"node paused until a time that cannot be read": {
			one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "until=tomorrow"))),
			v1alpha1.ReasonNodePaused, "the node is paused: until=tomorrow; to resume: kubectl annotate node worker-1 reboot-operator.io/paused-",
		},
		"false does not pause the node": {situation: one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "false")))},
		"a limit that cannot be read": {
			one(policy("workers", atMost("many")), needy("worker-1")),
			v1alpha1.ReasonInvalid, `policy workers: spec.concurrency.maxUnavailable: "many" is not a percentage`,
		},
		"a window that cannot be compiled (behaviour 34)": {
			situation{policies: []*v1alpha1.RebootPolicy{policy("workers")}, hosts: hosts(needy, "worker-1"), windowInvalid: `window "w": unknown zone`},
			v1alpha1.ReasonInvalid, `policy workers: window "w": unknown zone`,
		},
		"an expression that does not compile": {
			situation{policies: []*v1alpha1.RebootPolicy{policy("workers", gatedByObject)}, hosts: hosts(needy, "worker-1"), gates: []v1alpha1.GateStatus{quiet(ceph)}, gatesInvalid: "undeclared"},
			v1alpha1.ReasonInvalid, "policy workers: undeclared",
		},
		"paused policy": {one(policy("workers", paused(nil, "")), needy("worker-1")), v1alpha1.ReasonPaused, "policy workers is paused"},
		"policy paused until an instant, for a reason": {
			one(policy("workers", paused(&soon, "Black Friday")), needy("worker-1")),
			v1alpha1.ReasonPaused, "policy workers is paused until Mon 2026-06-01 23:00:00 UTC: Black Friday",
		},
		"a pause that is over with this instant": {situation: one(policy("workers", paused(&past, "")), needy("worker-1"))},
		"halted policy": {
			one(policy("workers", halted), needy("worker-1")),
			v1alpha1.ReasonHalted, `policy workers halted after failures; to resume: kubectl annotate rebootpolicy workers reboot-operator.io/resume="why"`,
		},
		"blackout": {
			one(policy("workers"), needy("worker-1")).in(window.State{
				Name: "freeze", Blackout: true, BlackoutReason: "year end", OpensAt: evening.Add(time.Hour),
			}),
			v1alpha1.ReasonBlackout, "blackout freeze is in force; the next reboot may start Mon 2026-06-01 23:00:00 UTC: year end",
		},
		"blackout for no reason and without an end in sight": {
			one(policy("workers"), needy("worker-1")).in(window.State{Name: "freeze", Blackout: true}),
			v1alpha1.ReasonBlackout, "blackout freeze is in force; none opens within a year",
		},
		"closed window": {
			one(policy("workers"), needy("worker-1")).in(closed),
			v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 22:00:00 UTC",
		},
		"closed window that never opens": {
			one(policy("workers"), needy("worker-1")).in(window.State{}), v1alpha1.ReasonWindowClosed, "no window is open; none opens within a year",
		},
		"closed window, and an urgent request that the policy allows":           {situation: one(policy("workers", allowsUrgent), needy("worker-1", urgently)).in(closed)},
		"blackout, and an urgent request that the policy allows":                {situation: one(policy("workers", allowsUrgent), needy("worker-1", urgently)).in(window.State{Name: "freeze", Blackout: true})},
		"window that closes soon, and an urgent request that the policy allows": {situation: one(policy("workers", allowsUrgent), needy("worker-1", urgently)).in(window.State{Open: true, ClosesAt: evening.Add(minute)})},
		"closed window, and an urgent request that the policy does not allow": {
			one(policy("workers"), needy("worker-1", urgently)).in(closed),
			v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 22:00:00 UTC; " +
				"the request is urgent, but spec.urgent.requested of policy workers does not ignore windows",
		},
		"closed window, and a request that is not urgent": {
			one(policy("workers", allowsUrgent), needy("worker-1", annotated(v1alpha1.AnnotationRebootRequested, "firmware"))).in(closed),
			v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Tue 2026-06-02 22:00:00 UTC",
		},
		"paused policy, which an urgent request does not pass": {
			one(policy("workers", allowsUrgent, paused(nil, "")), needy("worker-1", urgently)), v1alpha1.ReasonPaused, "policy workers is paused",
		},
		"another node has been back for less than the spacing": {
			one(policy("workers", spacing(10*minute), lastReboot(-4*minute)), needy("worker-1")),
			v1alpha1.ReasonSpacing, "waiting for its turn: the last rebooted node has been back since Mon 2026-06-01 21:56:00 UTC; " +
				"the next reboot may start Mon 2026-06-01 22:06:00 UTC",
		},
		"another node has been back for as long as the spacing": {
			situation: one(policy("workers", spacing(10*minute), lastReboot(-10*minute)), needy("worker-1")),
		},
		"another node is back by the clock of a leader that was slightly ahead": {
			one(policy("workers", spacing(10*minute), lastReboot(4*minute)), needy("worker-1")),
			v1alpha1.ReasonSpacing, "waiting for its turn: the last rebooted node has been back since Mon 2026-06-01 22:04:00 UTC; " +
				"the next reboot may start Mon 2026-06-01 22:14:00 UTC",
		},
		"another node is back by the clock of a leader that was a day ahead, which is ignored": {
			situation: one(policy("workers", spacing(10*minute), lastReboot(24*time.Hour)), needy("worker-1")),
		},
		"a lost status, and a node that shows that it has been back for less than the spacing": {
			one(policy("workers", spacing(10*minute)), needy("worker-1"), newHost("worker-2", back(-4*minute, "workers"))),
			v1alpha1.ReasonSpacing, "waiting for its turn: the last rebooted node has been back since Mon 2026-06-01 21:56:00 UTC; " +
				"the next reboot may start Mon 2026-06-01 22:06:00 UTC",
		},
		"a node that another policy has rebooted": {
			situation: one(policy("workers", spacing(10*minute)), needy("worker-1"), newHost("worker-2", back(-4*minute, "others"))),
		},
		"a node that is back by the clock of a leader that was half an hour ahead, which is ignored": {
			situation: one(policy("workers", spacing(10*minute)), needy("worker-1"), newHost("worker-2", back(30*minute, "workers"))),
		},
		"another node is back, and the policy has no spacing": {situation: one(policy("workers", lastReboot(-minute)), needy("worker-1"))},
		"node that cluster-autoscaler is deleting": {
			one(policy("workers"), needy("worker-1", tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule))),
			v1alpha1.ReasonNodeUnavailable, "cluster-autoscaler is deleting the node",
		},
		"node that Karpenter is deleting": {
			one(policy("workers"), needy("worker-1", tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule))),
			v1alpha1.ReasonNodeUnavailable, "Karpenter is deleting the node",
		},
		"node that is being deleted": {
			one(policy("workers"), needy("worker-1", deleting, notReady)), v1alpha1.ReasonNodeUnavailable, "the node is being deleted",
		},
		"node whose readiness is unknown (behaviour 18)": {
			one(policy("workers"), needy("worker-1", notReady)),
			v1alpha1.ReasonNodeUnavailable, "the node is not Ready, so a reboot could not be confirmed; repair the node first",
		},
		"record with the highest possible number": {
			one(policy("workers"), needy("worker-1", grant(math.MaxInt64, protocol.GrantActive))),
			v1alpha1.ReasonRecordUnreadable, "the record has number 9223372036854775807, which no policy has assigned; " +
				"to remove it: kubectl annotate node worker-1 reboot-operator.io/grant- reboot-operator.io/progress- reboot-operator.io/hooks-",
		},
		"grant dated in the future that is over": {
			one(policy("workers"), needy("worker-1", grant(1, protocol.GrantCancelled, cancelledAt(24*time.Hour, v1alpha1.ReasonAgentSilent)))),
			v1alpha1.ReasonRecordUnreadable, "the grant is dated Tue 2026-06-02 22:00:00 UTC, more than an hour in the future; " +
				"to remove it: kubectl annotate node worker-1 reboot-operator.io/grant- reboot-operator.io/progress- reboot-operator.io/hooks-",
		},
		"progress dated in the future, and no grant": {
			one(policy("workers"), needy("worker-1", progress(1, protocol.PhaseDraining, phaseAt(24*time.Hour)))),
			v1alpha1.ReasonRecordUnreadable, "the progress is dated Tue 2026-06-02 22:00:00 UTC, more than an hour in the future; " +
				"to remove it: kubectl annotate node worker-1 reboot-operator.io/grant- reboot-operator.io/progress- reboot-operator.io/hooks-",
		},
		"kubelet that reports no boot ID (behaviour 63)": {
			one(policy("workers"), needy("worker-1", bootID(""))),
			v1alpha1.ReasonNodeUnavailable, "the kubelet reports no boot ID, so a reboot could not be confirmed",
		},
		"kubelet that reports a boot ID longer than a ledger takes": {
			one(policy("workers"), needy("worker-1", bootID(strings.Repeat("x", 65)))),
			v1alpha1.ReasonNodeUnavailable, "the kubelet reports no boot ID, so a reboot could not be confirmed",
		},
		"an agent that sees another boot than the kubelet, as in a container": {
			one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationEngines, `{"bootID":"other"}`))),
			v1alpha1.ReasonNodeUnavailable, `the agent's last report is for boot "other", but the kubelet reports boot "worker-1-boot-1"; the reboot waits ` +
				"until they agree; if they never do, set --boot-id-file of the agent",
		},
		"an agent that sees the boot of the kubelet":      {situation: one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationEngines, `{"bootID":"worker-1-boot-1"}`)))},
		"an agent whose engines report no boot":           {situation: one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationEngines, "{}")))},
		"an agent whose record of the engines is invalid": {situation: one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationEngines, "?")))},
		"agent that blocks it (behaviour 46)": {
			one(policy("workers"), needy("worker-1", agentBlocking(`{"reason":"Inhibited","message":"dpkg: upgrading"}`))),
			v1alpha1.ReasonInhibited, "dpkg: upgrading",
		},
		"agent whose update rolls back (behaviour 27)": {
			one(policy("workers", ignoresInhibitors, ignoresCoordinators), needy("worker-1", agentBlocking(
				`{"reason":"UpdateNotApplied","message":"2.0 rolls back"}`))),
			v1alpha1.ReasonUpdateNotApplied, "2.0 rolls back",
		},
		"agent that is not the only one who reboots the host (behaviour 57)": {
			one(policy("workers"), needy("worker-1", agentBlocking(`{"reason":"CoordinatorConflict","message":"locksmithd is active"}`))),
			v1alpha1.ReasonCoordinatorConflict, "locksmithd is active",
		},
		"second reason of the agent if the first is ignored (behaviour 57)": {
			one(policy("workers", ignoresInhibitors), needy("worker-1", agentBlocking(
				`{"reason":"Inhibited","message":"dpkg"},{"reason":"CoordinatorConflict","message":"locksmithd is active"}`))),
			v1alpha1.ReasonCoordinatorConflict, "locksmithd is active",
		},
		"inhibitor if coordinators are ignored (behaviour 57)": {
			one(policy("workers", ignoresCoordinators), needy("worker-1", agentBlocking(`{"reason":"Inhibited","message":"dpkg"}`))),
			v1alpha1.ReasonInhibited, "dpkg",
		},
		"coordinator that is ignored (behaviour 57)": {
			situation: one(policy("workers", ignoresCoordinators), needy("worker-1",
				agentBlocking(`{"reason":"CoordinatorConflict","message":"locksmithd is active"}`))),
		},
		"agent whose report cannot be read": {
			one(policy("workers"), needy("worker-1", agentBlocking(`{"message":"no"}`))),
			v1alpha1.ReasonRecordUnreadable, "annotation reboot-operator.io/report: reason must be set",
		},
		"agent whose answer about pods cannot be read": {
			one(policy("workers", waitsForPods), needy("worker-1", annotated(v1alpha1.AnnotationReport, `{"preflight":{"bootID":"boot-1"}}`))),
			v1alpha1.ReasonRecordUnreadable, "annotation reboot-operator.io/report: policy, revision and bootID must be set",
		},
		"progress that cannot be read": {
			one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationProgress, `null`))),
			v1alpha1.ReasonRecordUnreadable, "annotation reboot-operator.io/progress: null is not a record; " +
				"the agent repairs it, or: kubectl annotate node worker-1 reboot-operator.io/progress-",
		},
		"unreadable grant does not count and is replaced": {
			situation: one(policy("workers"), needy("worker-1", annotated(v1alpha1.AnnotationGrant, `{"seq":-1}`))),
		},
		"attempt that failed a minute ago": {
			one(policy("workers"), needy("worker-1", progress(1, protocol.PhaseAborted, phaseAt(-time.Minute), failed(1, v1alpha1.ReasonDrainTimedOut, "db-0 stays")))),
			v1alpha1.ReasonBackingOff, "the last attempt failed (DrainTimedOut): db-0 stays; the next attempt is due Mon 2026-06-01 22:04:00 UTC; to retry now: kubectl annotate node worker-1 reboot-operator.io/retry=1 --overwrite",
		},
		"agent that was silent ten minutes ago": {
			one(policy("workers"), needy("worker-1", grant(1, protocol.GrantCancelled, cancelledAt(-10*time.Minute, v1alpha1.ReasonAgentSilent)))),
			v1alpha1.ReasonBackingOff, "the agent did not act on the last grant; the next attempt is due Mon 2026-06-01 22:05:00 UTC; to retry now: kubectl annotate node worker-1 reboot-operator.io/retry=1 --overwrite",
		},
		"grant that was cancelled for another reason does not hold the node back": {
			situation: one(policy("workers"), needy("worker-1", grant(1, protocol.GrantCancelled, cancelledAt(-time.Minute, v1alpha1.ReasonPaused)))),
		},
		"limit of 0": {
			one(policy("workers", atMost("0")), needy("worker-1")), v1alpha1.ReasonBudgetExhausted, "maxUnavailable is 0: no node may be rebooted",
		},
		"dry run": {one(policy("workers", dryRun), needy("worker-1")), v1alpha1.ReasonDryRun, "the node would be rebooted now, but policy workers is in mode DryRun"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			want := plan.Decision{}
			if tc.reason != "" {
				want = plan.Decision{
					Node: "worker-1", Status: corev1.ConditionFalse, Reason: tc.reason, Message: tc.message,
					Endless: strings.Contains(tc.message, "none opens within a year"),
				}
			}
			same(t, "decision", want, decided(p, "worker-1"), unasked)
			same(t, "granted", tc.reason == "", len(p.Ledger.Granted) > 0)
		})
	}
}

// TestReboots_OrderOfChecks begins with a node that every check blocks, and removes one reason at a
// time. The order is that of docs/reasons.md, because users rely on which of several reasons is
// reported.
func TestReboots_OrderOfChecks(t *testing.T) {
	controlPlane := label(record.ControlPlaneLabels[0], "")
	s := situation{
		policies: []*v1alpha1.RebootPolicy{
			policy("workers", atMost("many"), paused(nil, ""), halted, dryRun, gated("a"), gatedByObject, waitsForPods, inRings("zone", ring("b"))), policy("zoo", selects("zoo", "yes")),
		},
		hosts: []*host{
			needy("cp-1", controlPlane, notReady, label("zoo", "yes"), annotated(v1alpha1.AnnotationPaused, "true"),
				agentBlocking(`{"reason":"UpdateNotApplied","message":"2.0 rolls back"},{"reason":"JustBooted","message":"soon"},`+
					`{"reason":"Inhibited","message":"dpkg: upgrading"},{"reason":"CoordinatorConflict","message":"locksmithd"}`),
				annotated(v1alpha1.AnnotationProgress, `null`), grant(1, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonAgentSilent))),
			newHost("cp-2", controlPlane, notReady),
			newHost("worker-1", label("zone", "b"), grant(5, protocol.GrantActive), progress(5, protocol.PhaseRebooting)),
		},
		window: &window.State{Blackout: true, Name: "freeze"},
		gates:  []v1alpha1.GateStatus{firing("a"), notReadyObject(ceph)},
	}
	workers, node := s.policies[0], s.hosts[0].node
	replies(workers, blocking("default/migrate-1"), kept("default/bare", "unmanaged"))(s.hosts[0])
	reports := func(all ...protocol.Blocker) func() {
		return func() {
			report, _ := protocol.ParseAgentReport(node.Annotations)
			report.BlockedBy = all
			annotate(node, v1alpha1.AnnotationReport, report.String())
		}
	}
	justBooted := protocol.Blocker{Reason: v1alpha1.ReasonJustBooted, Message: "soon"}
	inhibited := protocol.Blocker{Reason: v1alpha1.ReasonInhibited, Message: "dpkg: upgrading"}
	conflict := protocol.Blocker{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd"}
	steps := []struct {
		want  v1alpha1.Reason
		fixes func()
	}{
		{v1alpha1.ReasonPolicyConflict, func() { delete(node.Labels, "zoo") }},
		{v1alpha1.ReasonNodePaused, func() { delete(node.Annotations, v1alpha1.AnnotationPaused) }},
		{v1alpha1.ReasonInvalid, func() { atMost("1")(workers); sharing("nobody")(workers) }},
		{v1alpha1.ReasonSharedPolicyNotFound, func() { atMost("1")(workers); domains("zone")(workers) }},
		{v1alpha1.ReasonPaused, func() { workers.Spec.Pause = nil }},
		{v1alpha1.ReasonHalted, func() { workers.Status.Conditions = nil }},
		{v1alpha1.ReasonBlackout, func() { s.window = &window.State{} }},
		{v1alpha1.ReasonWindowClosed, func() { s.window = &window.State{Open: true, ClosesAt: evening.Add(minute)} }},
		{v1alpha1.ReasonWindowTooShort, func() { s.window = nil }},
		{v1alpha1.ReasonNodeUnavailable, func() { nodeCondition(corev1.NodeReady, corev1.ConditionTrue, 0)(s.hosts[0]) }},
		{v1alpha1.ReasonUpdateNotApplied, reports(justBooted, inhibited, conflict)},
		{v1alpha1.ReasonJustBooted, reports(inhibited, conflict)},
		{v1alpha1.ReasonInhibited, reports(conflict)},
		{v1alpha1.ReasonCoordinatorConflict, reports()},
		{v1alpha1.ReasonRecordUnreadable, func() { delete(node.Annotations, v1alpha1.AnnotationProgress) }},
		{v1alpha1.ReasonBackingOff, func() { delete(node.Annotations, v1alpha1.AnnotationGrant) }},
		{v1alpha1.ReasonRingWaits, func() { workers.Spec.Rings = nil }},
		{v1alpha1.ReasonUndrainablePod, func() { replies(workers, blocking("default/migrate-1"))(s.hosts[0]) }},
		{v1alpha1.ReasonBlockingPod, func() { replies(workers)(s.hosts[0]) }},
		{v1alpha1.ReasonAlertFiring, func() { s.gates = []v1alpha1.GateStatus{notReadyObject(ceph)} }},
		{v1alpha1.ReasonObjectNotReady, func() { s.gates = nil }},
		{v1alpha1.ReasonGateUnreachable, func() { s.gates = []v1alpha1.GateStatus{quiet("a"), quiet(ceph)} }},
		{v1alpha1.ReasonControlPlaneGuard, func() { nodeCondition(corev1.NodeReady, corev1.ConditionTrue, 0)(s.hosts[1]) }},
		{v1alpha1.ReasonDomainBusy, func() { node.Labels["zone"] = "b" }},
		{v1alpha1.ReasonBudgetExhausted, func() { atMost("2")(workers); spacing(10 * minute)(workers); lastReboot(-minute)(workers) }},
		{v1alpha1.ReasonSpacing, func() { workers.Spec.Concurrency.Spacing = nil; workers.Spec.Mode = ""; runHooked(workers) }},
		{v1alpha1.ReasonRunHookWaits, func() { workers.Spec.Hooks = nil; dryRun(workers) }},
		{v1alpha1.ReasonDryRun, func() { workers.Spec.Mode = v1alpha1.ModeEnforce }},
	}
	for i, step := range steps {
		s.hosts[0].read, s.hosts[1].read = nil, nil
		if got := decided(s.plan(), "cp-1").Reason; got != step.want {
			t.Fatalf("got %q, want %q", got, step.want)
		}
		if check, passed := blockingCheck(t, plan.Explain(s.snapshot(), "cp-1").Checks); check != step.want || passed != i+1 {
			t.Errorf("explained as %q after %d checks, want %q after %d", check, passed, step.want, i+1)
		}
		step.fixes()
	}
	s.hosts[0].read = nil
	if p := s.plan(); len(p.Ledger.Granted) != 1 || p.Ledger.Granted[0].Node != "cp-1" {
		t.Errorf("nothing blocks it any more, and granted are %v; decisions %v", p.Ledger.Granted, p.Decisions)
	}
}

// TestReboots_TimesAreInThePolicysZone checks that messages of a policy use the time zone of its
// first window.
func TestReboots_TimesAreInThePolicysZone(t *testing.T) {
	in := func(zone string) window.Schedule {
		t.Helper()
		schedule, err := window.Compile([]v1alpha1.Window{
			{Name: "nights", Start: "22:00", Duration: v1alpha1.Duration{Duration: 6 * time.Hour}, TimeZone: zone}, {Name: "noon", Start: "12:00", Duration: v1alpha1.Duration{Duration: time.Hour}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return schedule
	}
	for name, tc := range map[string]struct {
		schedule window.Schedule
		want     string
	}{
		"of the policy's first window":        {in("Europe/Berlin"), "no window is open; the next reboot may start Wed 2026-06-03 00:00:00 CEST"},
		"a time zone without an abbreviation": {in("America/Sao_Paulo"), "no window is open; the next reboot may start Tue 2026-06-02 19:00:00 -03"},
		"UTC if the window has it":            {in(""), "no window is open; the next reboot may start Tue 2026-06-02 22:00:00 UTC"},
		"UTC, without windows":                {window.Schedule{}, "no window is open; the next reboot may start Tue 2026-06-02 22:00:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers"), needy("worker-1")).snapshot()
			s.Schedule, s.Window = tc.schedule, window.State{OpensAt: evening.Add(24 * time.Hour)}
			same(t, "message", tc.want, plan.Explain(s, "worker-1").Decision.Message)
		})
	}
}
