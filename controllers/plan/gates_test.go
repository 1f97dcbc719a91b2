package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// gated sets gates of these names. "name?" has failurePolicy Ignore, and ceph is a gate of objects.
func gated(names ...string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Gates = &v1alpha1.Gates{}
		for _, name := range names {
			if name == ceph {
				gatedByObject(p)
				continue
			}
			g := v1alpha1.PrometheusGate{Name: name, URL: "http://prometheus", Query: "up == 0"}
			if name[len(name)-1] == '?' {
				g.Name, g.FailurePolicy = name[:len(name)-1], v1alpha1.ObstacleIgnore
			}
			p.Spec.Gates.Prometheus = append(p.Spec.Gates.Prometheus, g)
		}
	}
}

// gatedByObject sets a gate of objects, CephCluster/ceph.
func gatedByObject(p *v1alpha1.RebootPolicy) {
	if p.Spec.Gates == nil {
		p.Spec.Gates = &v1alpha1.Gates{}
	}
	p.Spec.Gates.Objects = []v1alpha1.ObjectGate{{APIVersion: "ceph.rook.io/v1", Kind: "CephCluster", Name: "ceph", Expression: "object.status.ready"}}
}

const ceph = "CephCluster/ceph"

func notReadyObject(name string) v1alpha1.GateStatus {
	return answer(name, v1alpha1.GateNotReady, "CephCluster ceph: the expression is false", 0)
}

// reported sets the gates in the policy's status.
func reported(gates ...v1alpha1.GateStatus) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Status.Gates = gates }
}

// answer returns a gate's result at a time counted from the evening.
func answer(name string, state v1alpha1.GateState, message string, since time.Duration) v1alpha1.GateStatus {
	return v1alpha1.GateStatus{Name: name, State: state, Message: message, At: metav1.NewTime(evening.Add(since))}
}

func quiet(name string) v1alpha1.GateStatus  { return answer(name, v1alpha1.GateClear, "", 0) }
func firing(name string) v1alpha1.GateStatus { return answer(name, v1alpha1.GateFiring, "up = 0", 0) }

func unreachable(name string) v1alpha1.GateStatus {
	return answer(name, v1alpha1.GateUnreachable, "no answer within 10s", 0)
}

