package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

func TestReboots_OneDomainAtATime(t *testing.T) {
	x, y, z := label("zone", "x"), label("zone", "y"), label("zone", "z")
	zoned := func(mods ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
		return policy("workers", append([]func(*v1alpha1.RebootPolicy){atMost("3"), domains("zone")}, mods...)...)
	}
	busy := func(label string) string {
		return "DomainBusy: waiting for another domain: nodes with " + label + " are rebooting, and only one domain may reboot at a time"
	}
	behindB := func(why string) string {
		return "DomainBusy: waiting for its turn: b goes first (" + why + "), once the nodes with zone=x are back"
	}
	// moved returns a fleet with a node that came from another policy during its reboot.
	moved := func(mods ...func(*host)) situation {
		return situation{
			policies: []*v1alpha1.RebootPolicy{zoned(), policy("others", selects("pool", "other"), holding(1, entry("b", 1)))},
			hosts: []*host{needy("a", x), newHost("b", append(mods,
				y, grant(1, protocol.GrantActive, givenBy("others")), progress(1, protocol.PhaseRebooting))...)},
		}
	}
	const full = "BudgetExhausted: waiting for its turn: at most 3 of the nodes may be unavailable at once"
	cases := map[string]struct {
		situation situation
		granted   []string
		waits     map[string]string
	}{
		"labels do not matter without a topologyKey": {one(policy("workers", atMost("3")), needy("a", x), needy("b", y)), []string{"a", "b"}, nil},
		"the first domain by name, even if another waits longer": {
			one(zoned(), needy("a", y, needsSince(5*time.Hour)), needy("b", x), needy("c", x)),
			[]string{"b", "c"},
			map[string]string{"a": busy("zone=x")},
		},
		"the domain with a rebooting node continues": {
			one(zoned(holding(1, entry("c", 1))), needy("a", x), needy("b", y), needy("c", y, underWay)),
			[]string{"b"},
			map[string]string{"a": busy("zone=y")},
		},
		"nodes without the label are one domain, which comes last": {
			one(zoned(), needy("a"), needy("b"), needy("c", x)), []string{"c"}, map[string]string{"a": busy("zone=x"), "b": busy("zone=x")},
		},
		"nodes without the label that reboot make the others wait": {
			one(zoned(holding(1, entry("a", 1))), needy("a", underWay), needy("b", x)), nil, map[string]string{"b": busy("no label zone")},
		},
		"a node down without a reboot uses the limit but does not make its domain busy": {
			one(zoned(), needy("a", x), newHost("b", y, notReady)), []string{"a"}, nil,
		},
		"a node that did not come back does not make its domain busy": {
			one(zoned(holding(1, entry("b", 1))), needy("a", x), newHost("b", y, notReady, grant(1, protocol.GrantActive, grantedAt(-time.Hour)), progress(1, protocol.PhaseRebooting, phaseAt(-time.Hour)))),
			[]string{"a"},
			nil,
		},
		"a node that went down in its drain does not make its domain busy": {
			one(zoned(holding(1, entry("b", 1))), needy("a", x), newHost("b", y, notReady, grant(1, protocol.GrantActive, grantedAt(-time.Hour)), progress(1, protocol.PhaseDraining, phaseAt(-time.Hour)))),
			[]string{"a"},
			nil,
		},
		"a node that is up but whose agent does not end its drain makes its domain busy": {
			one(zoned(holding(1, entry("b", 1))), needy("a", x), newHost("b", y, grant(1, protocol.GrantActive, grantedAt(-time.Hour)), progress(1, protocol.PhaseDraining, phaseAt(-time.Hour)))),
			nil,
			map[string]string{"a": busy("zone=y")},
		},
		"a node of a policy that shares the limit does not make its domain busy": {
			situation{
				policies: []*v1alpha1.RebootPolicy{
					policy("workers", selects("pool", "cpu"), sharing("gpu"), domains("zone")),
					policy("gpu", selects("pool", "gpu"), atMost("3"), holding(1, entry("b", 1))),
				},
				hosts: []*host{needy("a", x, label("pool", "cpu")), newHost("b", y, label("pool", "gpu"), grant(1, protocol.GrantActive, givenBy("gpu")), progress(1, protocol.PhaseRebooting))},
			},
			[]string{"a"},
			nil,
		},
		"a node that another policy has granted makes its domain busy":                     {moved(), nil, map[string]string{"a": busy("zone=y")}},
		"a node of another policy that did not come back does not make its domain busy":    {moved(notReady, permitted(v1alpha1.ReasonRebootTimedOut)), []string{"a"}, nil},
		"a node of another policy whose after-hooks refused does not make its domain busy": {moved(permitted(v1alpha1.ReasonHookFailed)), []string{"a"}, nil},
		"a node of another policy whose agent is silent does not make its domain busy":     {moved(permitted(v1alpha1.ReasonAgentSilent)), []string{"a"}, nil},
		"a node in a conflict that the other policy has granted makes its domain busy":     {moved(label("pool", "other")), nil, map[string]string{"a": busy("zone=y")}},
		"an entry whose reboot is over does not keep its domain busy": {
			one(zoned(holding(1, entry("b", 1))), needy("a", x),
				newHost("b", y, grant(1, protocol.GrantFinished), progress(1, protocol.PhaseRebooting))),
			[]string{"a"},
			nil,
		},
		"a grant that the ledger has lost keeps its domain busy": {
			one(zoned(), needy("a", x), needy("b", y, underWay)), nil, map[string]string{"a": busy("zone=y")},
		},
		"two domains are busy because the key was set later: no other node goes": {
			one(zoned(holding(2, entry("a", 1), entry("b", 2))), needy("a", x, underWay),
				needy("b", y, grant(2, protocol.GrantActive)), needy("c", x), needy("d", z)),
			nil,
			map[string]string{"c": busy("zone=y"), "d": busy("zone=x")},
		},
		"the first domain that may go: a domain that only waits delays no other": {
			one(zoned(), needy("a", x, annotated(v1alpha1.AnnotationPaused, "true")), needy("b", y)),
			[]string{"b"},
			map[string]string{"a": "NodePaused: the node is paused; to resume: kubectl annotate node a reboot-operator.io/paused-"},
		},
		"an urgent request in another domain goes first": {
			one(zoned(allowsUrgent, holding(1, entry("c", 1))), needy("a", x), needy("b", y, urgently), needy("c", x, underWay)),
			nil,
			map[string]string{"a": behindB("its request is urgent"), "b": busy("zone=x")},
		},
		"a node past its deadline in another domain goes first": {
			one(zoned(deadline(24*time.Hour), holding(1, entry("c", 1))), needy("a", x), needy("b", y, needsSince(25*time.Hour)), needy("c", x, underWay)),
			nil,
			map[string]string{"a": behindB("it is past its deadline"), "b": busy("zone=x")},
		},
		"a node that was not rebooted since its need began goes first": {
			one(zoned(holding(9, entry("c", 9))), needy("a", x, grant(5, protocol.GrantFinished)), needy("b", y), needy("c", x, grant(9, protocol.GrantActive))),
			nil,
			map[string]string{"a": behindB("a has been rebooted since its need began"), "b": busy("zone=x")},
		},
		"a node whose last grant did not fail goes first": {
			one(zoned(holding(9, entry("c", 9))), needy("a", x, grant(5, protocol.GrantCancelled, cancelledAt(-time.Hour, v1alpha1.ReasonAgentSilent))),
				needy("b", y), needy("c", x, grant(9, protocol.GrantActive))),
			nil,
			map[string]string{"a": behindB("the last grant of a ended without a reboot"), "b": busy("zone=x")},
		},
		"two urgent requests: that of the busy domain is granted": {
			one(zoned(allowsUrgent, holding(1, entry("c", 1))), needy("a", x, urgently), needy("b", y, urgently), needy("c", x, underWay)),
			[]string{"a"},
			map[string]string{"b": busy("zone=x")},
		},
		"an urgent request that waits for another reason delays no other": {
			one(zoned(allowsUrgent, holding(1, entry("c", 1))), needy("a", x), needy("b", y, urgently, annotated(v1alpha1.AnnotationPaused, "true")), needy("c", x, underWay)),
			[]string{"a"},
			map[string]string{"b": "NodePaused: the node is paused; to resume: kubectl annotate node b reboot-operator.io/paused-"},
		},
		"a dry run reports the same": {
			one(zoned(dryRun), needy("a", x), needy("b", y)), nil,
			map[string]string{"a": "DryRun: the node would be rebooted now, but policy workers is in mode DryRun", "b": busy("zone=x")},
		},
		"the limit is checked after the domain": {
			one(zoned(), needy("a", x), needy("b", x), needy("c", x), needy("d", x), needy("e", y)),
			[]string{"a", "b", "c"},
			map[string]string{"d": full, "e": busy("zone=x")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "granted", tc.granted, names(p.Ledger.Granted))
			same(t, "waits", tc.waits, refusals(p))
		})
	}
}

