package plan_test

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// grantedFor makes the entry that of a policy that shares the ledger.
func grantedFor(policy string, e v1alpha1.LedgerEntry) v1alpha1.LedgerEntry {
	e.Policy = policy
	return e
}

// TestShared_Limit checks that a policy that shares a limit grants in the other one's ledger. The
// unavailable nodes of both count together: granted, not Ready, cordoned, or in a ledger that the
// spec named before. A policy whose shared limit cannot be used grants nothing, and says why.
func TestShared_Limit(t *testing.T) {
	gpu := func(mods ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
		return policy("gpu", append(options(selects("pool", "gpu"), sharing("workers")), mods...)...)
	}
	workers := func(mods ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
		return policy("workers", append(options(selects("pool", "cpu")), mods...)...)
	}
	gpus, cpus := hosts(needy, "gpu-1 gpu-2", label("pool", "gpu")), hosts(newHost, "cpu-1 cpu-2", label("pool", "cpu"))
	all := slices.Concat(gpus, cpus)
	type want struct {
		granted []string
		ledger  string
		limit   int32
		shared  int32
		reason  v1alpha1.Reason
		message string
	}
	// full expects that the slots of both are used up. It names the ledger in which the policy
	// grants.
	full := func(ledger string, granted ...string) want {
		return want{granted, ledger, 1, 1, v1alpha1.ReasonBudgetExhausted, "waiting for its turn: at most 1 of the nodes of policies gpu, workers together may be unavailable at once"}
	}
	elsewhere := func(ledger string) string {
		return "waiting for its turn: spec.concurrency.shared changed, and reboots of policy gpu still count against the limit of policy " + ledger
	}
	invalid := func(with string) want {
		return want{nil, "", 1, 1, v1alpha1.ReasonInvalid, "policy gpu: spec.concurrency.shared: policy workers shares the limit of policy " + with + " itself; name a policy that does not"}
	}
	cases := map[string]struct {
		situation situation
		want      want
	}{
		"nothing is down":                                         {one(gpu(), gpus...).with(workers()), full("workers", "gpu-1")},
		"50% of the nodes of both policies":                       {one(gpu(), all...).with(workers(atMost("50%"))), want{[]string{"gpu-1", "gpu-2"}, "workers", 2, 2, "", ""}},
		"the other policy has granted a reboot":                   {one(gpu(), all...).with(workers(holding(1, entry("cpu-1", 1)))), full("workers")},
		"the other policy has granted a reboot of a deleted node": {one(gpu(), gpus...).with(workers(holding(1, entry("cpu-3", 1)))), full("workers")},
		"a node of the other policy is cordoned":                  {one(gpu(), append(gpus, newHost("cpu-1", label("pool", "cpu"), cordoned))...).with(workers()), full("workers")},
		"a policy with its own limit": {
			one(gpu(atMost("1"), sharing("workers")), gpus...).with(workers(atMost("2"))), want{
				[]string{"gpu-1"}, "workers", 1, 2, v1alpha1.ReasonBudgetExhausted, "waiting for its turn: at most 1 of the nodes of policy gpu may be unavailable at once",
			},
		},
		"the policy with the limit counts the other policy's nodes": {
			one(workers(selects("pool", "gpu"), holding(1, grantedFor("gpu", entry("cpu-1", 1)))), all...).with(gpu(selects("pool", "cpu"))), full(""),
		},
		"the policy with the limit counts grants in the other policy's ledger": {
			one(workers(selects("pool", "gpu")), all...).with(gpu(selects("pool", "cpu"), holding(1, entry("cpu-1", 1)))), full(""),
		},
		"an entry from before the policy shared a limit": {
			one(gpu(holding(1, entry("gpu-2", 1))), gpus...).with(workers(atMost("2"))), want{nil, "", 1, 1, v1alpha1.ReasonBudgetExhausted, elsewhere("gpu")},
		},
		"an entry in the ledger that the policy shared before": {
			one(policy("gpu", selects("pool", "gpu"), atMost("2")), gpus...).with(workers(holding(1, grantedFor("gpu", entry("gpu-2", 1))))),
			want{nil, "workers", 2, 0, v1alpha1.ReasonBudgetExhausted, elsewhere("workers")},
		},
		"the other policy is paused, has mode DryRun and has halted": {
			one(gpu(), gpus[0]).with(workers(paused(nil, ""), dryRun, halted)), want{[]string{"gpu-1"}, "workers", 1, 1, "", ""},
		},
		"the other policy does not exist": {one(gpu(), gpus...), want{
			nil, "", 1, 1, v1alpha1.ReasonSharedPolicyNotFound,
			"policy gpu: spec.concurrency.shared: policy workers does not exist; create it, or correct the field",
		}},
		"a policy that is being deleted": {one(gpu(), gpus...).with(workers(deleted)), want{
			nil, "", 1, 1, v1alpha1.ReasonSharedPolicyNotFound,
			"policy gpu: spec.concurrency.shared: policy workers is being deleted; correct the field",
		}},
		"a policy that shares a limit itself":   {one(gpu(), gpus...).with(workers(sharing("others")), policy("others", selects("pool", "x"))), invalid("others")},
		"a policy that shares this one's limit": {one(gpu(), gpus...).with(workers(sharing("gpu"))), invalid("gpu")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			got := want{granted: names(p.Ledger.Granted), limit: p.Limit, shared: p.Ledger.Limit}
			if own := tc.situation.policies[0].Name; p.Ledger.Policy != own {
				got.ledger = p.Ledger.Policy
			}
			for _, e := range p.Ledger.Granted {
				same(t, "the entry names its policy", got.ledger != "", e.Policy == "gpu")
			}
			for _, d := range p.Decisions {
				if d.Reason != v1alpha1.ReasonGranted && d.Reason != "" {
					got.reason, got.message = d.Reason, d.Message
				}
			}
			same(t, "plan", tc.want, got, gocmp.AllowUnexported(want{}))
		})
	}
}