// TestReboots_Gates checks what gates mean before a grant, and for a grant that the agent has not
// begun.
func TestReboots_Gates(t *testing.T) {
	const unasked, alert, mute = "gate a of policy workers has not been queried yet", "gate a of policy workers: up = 0", "gate a of policy workers: no answer within 10s"
	const unreached = v1alpha1.ReasonGateUnreachable
	answers := func(all ...v1alpha1.GateStatus) []v1alpha1.GateStatus { return all }
	cases := map[string]struct {
		gates  string
		answer []v1alpha1.GateStatus
		// before is the reason that blocks the grant, or empty if it is given.
		before  v1alpha1.Reason
		message string
	}{
		"none":            {"", nil, "", ""},
		"not queried yet": {"a", nil, unreached, unasked},
		"not queried yet, with failurePolicy Ignore": {"a?", nil, unreached, unasked},
		"another gate was queried":                   {"a", answers(quiet("b")), unreached, unasked},
		"clear":                                      {"a", answers(quiet("a")), "", ""},
		"firing":                                     {"a", answers(firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"firing, with failurePolicy Ignore":          {"a?", answers(firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"unreachable":                                {"a", answers(unreachable("a")), unreached, mute},
		"unreachable, with failurePolicy Ignore":     {"a?", answers(unreachable("a")), "", ""},
		"one of two is firing":                       {"b a", answers(quiet("b"), firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"firing is worse than unreachable":           {"b a", answers(unreachable("b"), firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"unreachable is worse than not queried yet":  {"b a", answers(unreachable("a")), unreached, mute},
		"an object was not read yet":                 {"a " + ceph, answers(quiet("a")), unreached, "gate CephCluster/ceph of policy workers has not been queried yet"},
		"an object is ready as well":                 {"a " + ceph, answers(quiet("a"), quiet(ceph)), "", ""},
		"an object is not ready": {
			"a " + ceph, answers(quiet("a"), notReadyObject(ceph)),
			v1alpha1.ReasonObjectNotReady, "gate CephCluster/ceph of policy workers: CephCluster ceph: the expression is false",
		},
		"an object cannot be read, which is never ignored": {
			"a? " + ceph, answers(unreachable("a"), unreachable(ceph)), unreached, "gate CephCluster/ceph of policy workers: no answer within 10s",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate, notAsked := gated(strings.Fields(tc.gates)...), strings.HasSuffix(tc.message, "has not been queried yet")
			before := one(policy("workers", gate), needy("worker-1"))
			before.gates = tc.answer
			p := before.plan()
			same(t, "waits for gates", tc.gates != "", p.WaitsForGates)
			var got plan.Decision
			if len(p.Decisions) > 0 {
				got = p.Decisions[0]
			}
			if got.Reason != tc.before || got.Message != tc.message || len(p.Ledger.Granted) > 0 != (tc.before == "") {
				t.Errorf("before a grant: %+v, granted %v", got, p.Ledger.Granted)
			}
			same(t, "short-lived", notAsked, got.ShortLived)
			action := func(node ...func(*host)) underway.Action {
				granted := one(policy("workers", gate, holding(7, entry("worker-1", 7))), needy("worker-1", node...))
				granted.gates = tc.answer
				return granted.plan().Reboots[0].Action
			}
			published := grant(7, protocol.GrantActive)
			inLedger, onNode := underway.CancelGrant, underway.CancelGrant // a grant that the node does not show yet, and one that it shows
			switch {
			case tc.before == "":
				inLedger, onNode = underway.PublishGrant, underway.Wait
			case notAsked:
				inLedger, onNode = underway.Wait, underway.Wait
			}
			same(t, "in the ledger", inLedger, action())
			same(t, "on the node", onNode, action(published))
			same(t, "draining", underway.Wait, action(published, progress(7, protocol.PhaseDraining)))
		})
	}
}

// TestReboots_WaitsForGates checks that gates are not queried for nodes that something else blocks,
// or if no node needs a reboot.
func TestReboots_WaitsForGates(t *testing.T) {
	closed := one(policy("workers", gated("a")), needy("worker-1"))
	closed.window = &window.State{}
	dry := one(policy("workers", gated("a"), dryRun), needy("worker-1"))
	dry.gates = []v1alpha1.GateStatus{quiet("a")}
	for name, tc := range map[string]struct {
		situation situation
		want      bool
	}{
		"a node that waits":                {one(policy("workers", gated("a")), needy("worker-1")), true},
		"no node needs a reboot":           {one(policy("workers", gated("a")), newHost("worker-1")), false},
		"the window is closed":             {closed, false},
		"the node is paused":               {one(policy("workers", gated("a")), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "true"))), false},
		"the node backs off":               {one(policy("workers", gated("a")), needy("worker-1", progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))), false},
		"the policy has mode DryRun":       {dry, true},
		"a grant that has not begun":       {one(policy("workers", gated("a"), holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, protocol.GrantActive))), true},
		"a drain has begun, no node waits": {one(policy("workers", gated("a"), holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseDraining))), false},
		"another policy's node":            {one(policy("workers", gated("a"), selects("pool", "x")), needy("worker-1")), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "waits for gates", tc.want, p.WaitsForGates)
			if !tc.want && p.Gates != nil {
				t.Errorf("reports %v", p.Gates)
			}
		})
	}
}

