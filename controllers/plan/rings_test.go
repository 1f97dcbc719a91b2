package plan_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// TestReboots_OneRingAfterTheOther checks who is granted, and why and until when worker-1, which is
// in no ring, waits for ring canary.
func TestReboots_OneRingAfterTheOther(t *testing.T) {
	canary := label("ring", "canary")
	back := func(ago time.Duration) func(*host) { return grant(5, protocol.GrantFinished, grantedAt(-ago)) }
	rings := func(mods ...func(*v1alpha1.Ring)) func(*v1alpha1.RebootPolicy) {
		return inRings("ring", ring("canary", mods...), ring("early"))
	}
	hour := rings(soaks(time.Hour))
	workers := func(mods ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
		return policy("workers", append([]func(*v1alpha1.RebootPolicy){atMost("3"), holding(9)}, mods...)...)
	}
	past := func(node string, ago time.Duration) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Status.History = append(p.Status.History, v1alpha1.PastReboot{Node: node, Result: v1alpha1.RebootSucceeded, EndedAt: metav1.NewTime(evening.Add(-ago))})
		}
	}
	left := func(which string) string {
		return "waiting for ring canary: " + which + "; paused nodes do not count"
	}
	gone := `waiting for ring canary: Node c was deleted during its reboot, and no node of the ring has come back since; ` +
		`to resume: kubectl annotate rebootpolicy workers reboot-operator.io/resume="why"`
	paused := annotated(v1alpha1.AnnotationPaused, "true")
	inhibited := agentBlocking(`{"reason":"Inhibited","message":"dpkg"}`)
	for name, tc := range map[string]struct {
		policy  *v1alpha1.RebootPolicy
		hosts   []*host
		granted []string
		waits   string
		until   time.Duration
	}{
		"an earlier ring with nothing to do": {workers(rings()), []*host{newHost("c", canary)}, []string{"worker-1"}, "", 0},
		"an earlier ring that begins now":    {workers(rings()), hosts(needy, "c d", canary), []string{"c", "d"}, left("some of its nodes are not done"), 0},
		"the ring in between": {
			workers(rings()),
			[]*host{needy("e", label("ring", "early"))},
			[]string{"e"},
			"waiting for ring early: some of its nodes are not done; paused nodes do not count", 0,
		},
		"an urgent request does not overtake rings": {
			workers(rings(), allowsUrgent), []*host{needy("c", canary), needy("worker-1", urgently)}, []string{"c"}, left("some of its nodes are not done"), 0,
		},
		"a node that waits for a person is named first": {
			workers(rings()), []*host{needy("c", canary), needy("d", canary, inhibited)}, []string{"c"}, left("d is not done (Inhibited)"), 0,
		},
		"a node whose gate is being asked for the first time": {
			workers(rings(), gated("burn")), []*host{needy("c", canary)}, nil, left("some of its nodes are not done"), 0,
		},
		"a node that has just booted": {
			workers(rings()), []*host{needy("c", canary, agentBlocking(`{"reason":"JustBooted"}`))}, nil, left("some of its nodes are not done"), 0,
		},
		"a node that is down": {workers(rings()), []*host{needy("c", canary, notReady)}, nil, left("c is not done (NodeUnavailable)"), 0},
		"a paused node does not delay the next ring": {
			workers(rings()), []*host{needy("c", canary, paused, inhibited)}, []string{"worker-1"}, "", 0,
		},
		"a paused machine that did not come back": {
			workers(rings(), holding(9, entry("c", 9))),
			[]*host{newHost("c", canary, notReady, paused, grant(9, protocol.GrantActive), progress(9, protocol.PhaseRebooting))},
			[]string{"worker-1"},
			"", 0,
		},
		"a machine that is being rebooted": {
			workers(rings(), holding(9, entry("c", 9))),
			[]*host{newHost("c", canary, grant(9, protocol.GrantActive), progress(9, protocol.PhaseRebooting))},
			nil, left("some of its nodes are not done"), 0,
		},
		"the last node of the ring is back, and the ring has no soak": {
			workers(rings(), holding(9, entry("c", 9))),
			[]*host{newHost("c", canary, grant(9, protocol.GrantFinished), progress(9, protocol.PhaseRebooting))},
			[]string{"worker-1"},
			"", 0,
		},
		"the last node that is back soaks longest": {
			workers(hour),
			[]*host{newHost("c", canary, back(10*minute)), newHost("d", canary, back(20*minute))},
			nil,
			"waiting for ring canary: c has been back in service since Mon 2026-06-01 21:50:00 UTC; its soak ends Mon 2026-06-01 22:50:00 UTC", 50 * minute,
		},
		"the soak is over":               {workers(hour), []*host{newHost("c", canary, back(time.Hour))}, []string{"worker-1"}, "", 0},
		"a paused node does not soak":    {workers(hour), []*host{newHost("c", canary, paused, back(minute))}, []string{"worker-1"}, "", 0},
		"a node that was never rebooted": {workers(hour), []*host{newHost("c", canary, notReady)}, []string{"worker-1"}, "", 0},
		"only the history shows the reboot": {
			workers(hour, past("c", 20*minute)),
			[]*host{newHost("c", canary)},
			nil,
			"waiting for ring canary: c has been back in service since Mon 2026-06-01 21:40:00 UTC; its soak ends Mon 2026-06-01 22:40:00 UTC", 40 * minute,
		},
		"a node that goes down during its soak": {
			workers(hour),
			[]*host{newHost("c", canary, back(3*time.Hour), nodeCondition(corev1.NodeReady, corev1.ConditionUnknown, -150*minute))},
			nil, left("c is not done (NodeUnavailable)"), 0,
		},
		"a node that goes down later": {
			workers(hour),
			[]*host{newHost("c", canary, back(3*time.Hour), nodeCondition(corev1.NodeReady, corev1.ConditionUnknown, -minute))},
			[]string{"worker-1"},
			"", 0,
		},
		"a node that goes down again during a restarted soak": {
			workers(hour),
			[]*host{newHost("c", canary, back(75*minute), nodeCondition(corev1.NodeReady, corev1.ConditionUnknown, -5*minute))},
			nil, left("c is not done (NodeUnavailable)"), 0,
		},
		"a node that went down during its soak is Ready again": {
			workers(hour),
			[]*host{newHost("c", canary, back(75*minute), nodeCondition(corev1.NodeReady, corev1.ConditionTrue, -5*minute))},
			nil,
			"waiting for ring canary: c has been back in service since Mon 2026-06-01 21:55:00 UTC; its soak ends Mon 2026-06-01 22:55:00 UTC", 55 * minute,
		},
		"the soak begins again once the node is Ready again": {
			workers(hour),
			[]*host{newHost("c", canary, back(50*minute), nodeCondition(corev1.NodeReady, corev1.ConditionTrue, -5*minute))},
			nil,
			"waiting for ring canary: c has been back in service since Mon 2026-06-01 21:55:00 UTC; its soak ends Mon 2026-06-01 22:55:00 UTC", 55 * minute,
		},
		"a reboot in the distant future": {
			workers(hour), []*host{newHost("c", canary, back(-1000*time.Hour))}, []string{"worker-1"}, "", 0,
		},
		"a history in the distant future":           {workers(hour, past("c", -26*time.Hour)), []*host{newHost("c", canary)}, []string{"worker-1"}, "", 0},
		"a Node that was deleted during its reboot": {workers(rings(), lost("c", "canary", -time.Hour)), nil, nil, gone, 0},
		"a Node of the ring that is deleted during its reboot now": {
			workers(rings(), holding(9, v1alpha1.LedgerEntry{Node: "c", Seq: 9, At: at(-time.Hour), RebootingAt: new(at(-time.Hour)), Ring: "canary"})), nil, nil, gone, 0,
		},
		"a Node that was deleted before its reboot began": {workers(rings(), holding(9, v1alpha1.LedgerEntry{Node: "c", Seq: 9, At: at(-time.Hour), Ring: "canary"})), nil, []string{"worker-1"}, "", 0},
		"a Node that was deleted in its reboot, and another node of the ring has come back since": {
			workers(rings(), lost("c", "canary", -time.Hour), func(p *v1alpha1.RebootPolicy) {
				p.Status.History = append(p.Status.History, v1alpha1.PastReboot{Node: "d", Ring: "canary", Result: v1alpha1.RebootSucceeded, EndedAt: at(-minute)})
			}),
			nil,
			[]string{"worker-1"},
			"", 0,
		},
		"a Node that was deleted in its reboot, and an administrator resumes":                                       {workers(rings(), lost("c", "canary", -time.Hour), resume("its disk broke")), nil, []string{"worker-1"}, "", 0},
		"a Node that was deleted in its reboot, and an administrator has resumed":                                   {workers(rings(), lost("c", "canary", -time.Hour), resumedAt(-minute)), nil, []string{"worker-1"}, "", 0},
		"a Node that was deleted in its reboot, and an administrator has resumed by a leader whose clock was ahead": {workers(rings(), lost("c", "canary", -time.Hour), resumedAt(26*time.Hour)), nil, nil, gone, 0},
		"a Node of a later ring": {workers(rings(), lost("c", "", -time.Hour)), nil, []string{"worker-1"}, "", 0},
		"the limit of the ring":  {workers(rings(ringAtMost("1"))), hosts(needy, "c d", canary), []string{"c"}, left("some of its nodes are not done"), 0},
		"half of the ring":       {workers(rings(ringAtMost("50%"))), hosts(needy, "a b c d", canary), []string{"a", "b"}, left("some of its nodes are not done"), 0},
		"a limit that cannot be read": {
			workers(rings(ringAtMost("many"))), nil, nil, `policy workers: spec.rings, maxUnavailable of ring canary: "many" is not a percentage`, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(tc.policy, tc.hosts...)
			if len(s.hosts) == 0 || s.hosts[len(s.hosts)-1].name != "worker-1" {
				s.hosts = append(s.hosts, needy("worker-1", needsSince(5*time.Hour)))
			}
			e := plan.Explain(s.snapshot(), "worker-1")
			until := time.Duration(0)
			if !e.Until.IsZero() {
				until = e.Until.Sub(evening)
			}
			same(t, "worker-1", []any{tc.granted, tc.waits, tc.until}, []any{names(s.plan().Ledger.Granted), e.Decision.Message, until})
		})
	}
}

