package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// unasked leaves what agents are asked to the tests of this file.
var unasked = cmpopts.IgnoreFields(plan.Decision{}, "Preflight")

// replies is what the agent of a node has reported to the question of a policy, in this boot; mods change that.
func replies(p *v1alpha1.RebootPolicy, mods ...func(*protocol.PreflightReport)) func(*host) {
	question, _ := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: plan.PreflightOf(p)})
	return func(h *host) {
		r := protocol.PreflightReport{Policy: question.Policy, Revision: question.Revision, BootID: h.bootID()}
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

// TestReboots_Preflight: what a node's agent has found among its pods, and what that means. An empty reason: it is granted.
func TestReboots_Preflight(t *testing.T) {
	const (
		unknown = "the node's agent has not reported yet whether pods of gates.blockingPods run on it; " +
			"where this stays, see whether the agent's pod runs"
		isKept                   = "can never be drained: default/bare (unmanaged)"
		unreachable, undrainable = v1alpha1.ReasonGateUnreachable, v1alpha1.ReasonUndrainablePod
	)
	gated, plain, anyway := policy("workers", waitsForPods), policy("workers"), policy("workers", rebootsAnyway)
	bare, budget := kept("default/bare", "unmanaged"), guarded("default/db-0", "PodDisruptionBudget db allows no disruption")
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
		"nobody has answered and no gate asks":        {plain, nil, "", ""},
		"nobody has answered":                         {gated, nil, unreachable, unknown},
		"nothing is in the way":                       {gated, replies(gated), "", ""},
		"the agent does not know and no gate asks":    {plain, replies(plain, problem), "", ""},
		"an answer about what the policy said before": {gated, replies(plain), unreachable, unknown},
		"an answer to another policy":                 {gated, replies(policy("web", waitsForPods)), unreachable, unknown},
		"an answer of the boot before":                {gated, replies(gated, bootBefore), unreachable, unknown},
		"a pod blocks": {
			gated, replies(gated, blocking("default/migrate-1")), v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy workers waits for default/migrate-1",
		},
		"more pods block than are named": {
			gated, replies(gated, blocking("a/1", "a/2"), func(r *protocol.PreflightReport) { r.Blocking.Count = 40 }),
			v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy workers waits for a/1, a/2 and 38 more",
		},
		"the agent does not know": {
			gated, replies(gated, problem),
			unreachable, "the node's agent cannot determine whether pods of gates.blockingPods run on it: listing pods: forbidden",
		},
		"a pod that the policy keeps": {plain, replies(plain, bare), undrainable, isKept},
		"a pod that the policy keeps, where a drain that takes too long ends in a reboot": {anyway, replies(anyway, bare), undrainable, isKept},
		"a budget that never allows anything": {
			plain, replies(plain, budget), undrainable, "cannot be drained: default/db-0 (PodDisruptionBudget db allows no disruption)",
		},
		"a budget that never allows anything, where a drain that takes too long ends in a reboot": {anyway, replies(anyway, budget), "", ""},
		"a pod that could not be drained in the boot before":                                      {plain, replies(plain, bare, bootBefore), "", ""},
		"a pod that could not be drained under what the policy said before":                       {policy("workers", deletesUnmanaged), replies(plain, bare), "", ""},
		"a pod that cannot be drained comes before one that blocks":                               {gated, replies(gated, blocking("default/migrate-1"), bare), undrainable, isKept},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := needy("worker-1")
			if tc.option != nil {
				tc.option(node)
			}
			p := one(tc.policy, node).plan()
			want := []plan.Decision{{Node: "worker-1", Status: corev1.ConditionFalse, Reason: tc.reason, Message: tc.message, Preflight: plan.PreflightOf(tc.policy)}}
			if tc.reason == "" {
				want = nil
			}
			same(t, "decisions", want, p.Decisions)
			same(t, "granted", tc.reason == "", len(p.Granted) > 0)
		})
	}
}

// TestReboots_PreflightOfAGrant: what a look at the pods means for a grant that the agent has not begun to use, or has.
func TestReboots_PreflightOfAGrant(t *testing.T) {
	gated := policy("workers", waitsForPods, holding(7, entry("worker-1", 7)))
	published := func(options ...func(*host)) *host {
		return needy("worker-1", append([]func(*host){grant(7, protocol.GrantActive)}, options...)...)
	}
	cases := map[string]struct {
		node   *host
		action plan.Action
		reason v1alpha1.Reason
	}{
		"a pod that blocks takes it back":          {published(replies(gated, blocking("default/migrate-1"))), plan.CancelGrant, v1alpha1.ReasonBlockingPod},
		"a pod that cannot go takes it back":       {published(replies(gated, kept("default/bare", "unmanaged"))), plan.CancelGrant, v1alpha1.ReasonUndrainablePod},
		"a grant that was not shown is taken back": {needy("worker-1", replies(gated, blocking("default/migrate-1"))), plan.CancelGrant, v1alpha1.ReasonBlockingPod},
		"an answer that is stale takes nothing back: the agent looks again": {
			published(replies(policy("workers"), blocking("default/migrate-1"))), plan.Wait, v1alpha1.ReasonGranted,
		},
		"no answer takes nothing back": {published(), plan.Wait, v1alpha1.ReasonGranted},
		"a drain that has begun is finished": {
			published(progress(7, protocol.PhaseDraining), replies(gated, blocking("default/migrate-1"))), plan.Wait, v1alpha1.ReasonGranted,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reboot := one(gated, tc.node).plan().Reboots[0]
			same(t, "reboot", []any{tc.action, tc.reason}, []any{reboot.Action, reboot.Reason})
		})
	}
}