// TestReboots_GatesReported checks that status.gates follows the gates' results and keeps the time
// of their last change.
func TestReboots_GatesReported(t *testing.T) {
	const before, now = -time.Hour, time.Duration(0)
	allow := "no answer within 10s; failurePolicy Ignore lets reboots go on"
	for name, tc := range map[string]struct {
		gate                   string
		reported, answer, want []v1alpha1.GateStatus
	}{
		"not queried yet":               {gate: "a"},
		"the first answer":              {"a", nil, []v1alpha1.GateStatus{quiet("a")}, []v1alpha1.GateStatus{quiet("a")}},
		"the same again":                {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}, []v1alpha1.GateStatus{firing("a")}, []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}},
		"another state":                 {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}, []v1alpha1.GateStatus{quiet("a")}, []v1alpha1.GateStatus{quiet("a")}},
		"another message":               {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "x", before)}, []v1alpha1.GateStatus{firing("a")}, []v1alpha1.GateStatus{firing("a")}},
		"a new leader":                  {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}, nil, []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}},
		"a gate that is gone":           {"a", []v1alpha1.GateStatus{answer("b", v1alpha1.GateFiring, "up = 0", before)}, nil, nil},
		"a failure that counts":         {"a", nil, []v1alpha1.GateStatus{unreachable("a")}, []v1alpha1.GateStatus{unreachable("a")}},
		"a failure that does not count": {"a?", nil, []v1alpha1.GateStatus{unreachable("a")}, []v1alpha1.GateStatus{answer("a", v1alpha1.GateUnreachable, allow, now)}},
		"a failure that does not count, again": {
			"a?",
			[]v1alpha1.GateStatus{answer("a", v1alpha1.GateUnreachable, allow, before)},
			[]v1alpha1.GateStatus{unreachable("a")},
			[]v1alpha1.GateStatus{answer("a", v1alpha1.GateUnreachable, allow, before)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers", gated(tc.gate), reported(tc.reported...)), needy("worker-1"), newHost("worker-2", notReady))
			s.gates = tc.answer
			same(t, "gates", tc.want, s.plan().Gates)
		})
	}
}

// TestReboots_GatesLetGo checks that nothing is granted unless each gate is clear, or is
// unreachable and may fail.
func TestReboots_GatesLetGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		s.gates = drawGates(t, s.policies[0])
		snapshot := s.snapshot()
		p := plan.Of(snapshot)
		state := map[string]v1alpha1.GateState{}
		for _, g := range snapshot.Gates {
			state[g.Name] = g.State
		}
		for _, name := range gates.Names(&snapshot.Policy.Spec) {
			mayFail := state[name] == v1alpha1.GateUnreachable && name == "may-fail"
			if len(p.Ledger.Granted) > 0 && state[name] != v1alpha1.GateClear && !mayFail {
				t.Fatalf("granted %v although gate %s is %q\n%v", p.Ledger.Granted, name, state[name], s)
			}
		}
	})
}

// unasked ignores the requests to agents, which only the tests of this file check.
var unasked = cmpopts.IgnoreFields(plan.Decision{}, "Preflight")

// replies sets the agent's answer to the request of a policy in this boot. mods change that.
func replies(p *v1alpha1.RebootPolicy, mods ...func(*protocol.PreflightReport)) func(*host) {
	request, _ := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: gates.PodsOf(p).Preflight()})
	return func(h *host) {
		r := protocol.PreflightReport{Policy: request.Policy, Revision: request.Revision, BootID: h.bootID()}
		for _, m := range mods {
			m(&r)
		}
		report, _ := protocol.ParseAgentReport(h.node.Annotations)
		report.Preflight = &r
		annotate(h.node, v1alpha1.AnnotationReport, report.String())
	}
}

func blocking(pods ...string) func(*protocol.PreflightReport) {
	return func(r *protocol.PreflightReport) { r.Blocking = named(pods) }
}

func kept(pod, why string) func(*protocol.PreflightReport) {
	return func(r *protocol.PreflightReport) {
		r.Kept = &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: pod, Why: why}}}
	}
}

func guarded(pod, why string) func(*protocol.PreflightReport) {
	return func(r *protocol.PreflightReport) {
		r.Guarded = &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: pod, Why: why}}}
	}
}

func closedBy(pod, why string) func(*protocol.PreflightReport) {
	return func(r *protocol.PreflightReport) {
		r.Closed = &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: pod, Why: why}}}
	}
}

