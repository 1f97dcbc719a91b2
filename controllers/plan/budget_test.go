package plan_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
)

func TestLimit(t *testing.T) {
	cases := map[string]struct {
		maxUnavailable intstr.IntOrString
		selected       int
		want           int32
		err            string
	}{
		"number":                                    {maxUnavailable: intstr.FromInt32(3), selected: 10, want: 3},
		"number above the nodes":                    {maxUnavailable: intstr.FromInt32(30), selected: 10, want: 30},
		"0 allows none":                             {maxUnavailable: intstr.FromInt32(0), selected: 10},
		"negative number allows none":               {maxUnavailable: intstr.FromInt32(-1), selected: 10},
		"25% of 11 rounds down (behaviour 15)":      {maxUnavailable: intstr.FromString("25%"), selected: 11, want: 2},
		"25% of 8 is exact":                         {maxUnavailable: intstr.FromString("25%"), selected: 8, want: 2},
		"25% of 3 is at least one (behaviour 15)":   {maxUnavailable: intstr.FromString("25%"), selected: 3, want: 1},
		"1% of one is at least one":                 {maxUnavailable: intstr.FromString("1%"), selected: 1, want: 1},
		"100% allows all":                           {maxUnavailable: intstr.FromString("100%"), selected: 7, want: 7},
		"100% of 5000 is as much as a ledger holds": {maxUnavailable: intstr.FromString("100%"), selected: 5000, want: 1000},
		"0% allows none":                            {maxUnavailable: intstr.FromString("0%"), selected: 10},
		"25% of zero nodes allows none":             {maxUnavailable: intstr.FromString("25%")},
		"percentage above 100":                      {maxUnavailable: intstr.FromString("101%"), selected: 10, err: `"101%" is not a percentage`},
		"negative percentage":                       {maxUnavailable: intstr.FromString("-1%"), selected: 10, err: `"-1%" is not a percentage`},
		"number as a string":                        {maxUnavailable: intstr.FromString("5"), selected: 10, err: `"5" is not a percentage`},
		"two percent signs":                         {maxUnavailable: intstr.FromString("5%%"), selected: 10, err: `"5%%" is not a percentage`},
		"fraction":                                  {maxUnavailable: intstr.FromString("2.5%"), selected: 10, err: `"2.5%" is not a percentage`},
		"nothing":                                   {maxUnavailable: intstr.FromString(""), selected: 10, err: `"" is not a percentage`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := slots.Limit(tc.maxUnavailable, tc.selected)
			if got != tc.want || err == nil && tc.err != "" || err != nil && err.Error() != tc.err {
				t.Errorf("Limit(%s, %d) = %d, %v; want %d, %s", tc.maxUnavailable.String(), tc.selected, got, err, tc.want, tc.err)
			}
		})
	}
}

// names returns the nodes of some entries.
func names(entries []v1alpha1.LedgerEntry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Node)
	}
	return names
}