// TestReboots_Question: which agents are asked to look at their pods.
func TestReboots_Question(t *testing.T) {
	workers, question := policy("workers"), plan.PreflightOf(policy("workers"))
	stale := sets(v1alpha1.AnnotationPreflight, "stale")
	const active = protocol.GrantActive
	answered := func(h *host) { stale(h, h.node) }
	cases := map[string]struct {
		situation situation
		want      string
	}{
		"one that waits for its turn":              {one(policy("workers", atMost("0")), needy("worker-1")), question},
		"one that would be rebooted in a dry run":  {one(policy("workers", dryRun), needy("worker-1")), question},
		"none while something else holds it back":  {one(policy("workers", paused(nil, "")), needy("worker-1")), ""},
		"none while it backs off":                  {one(workers, needy("worker-1", grant(1, protocol.GrantCancelled, cancelledAt(-minute, v1alpha1.ReasonAgentSilent)))), ""},
		"none that needs no reboot any more":       {one(workers, newHost("worker-1", answered)), ""},
		"none that nobody governs":                 {one(policy("workers", selects("pool", "web")), newHost("worker-1", answered)), "stale"},
		"one that may begin, after an edit":        {one(policy("workers", holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, active), answered)), question},
		"the one that has begun is left as it was": {one(policy("workers", holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, active), progress(7, protocol.PhaseDraining), answered)), "stale"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.situation.hosts[0].node.Annotations[v1alpha1.AnnotationPreflight]
			for _, d := range tc.situation.plan().Decisions {
				got = d.Preflight
			}
			same(t, "question", tc.want, got)
		})
	}
}

// TestQuestion: it is another one when the policy specifies something else about pods, and only then.
func TestQuestion(t *testing.T) {
	db := v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db", "tier": "data"}}
	drain := func(d v1alpha1.Drain) *v1alpha1.RebootPolicy {
		return policy("workers", func(p *v1alpha1.RebootPolicy) { p.Spec.Drain = &d })
	}
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		same   bool
	}{
		"another limit":              {policy("workers", atMost("3")), true},
		"a pause":                    {policy("workers", paused(nil, "")), true},
		"a time-out of the drain":    {policy("workers", drainTimeout(minute)), true},
		"what happens then":          {policy("workers", rebootsAnyway), true},
		"a default that is spelt":    {drain(v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalBlock}), true},
		"an empty section":           {policy("workers", func(p *v1alpha1.RebootPolicy) { p.Spec.Gates = &v1alpha1.Gates{} }), true},
		"unmanaged pods may go":      {drain(v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete}), false},
		"emptyDir volumes are kept":  {drain(v1alpha1.Drain{EmptyDirData: v1alpha1.PodDisposalBlock}), false},
		"a rule":                     {drain(v1alpha1.Drain{Rules: []v1alpha1.DrainRule{{PodSelector: db}}}), false},
		"a gate":                     {policy("workers", waitsForPods), false},
		"the same of another policy": {policy("web"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "the same question", tc.same, plan.PreflightOf(tc.policy) == plan.PreflightOf(policy("workers")))
		})
	}
}

// TestReboots_DrainableFirst: where a drain that takes too long ends in a reboot, nodes whose drain must take that long go
// last, but no node before another domain's turn, and none that is down already after one that is not.
func TestReboots_DrainableFirst(t *testing.T) {
	p := policy("workers", atMost("4"), rebootsAnyway)
	stuck := replies(p, guarded("default/db-0", ""))
	s := one(p, needy("a", stuck, needsSince(9*minute)), needy("b", needsSince(3*minute)), needy("c", needsSince(5*minute)), needy("d", stuck, cordoned))
	same(t, "granted", []string{"d", "c", "b", "a"}, names(s.plan().Granted))
}

// TestReboots_HostileReport: whatever somebody writes for the agent, what is reported fits into a status and a grant.
func TestReboots_HostileReport(t *testing.T) {
	p := policy("workers")
	long := strings.Repeat("\x01ß", 500)
	node := needy("worker-1", replies(p, kept(long, long)))
	decisions := one(p, node).plan().Decisions
	if len(decisions) != 1 || decisions[0].Reason != v1alpha1.ReasonUndrainablePod {
		t.Fatalf("got %v", decisions)
	}
	if n := len(decisions[0].Message); n > 600 {
		t.Errorf("the message has %d bytes", n)
	}
}