// failedTry sets the progress of a node whose try has failed several times in a row, the last time
// a while ago.
func failedTry(failures int32, ago time.Duration) func(*host) {
	return progress(1, protocol.PhaseAborted, func(p *protocol.Progress) {
		p.Try, p.Failures, p.At = true, failures, metav1.NewTime(evening.Add(-ago))
		p.Reason, p.Message = v1alpha1.ReasonUndrainablePod, "The drain took longer than 20m0s."
	})
}

// downSince sets the time when the node's Ready condition changed.
func downSince(t time.Time) func(*host) {
	return func(h *host) { conditionOf(h.node, corev1.NodeReady).LastTransitionTime = metav1.NewTime(t) }
}

// Agents look at the pods some hours before a window opens. What they find then is known before the
// window, and needs a person now.
func TestReboots_LooksBeforeTheWindow(t *testing.T) {
	opens := evening.Add(6 * time.Hour)
	in := func(ago time.Duration, node *host, edit ...func(*v1alpha1.RebootPolicy)) situation {
		s := one(policy("workers", edit...), node).in(window.State{OpensAt: opens})
		s.now = evening.Add(-ago)
		return s
	}
	waits := "no window is open; the next reboot may start Tue 2026-06-02 04:00:00 UTC"
	plain := policy("workers")
	bare, shut := kept("default/bare", "unmanaged"), closedBy("default/db-0", "closed")
	cases := map[string]struct {
		situation      situation
		looks          bool
		message        string
		needsAttention string
	}{
		"earlier":               {in(time.Second, needy("worker-1")), false, waits, ""},
		"six hours before":      {in(0, needy("worker-1")), true, waits, ""},
		"a bare pod":            {in(0, needy("worker-1", replies(plain, bare))), true, waits + "; then it will wait for another reason (UndrainablePod): can never be drained: default/bare (unmanaged)", "worker-1: UndrainablePod: can never be drained: default/bare (unmanaged)"},
		"a closed budget":       {in(0, needy("worker-1", replies(plain, shut))), true, waits + "; its drain may fail then, and it is tried after the nodes that can go: default/db-0 (closed)", ""},
		"another coordinator":   {in(time.Hour, needy("worker-1", agentBlocking(`{"reason":"CoordinatorConflict","message":"locksmithd is active"}`))), false, waits + "; then it will wait for another reason (CoordinatorConflict): locksmithd is active", "worker-1: CoordinatorConflict: locksmithd is active"},
		"a node that went down": {in(0, needy("worker-1", notReady, downSince(evening.Add(-time.Minute)))), true, waits, ""},
		"a node that is down": {
			in(0, needy("worker-1", notReady, downSince(evening.Add(-time.Hour)))), true, waits + "; then it will wait for another reason (NodeUnavailable): the node is not Ready, so a reboot could not be confirmed; repair the node first",
			"worker-1: NodeUnavailable: the node is not Ready, so a reboot could not be confirmed; repair the node first",
		},
		"a node that is down for an unknown time": {in(0, needy("worker-1", notReady, downSince(time.Time{}))), true, waits, ""},
		"the policy is paused":                    {in(0, needy("worker-1"), paused(nil, "incident")), false, "policy workers is paused: incident", "policy workers is paused: incident"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			d := p.Decisions[0]
			same(t, "message", tc.message, d.Message)
			same(t, "looks", tc.looks, d.Preflight != "")
			var texts strings.Builder
			for _, a := range attention.Of(&p, tc.situation.policies[0], tc.situation.now) {
				if a.Kind != attention.Agents {
					texts.WriteString(a.Message)
				}
			}
			same(t, "attention", tc.needsAttention, texts.String())
			if !tc.looks && tc.needsAttention == "" {
				same(t, "next", evening, p.Next)
			}
		})
	}
}