// TestReboots_Budget checks who uses the budget and who still gets a slot.
func TestReboots_Budget(t *testing.T) {
	cases := map[string]struct {
		situation situation
		granted   []string
		holders   string
	}{
		"as many as the limit (behaviour 15)": {
			one(policy("workers", atMost("2")), hosts(needy, "a b c")...), []string{"a", "b"}, "a (holds a grant), b (holds a grant)",
		},
		"a granted reboot (behaviour 16)": {
			one(policy("workers", atMost("2"), holding(1, entry("a", 1))), needy("a", underWay), needy("b"), needy("c")),
			[]string{"b"},
			"a (holds a grant), b (holds a grant)",
		},
		"a granted node that does not ask any more keeps its slot (behaviour 19)": {
			one(policy("workers", holding(1, entry("a", 1))), newHost("a", underWay), needy("b")), nil, "a (holds a grant)",
		},
		"more granted than the limit (behaviour 20)": {
			one(policy("workers", holding(2, entry("a", 1), entry("b", 2))), newHost("a", underWay),
				newHost("b", grant(2, protocol.GrantActive), progress(2, protocol.PhaseDraining)), needy("c")),
			nil, "a (holds a grant), b (holds a grant)",
		},
		"a node NotReady without a reboot (behaviour 18)": {
			one(policy("workers", atMost("2")), newHost("a", notReady), needy("b"), needy("c")), []string{"b"}, "a (is not Ready), b (holds a grant)",
		},
		"a node that somebody cordoned": {
			one(policy("workers", atMost("2")), newHost("a", cordoned), needy("b"), needy("c")), []string{"b"}, "a (is cordoned), b (holds a grant)",
		},
		"a node that an autoscaler is deleting": {
			one(policy("workers", atMost("2")), needy("b"), needy("c"), newHost("a", tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule))),
			[]string{"b"},
			"a (is being deleted by Karpenter), b (holds a grant)",
		},
		"a node that is being deleted": {
			one(policy("workers", atMost("2")), newHost("a", deleting), needy("b"), needy("c")),
			[]string{"b"},
			"a (is being deleted), b (holds a grant)",
		},
		"a node that another policy reboots": {
			one(policy("workers"), needy("a", grant(7, protocol.GrantActive, givenBy("old"))), needy("b")).with(policy("old", selects("pool", "old"))),
			nil, "a (holds a grant)",
		},
		"nodes of other policies count for those policies": {
			one(policy("workers"), newHost("a", label("pool", "db"), notReady), needy("b")).with(policy("db", selects("pool", "db"), priority(1))),
			[]string{"b"},
			"b (holds a grant)",
		},
		"a node that two policies select counts in both": {
			one(policy("workers"), newHost("a", notReady, label("pool", "db")), needy("b")).with(policy("db", selects("pool", "db"))), nil, "a (is not Ready)",
		},
		"a node that two policies select and the other one reboots": {
			one(policy("workers"), needy("a", label("pool", "db"), grant(7, protocol.GrantActive, givenBy("db"))), needy("b")).with(policy("db", selects("pool", "db"), holding(7, entry("a", 7)))),
			nil, "a (holds a grant)",
		},
		"a node that two policies select counts in a third that shares a limit with one of them": {
			one(policy("workers", selects("pool", "workers")), newHost("a", notReady, label("pool", "db")), needy("b", label("pool", "workers"))).
				with(policy("db", selects("pool", "db"), sharing("workers")), policy("rival", selects("pool", "db"))), nil, "a (is not Ready)",
		},
		"a cordoned node that needs a reboot costs nobody anything": {
			one(policy("workers"), needy("a"), needy("b", cordoned), newHost("c", notReady)), []string{"b"}, "b (holds a grant), c (is not Ready)",
		},
		"two cordoned nodes still go one at a time": {
			one(policy("workers"), needy("a", cordoned), needy("b", cordoned)), []string{"a"}, "a (holds a grant), b (is cordoned)",
		},
		"a node whose entry is released uses a slot until that is written": {
			one(policy("workers", holding(1, entry("a", 1))),
				needy("a", grant(1, protocol.GrantActive), progress(1, protocol.PhaseAborted)), needy("b")),
			[]string{"b"},
			"b (holds a grant)",
		},
		"no node in a dry run": {one(policy("workers", dryRun), hosts(needy, "a b")...), nil, ""},
		"five names at most": {
			one(policy("workers", atMost("9")), hosts(needy, "f e d c b a")...),
			[]string{"a", "b", "c", "d", "e", "f"},
			"a (holds a grant), b (holds a grant), c (holds a grant), d (holds a grant), e (holds a grant) and 1 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "granted", tc.granted, names(p.Ledger.Granted))
			same(t, "holders", tc.holders, p.Holders)
		})
	}
}

// TestReboots_FillsTheLedgerAtMost checks that a ledger holds at most 1000 entries at any limit,
// because the API server refuses more.
func TestReboots_FillsTheLedgerAtMost(t *testing.T) {
	var fleet []*host
	for i := range v1alpha1.MaxGrants + 5 {
		fleet = append(fleet, needy(fmt.Sprintf("node-%04d", i)))
	}
	p := one(policy("workers", atMost("2000")), fleet...).plan()
	if len(p.Ledger.Granted) != v1alpha1.MaxGrants || p.Limit != 2000 {
		t.Errorf("granted %d with limit %d", len(p.Ledger.Granted), p.Limit)
	}
}

// TestReboots_Order checks who goes first.
func TestReboots_Order(t *testing.T) {
	controlPlane := label(record.ControlPlaneLabels[1], "")
	p := one(policy("everything", atMost("9")),
		needy("b"), needy("a"), needy("c", needsSince(5*60*minute)), needy("d", cordoned), needy("cp-1", controlPlane),
		needy("cp-0", controlPlane, needsSince(4*60*minute)), newHost("idle"),
	).plan()
	same(t, "nodes that are down first, then who waits longest, control planes last, by name", []string{"d", "c", "cp-0", "a", "b"}, names(p.Ledger.Granted))
	for i, e := range p.Ledger.Granted {
		if e.Seq != int64(i+1) || e.BootID != e.Node+"-boot-1" || !e.At.Time.Equal(evening) {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	same(t, "seq", int64(5), p.Ledger.Seq)
}