// TestReboots_LimitOfTheRing checks why canary nodes wait for their turn, and whether they carry
// the pending taint.
func TestReboots_LimitOfTheRing(t *testing.T) {
	canary := label("ring", "canary")
	for name, tc := range map[string]struct {
		atMost  string
		hosts   []*host
		message string
		pending bool
	}{
		"one node of the ring goes":                        {"1", hosts(needy, "a b", canary), "waiting for its turn: at most 1 of the nodes of ring canary may be unavailable at once", true},
		"one node of the ring is down":                     {"1", []*host{newHost("a", canary, notReady), needy("b", canary)}, "waiting for its turn: at most 1 of the nodes of ring canary may be unavailable at once", true},
		"one node of another ring is down":                 {"1", []*host{newHost("a", notReady), needy("b", canary)}, "", false},
		"a node that is down already uses no further slot": {"1", []*host{needy("b", canary, cordoned)}, "", false},
		"no node of the ring may go":                       {"0", []*host{needy("b", canary)}, "maxUnavailable of ring canary is 0: no node of it may be rebooted", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers", atMost("3"), inRings("ring", ring("canary", ringAtMost(tc.atMost)))), tc.hosts...).plan()
			pending := slices.ContainsFunc(p.Markers, func(m record.Markers) bool { return m.Node == "b" && m.Pending != "" })
			same(t, "b", []any{tc.message, tc.pending}, []any{decided(p, "b").Message, pending})
		})
	}
}