// TestReboots_Preflight checks what the pods that the agent has found mean. An empty reason means
// that the node is granted.
func TestReboots_Preflight(t *testing.T) {
	const (
		unknown = "the node's agent has not reported yet whether pods of gates.blockingPods run on it; " +
			"if this lasts, check that the agent's pod runs"
		isUnread                 = "the node's agent cannot determine which pods are in the way of a reboot: listing pods: forbidden"
		isKept                   = "can never be drained: default/bare (unmanaged)"
		unreachable, undrainable = v1alpha1.ReasonGateUnreachable, v1alpha1.ReasonUndrainablePod
	)
	gated, plain, anyway := policy("workers", waitsForPods), policy("workers"), policy("workers", rebootsAnyway)
	bare, budget := kept("default/bare", "unmanaged"), guarded("default/db-0", "PodDisruptionBudget db allows no disruption")
	waits, closed, isClosed := policy("workers", neverTries), closedBy("default/db-0", "closed"), "cannot be drained: default/db-0 (closed)"
	both := func(a, b func(*host)) func(*host) { return func(h *host) { a(h); b(h) } }
	problem := func(r *protocol.PreflightReport) { r.Problem = "listing pods: forbidden" }
	bootBefore := func(r *protocol.PreflightReport) { r.BootID = "boot-0" }
	deletesUnmanaged := func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete}
	}
	cases := map[string]struct {
		policy  *v1alpha1.RebootPolicy
		option  func(*host)
		reason  v1alpha1.Reason
		message string
	}{
		"no answer, and no gate": {plain, nil, "", ""},
		"no answer":              {gated, nil, unreachable, unknown},
		"nothing is in the way":  {gated, replies(gated), "", ""},
		"the agent cannot check the pods for a plain policy": {plain, replies(plain, problem), unreachable, isUnread},
		"an answer about the policy before an edit":          {gated, replies(plain), unreachable, unknown},
		"an answer to another policy":                        {gated, replies(policy("web", waitsForPods)), unreachable, unknown},
		"an answer from the previous boot":                   {gated, replies(gated, bootBefore), unreachable, unknown},
		"a pod blocks": {
			gated, replies(gated, blocking("default/migrate-1")), v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy workers waits for default/migrate-1",
		},
		"more pods block than are named": {
			gated, replies(gated, blocking("a/1", "a/2"), func(r *protocol.PreflightReport) { r.Blocking.Count = 40 }),
			v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy workers waits for a/1, a/2 and 38 more",
		},
		"the agent cannot check the pods": {
			gated, replies(gated, problem), unreachable, isUnread,
		},
		"a pod that the policy keeps":                              {plain, replies(plain, bare), undrainable, isKept},
		"a pod that the policy keeps, with drain.onTimeout Reboot": {anyway, replies(anyway, bare), undrainable, isKept},
		"a budget that never allows anything": {
			plain, replies(plain, budget), undrainable, "cannot be drained: default/db-0 (PodDisruptionBudget db allows no disruption)",
		},
		"a budget that never allows an eviction, with drain.onTimeout Reboot": {anyway, replies(anyway, budget), "", ""},
		"a closed budget": {plain, replies(plain, closed), "", ""},
		"a closed budget, under a policy that never tries": {waits, replies(waits, closed), undrainable, isClosed},
		"a closed budget and two budgets on a pod":         {plain, replies(plain, closed, budget), undrainable, "cannot be drained: default/db-0 (PodDisruptionBudget db allows no disruption)"},
		"a closed budget, with drain.onTimeout Reboot":     {anyway, replies(anyway, closed), "", ""},
		"a closed budget, after a try that failed": {
			plain, both(replies(plain, closed), failedTry(1, 4*minute)), undrainable, isClosed + "; the last try failed, and the next is due Mon 2026-06-01 22:01:00 UTC; to retry now: kubectl annotate node worker-1 reboot-operator.io/retry=1 --overwrite",
		},
		"a closed budget, after the third try that failed": {
			plain, both(replies(plain, closed), failedTry(3, 4*minute)), undrainable, isClosed + "; the last try failed, and the next is due Mon 2026-06-01 22:16:00 UTC; to retry now: kubectl annotate node worker-1 reboot-operator.io/retry=1 --overwrite",
		},
		"a closed budget, when the next try is due": {plain, both(replies(plain, closed), failedTry(1, 5*minute)), "", ""},
		"a try that failed, and the agent has not checked again": {
			plain, failedTry(1, 4*minute), undrainable,
			"the last attempt failed (UndrainablePod): The drain took longer than 20m0s; the next try is due Mon 2026-06-01 22:01:00 UTC; to retry now: kubectl annotate node worker-1 reboot-operator.io/retry=1 --overwrite",
		},
		"a try that failed, and the budget is open":                       {plain, both(replies(plain), failedTry(1, 4*minute)), "", ""},
		"a try that failed, under a policy that never tries":              {waits, both(replies(waits, closed), failedTry(1, 5*minute)), undrainable, isClosed},
		"a pod that could not be drained in the previous boot":            {plain, replies(plain, bare, bootBefore), "", ""},
		"a pod that could not be drained under the policy before an edit": {policy("workers", deletesUnmanaged), replies(plain, bare), "", ""},
		"a pod that cannot be drained comes before one that blocks":       {gated, replies(gated, blocking("default/migrate-1"), bare), undrainable, isKept},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := needy("worker-1")
			if tc.option != nil {
				tc.option(node)
			}
			p := one(tc.policy, node).plan()
			want := []plan.Decision{{Node: "worker-1", Status: corev1.ConditionFalse, Reason: tc.reason, Message: tc.message, Preflight: gates.PodsOf(tc.policy).Preflight()}}
			if tc.reason == "" {
				want = nil
			}
			same(t, "decisions", want, p.Decisions)
			same(t, "granted", tc.reason == "", len(p.Ledger.Granted) > 0)
		})
	}
}