// TestShared_Rebooting checks that a plan writes another policy's ledger to record that a node is
// rebooting. The policy's own ledger is written with its status.
func TestShared_Rebooting(t *testing.T) {
	hosts := []*host{newHost("gpu-1", label("pool", "gpu"), grant(2, protocol.GrantActive, givenBy("gpu"), func(g *protocol.Grant) { g.Ledger = "workers" }), progress(2, protocol.PhaseRebooting))}
	workers := policy("workers", selects("pool", "cpu"), holding(2, grantedFor("gpu", entry("gpu-1", 2))))
	p := one(policy("gpu", selects("pool", "gpu"), sharing("workers")), hosts...).with(workers).plan()
	if e := p.Ledger.Own()[0]; !p.Ledger.Changed() || e.RebootingAt == nil {
		t.Errorf("the shared ledger changes: %t, %+v", p.Ledger.Changed(), e)
	}
	p = one(policy("workers", holding(2, entry("a", 2))), newHost("a", grant(2, protocol.GrantActive), progress(2, protocol.PhaseRebooting))).plan()
	if e := p.Ledger.Own()[0]; p.Ledger.Changed() || e.RebootingAt == nil {
		t.Errorf("the ledger changes: %t, %+v", p.Ledger.Changed(), e)
	}
}

// TestShared_Owner checks that the granting policy finishes an entry in any ledger, or the policy
// with the ledger if the granting one no longer exists.
func TestShared_Owner(t *testing.T) {
	workers := policy("workers", selects("pool", "cpu"), atMost("3"), holding(3, entry("cpu-1", 1), grantedFor("gpu", entry("gpu-1", 2)), grantedFor("gone", entry("cpu-2", 3))))
	gpu := policy("gpu", selects("pool", "gpu"), sharing("workers"))
	hosts := append(hosts(needy, "gpu-1", label("pool", "gpu")), hosts(needy, "cpu-1 cpu-2", label("pool", "cpu"))...)
	for _, tc := range []struct {
		policies      []*v1alpha1.RebootPolicy
		reboots, rest []string
	}{
		{[]*v1alpha1.RebootPolicy{workers, gpu}, []string{"cpu-1", "cpu-2"}, []string{"gpu-1"}},
		{[]*v1alpha1.RebootPolicy{gpu, workers}, []string{"gpu-1"}, []string{"cpu-1", "cpu-2"}},
	} {
		s := situation{policies: tc.policies, hosts: hosts}.snapshot()
		p := plan.Of(s)
		same(t, tc.policies[0].Name+": reboots and entries of others", [][]string{tc.reboots, tc.rest}, [][]string{names(ledgerOf(p.Reboots)), names(p.Ledger.Others)})
		same(t, tc.policies[0].Name+": the ledger", workers.Status.Grants, p.Ledger.All())
		for node, policy := range map[string]string{"cpu-1": "workers", "gpu-1": "gpu"} {
			same(t, "responsible for "+node, policy, s.Governor.Responsible(nodeNamed(s, node)))
		}
	}
}