// ringOf returns the number of a node's ring, computed without the planner.
func ringOf(p *v1alpha1.RebootPolicy, n *record.Node) int {
	for i, ring := range p.Spec.Rings {
		if ring.NodeSelector.MatchLabels["pool"] == n.Labels["pool"] {
			return i
		}
	}
	return len(p.Spec.Rings)
}

// aheadOf reports whether a node's record is too far in the future to count.
func aheadOf(now time.Time, n *record.Node) bool {
	latest := now.Add(time.Hour)
	return n.Grant != nil && n.Grant.At.After(latest) || n.Progress != nil && n.Progress.At.After(latest)
}

// TestReboots_KeepsTheOrderOfRings checks that no node is granted, in any cluster, while a node of
// an earlier ring that is not paused needs a reboot, holds a grant or soaks. No grant takes more
// nodes of a ring down than its limit.
func TestReboots_KeepsTheOrderOfRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := one(policy("workers", atMost("3"), holding(6), drawRings(t, "0", "1", "2", "50%")))
		s.policies[0].Spec.MaxFailures = new(int32(9))
		for _, name := range someNodes {
			s.hosts = append(s.hosts, drawHost(t, name))
		}
		snapshot := s.snapshot()
		p, policy, nodes := plan.Of(snapshot), snapshot.Policy, governed(snapshot)
		down, members := map[int]int{}, map[int]int{}
		inLedger := map[string]bool{}
		for _, e := range p.Ledger.Own() {
			inLedger[e.Node] = true
		}
		for name, n := range nodes {
			ring := ringOf(policy, n)
			members[ring]++
			if inLedger[name] || n.Outstanding() && !aheadOf(snapshot.Now, n) || n.Unavailable() {
				down[ring]++
			}
		}
		for _, e := range p.Ledger.Granted {
			n := nodes[e.Node]
			ring := ringOf(policy, n)
			for name, other := range nodes {
				earlier := ringOf(policy, other)
				if earlier >= ring || other.Paused(snapshot.Now) || !inLedger[name] && aheadOf(snapshot.Now, other) {
					continue
				}
				soak := policy.Spec.Rings[earlier].SoakOrDefault()
				g := other.Grant
				soaks := soak > 0 && g != nil && g.State == protocol.GrantFinished && g.At.Add(soak).After(snapshot.Now)
				if other.NeedsReboot() || inLedger[name] || other.Outstanding() || soaks {
					t.Fatalf("granted %s before %s of an earlier ring\n%v", e.Node, name, s)
				}
			}
			if ring == len(policy.Spec.Rings) || policy.Spec.Rings[ring].MaxUnavailable == nil || n.Unavailable() {
				continue
			}
			if limit := scaled(policy.Spec.Rings[ring].MaxUnavailable, members[ring]); down[ring] > limit {
				t.Fatalf("granted %s: %d of its ring are down, limit %d\n%v", e.Node, down[ring], limit, s)
			}
		}
	})
}

// scaled returns maxUnavailable in nodes, computed without the planner.
func scaled(maxUnavailable *intstr.IntOrString, members int) int {
	if maxUnavailable.Type == intstr.Int {
		return maxUnavailable.IntValue()
	}
	percent, _ := intstr.GetScaledValueFromIntOrPercent(maxUnavailable, 100, false)
	return max(1, members*percent/100)
}