// TestReboots_PreflightOfAGrant checks what the pods mean for a grant, before and after the agent
// has begun to use it.
func TestReboots_PreflightOfAGrant(t *testing.T) {
	gated := policy("workers", waitsForPods, holding(7, entry("worker-1", 7)))
	published := func(options ...func(*host)) *host {
		return needy("worker-1", append([]func(*host){grant(7, protocol.GrantActive)}, options...)...)
	}
	cases := map[string]struct {
		node   *host
		action underway.Action
		reason v1alpha1.Reason
	}{
		"a blocking pod cancels the grant":                              {published(replies(gated, blocking("default/migrate-1"))), underway.CancelGrant, v1alpha1.ReasonBlockingPod},
		"a pod that cannot be drained cancels the grant":                {published(replies(gated, kept("default/bare", "unmanaged"))), underway.CancelGrant, v1alpha1.ReasonUndrainablePod},
		"a closed budget cancels the grant, so that the node goes last": {published(replies(gated, closedBy("default/db-0", ""))), underway.CancelGrant, v1alpha1.ReasonUndrainablePod},
		"pods that the agent cannot read cancel the grant": {
			published(replies(gated, func(r *protocol.PreflightReport) { r.Problem = "listing pods: forbidden" })), underway.CancelGrant, v1alpha1.ReasonGateUnreachable,
		},
		"a grant that was not shown is cancelled": {needy("worker-1", replies(gated, blocking("default/migrate-1"))), underway.CancelGrant, v1alpha1.ReasonBlockingPod},
		"a stale answer cancels nothing, because the agent looks again": {
			published(replies(policy("workers"), blocking("default/migrate-1"))), underway.Wait, v1alpha1.ReasonGranted,
		},
		"no answer cancels nothing": {published(), underway.Wait, v1alpha1.ReasonGranted},
		"a drain that has begun is finished": {
			published(progress(7, protocol.PhaseDraining), replies(gated, blocking("default/migrate-1"))), underway.Wait, v1alpha1.ReasonGranted,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reboot := one(gated, tc.node).plan().Reboots[0]
			same(t, "reboot", []any{tc.action, tc.reason}, []any{reboot.Action, reboot.Reason})
		})
	}
}