// TestReboots_NoDomainPassesAnUrgentNode checks that a node that is urgent or past its deadline,
// and waits only for another domain, goes first in any cluster: no other node of its ring is
// granted before it.
func TestReboots_NoDomainPassesAnUrgentNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := one(policy("workers", atMost("3"), holding(6), domains("pool"), allowsUrgent, deadline(150*minute)))
		if oneIn(t, 3, "rings") {
			drawRings(t, "0", "1", "2", "50%")(s.policies[0])
		}
		for _, name := range someNodes {
			s.hosts = append(s.hosts, drawHost(t, name))
			if oneIn(t, 3, "entry") {
				holding(6, entry(name, int64(rapid.IntRange(1, 6).Draw(t, "seq"))))(s.policies[0])
			}
		}
		snapshot := s.snapshot()
		p, nodes := plan.Of(snapshot), governed(snapshot)
		rank := func(n *record.Node) int {
			due := record.DueAt(snapshot.Policy, n)
			switch {
			case record.Urgent(snapshot.Policy, n):
				return 2
			case !due.IsZero() && !snapshot.Now.Before(due):
				return 1
			}
			return 0
		}
		for _, e := range p.Ledger.Granted {
			for _, d := range p.Decisions {
				n, waits := nodes[e.Node], nodes[d.Node]
				if d.Reason == v1alpha1.ReasonDomainBusy && waits != nil && ringOf(snapshot.Policy, waits) == ringOf(snapshot.Policy, n) && rank(waits) > rank(n) {
					t.Fatalf("granted %s before %s: %s\n%v", e.Node, d.Node, d.Message, s)
				}
			}
		}
	})
}

// refusals returns the reason and the message of each node that waits, or nil.
func refusals(p plan.Plan) map[string]string {
	var waits map[string]string
	for _, d := range p.Decisions {
		if d.Status != corev1.ConditionFalse {
			continue
		}
		if waits == nil {
			waits = map[string]string{}
		}
		waits[d.Node] = string(d.Reason) + ": " + d.Message
	}
	return waits
}