// TestBackOff_EndsEarly checks that the back-off after a drain that budgets held up is shorter once
// the agent reports that no budget would hold up the next one. The manager requests that report,
// whatever else the node waits for.
func TestBackOff_EndsEarly(t *testing.T) {
	workers := policy("workers")
	both := func(a, b func(*host)) func(*host) { return func(h *host) { a(h); b(h) } }
	budgeted := func(p *protocol.Progress) { p.Budgeted = true }
	answers := func(failed int64, mods ...func(*protocol.PreflightReport)) func(*host) {
		return replies(workers, append(mods, func(r *protocol.PreflightReport) { r.Failed = failed })...)
	}
	refuses := func(r *protocol.PreflightReport) {
		r.Refused = &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: "default/db-0", Why: "PodDisruptionBudget db allows no eviction now"}}}
	}
	third := func(mods ...func(*protocol.Progress)) func(*host) { // its back-off is 20 minutes
		return progress(7, protocol.PhaseAborted, append(mods, phaseAt(-3*minute), failed(3, v1alpha1.ReasonDrainTimedOut, "db-0 stays"))...)
	}
	request := strings.TrimSuffix(gates.PodsOf(workers).Preflight(), "}") + `,"failed":7}`
	cases := map[string]struct {
		policy  *v1alpha1.RebootPolicy
		option  func(*host)
		reason  v1alpha1.Reason
		request string
	}{
		"the agent has not answered":           {workers, third(budgeted), v1alpha1.ReasonBackingOff, request},
		"a budget still refuses":               {workers, both(third(budgeted), answers(7, refuses)), v1alpha1.ReasonBackingOff, request},
		"a pod is still stuck":                 {workers, both(third(budgeted), answers(7, guarded("default/db-0", "still there"))), v1alpha1.ReasonBackingOff, request},
		"the answer is about an earlier drain": {workers, both(third(budgeted), answers(6)), v1alpha1.ReasonBackingOff, request},
		"no budget refuses":                    {workers, both(third(budgeted), answers(7)), "", ""},
		"no budget refuses, and the drain has just failed": {
			workers, both(progress(7, protocol.PhaseAborted, budgeted, phaseAt(-minute), failed(3, v1alpha1.ReasonDrainTimedOut, "")), answers(7)), v1alpha1.ReasonBackingOff, request,
		},
		"no budget refuses, and the policy is paused": {policy("workers", paused(nil, "")), both(third(budgeted), answers(7)), v1alpha1.ReasonPaused, request},
		"a webhook held up the drain":                 {workers, both(third(), answers(7)), v1alpha1.ReasonBackingOff, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := needy("worker-1")
			tc.option(node)
			p := one(tc.policy, node).plan()
			same(t, "granted", tc.reason == "", len(p.Ledger.Granted) > 0)
			for _, d := range p.Decisions {
				same(t, "decision", []string{string(tc.reason), tc.request}, []string{string(d.Reason), d.Preflight})
			}
		})
	}
}

// TestReboots_PreflightRequest checks which agents get a request to check their pods.
func TestReboots_PreflightRequest(t *testing.T) {
	workers, request := policy("workers"), gates.PodsOf(policy("workers")).Preflight()
	stale := sets(v1alpha1.AnnotationPreflight, "stale")
	const active = protocol.GrantActive
	answered := func(h *host) { stale(h, h.node) }
	cases := map[string]struct {
		situation situation
		want      string
	}{
		"a node that waits for its turn":             {one(policy("workers", atMost("0")), needy("worker-1")), request},
		"a node that would be rebooted in a dry run": {one(policy("workers", dryRun), needy("worker-1")), request},
		"not a node that something else holds back":  {one(policy("workers", paused(nil, "")), needy("worker-1")), ""},
		"not a node that backs off":                  {one(workers, needy("worker-1", grant(1, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonAgentSilent)))), ""},
		"not a node that no longer needs a reboot":   {one(workers, newHost("worker-1", answered)), ""},
		"not a node without a policy":                {one(policy("workers", selects("pool", "web")), newHost("worker-1", answered)), "stale"},
		"a node that may begin, after an edit":       {one(policy("workers", holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, active), answered)), request},
		"a node that has begun stays as it was":      {one(policy("workers", holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, active), progress(7, protocol.PhaseDraining), answered)), "stale"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.situation.hosts[0].node.Annotations[v1alpha1.AnnotationPreflight]
			for _, d := range tc.situation.plan().Decisions {
				got = d.Preflight
			}
			same(t, "request", tc.want, got)
		})
	}
}

// TestPreflightOf checks that the request changes only if the policy's rules for pods change.
func TestPreflightOf(t *testing.T) {
	db := v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db", "tier": "data"}}
	drain := func(d v1alpha1.Drain) *v1alpha1.RebootPolicy {
		return policy("workers", func(p *v1alpha1.RebootPolicy) { p.Spec.Drain = &d })
	}
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		same   bool
	}{
		"another limit":                    {policy("workers", atMost("3")), true},
		"a pause":                          {policy("workers", paused(nil, "")), true},
		"a time-out of the drain":          {policy("workers", drainTimeout(minute)), true},
		"the action at the time-out":       {policy("workers", rebootsAnyway), true},
		"a default that is set explicitly": {drain(v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalBlock}), true},
		"an empty section":                 {policy("workers", func(p *v1alpha1.RebootPolicy) { p.Spec.Gates = &v1alpha1.Gates{} }), true},
		"unmanaged pods may go":            {drain(v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete}), false},
		"emptyDir volumes are kept":        {drain(v1alpha1.Drain{EmptyDirData: v1alpha1.PodDisposalBlock}), false},
		"a rule":                           {drain(v1alpha1.Drain{Rules: []v1alpha1.DrainRule{{PodSelector: db}}}), false},
		"a gate":                           {policy("workers", waitsForPods), false},
		"the same rules in another policy": {policy("web"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "the same request", tc.same, gates.PodsOf(tc.policy).Preflight() == gates.PodsOf(policy("workers")).Preflight())
		})
	}
}

// TestReboots_DrainableFirst checks that nodes whose drain must time out go last if a timed-out
// drain still reboots. But no node goes before another domain's turn, and nodes that are already
// down keep going first.
func TestReboots_DrainableFirst(t *testing.T) {
	p := policy("workers", atMost("4"), rebootsAnyway)
	stuck := replies(p, guarded("default/db-0", ""))
	s := one(p, needy("a", stuck, needsSince(9*minute)), needy("b", needsSince(3*minute)), needy("c", needsSince(5*minute)), needy("d", stuck, cordoned))
	same(t, "granted", []string{"d", "c", "b", "a"}, names(s.plan().Ledger.Granted))
}

// TestReboots_TriedLast checks that nodes with a closed budget go after all nodes that can be
// drained, in any domain and even if their own request is urgent. The one with fewer failed tries
// goes first, so that none waits forever. The ledger marks each try.
func TestReboots_TriedLast(t *testing.T) {
	p := policy("workers", atMost("5"), allowsUrgent)
	stuck := replies(p, closedBy("default/db-0", ""))
	s := one(p,
		needy("a", stuck, needsSince(9*minute), failedTry(2, time.Hour)), needy("b", stuck, needsSince(3*minute), cordoned),
		needy("c", stuck, failedTry(1, time.Hour)), needy("d", needsSince(5*minute)), needy("e", needsSince(2*minute)),
	)
	granted := s.plan().Ledger.Granted
	same(t, "granted", []string{"d", "e", "b", "c", "a"}, names(granted))
	for _, e := range granted {
		same(t, e.Node+" is tried", e.Node < "d", e.Try)
	}
}

// TestReboots_Try checks that a grant for a try stays, and that one given before the agent reported
// the closed budget does not.
func TestReboots_Try(t *testing.T) {
	try := entry("worker-1", 7)
	try.Try = true
	holds := policy("workers", holding(7, try))
	waits := policy("workers", holding(7, try), neverTries)
	for name, tc := range map[string]struct {
		policy *v1alpha1.RebootPolicy
		want   underway.Action
	}{
		"the policy tries":           {holds, underway.Wait},
		"the policy no longer tries": {waits, underway.CancelGrant},
	} {
		t.Run(name, func(t *testing.T) {
			node := needy("worker-1", grant(7, protocol.GrantActive), replies(tc.policy, closedBy("default/db-0", "")))
			same(t, "action", tc.want, one(tc.policy, node).plan().Reboots[0].Action)
		})
	}
}
