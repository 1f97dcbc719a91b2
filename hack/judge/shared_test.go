package judge

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// sharing adds policy q, which selects b by its pool and shares the limit of p unless changed.
func sharing(changes ...func(*v1alpha1.RebootPolicySpec)) func(*story) {
	return func(s *story) {
		s.now = s.now.Add(time.Second)
		q := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1alpha1.RebootPolicySpec{
			Priority: 1, NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "q"}}, Concurrency: &v1alpha1.Concurrency{Shared: "p"},
		}}
		for _, change := range changes {
			change(&q.Spec)
		}
		s.records = append(s.records, Change{At: s.now, Name: "q", By: Admin, Policy: q})
	}
}

// another makes q a policy with its own limit.
var another = sharing(func(s *v1alpha1.RebootPolicySpec) { s.Concurrency = nil })

// granted gives a grant of q in the ledger of p. ofQ adds only its entry.
func granted(name string, seq int64) func(*story) {
	return all(ofQ(name, seq), shows(name, protocol.Grant{Policy: "q", Ledger: "p", Seq: seq, State: protocol.GrantActive}))
}

func ofQ(name string, seq int64) func(*story) {
	return listed(0, v1alpha1.LedgerEntry{Node: name, Seq: seq, BootID: name, Policy: "q"})
}

func TestTake_SharedLimit(t *testing.T) {
	paused := func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{} }
	atMost := func(n int32) func(*v1alpha1.RebootPolicySpec) {
		return func(s *v1alpha1.RebootPolicySpec) { s.Concurrency.MaxUnavailable = new(intstr.FromInt32(n)) }
	}
	mine := labelled("b", "q")
	histories{
		"one after the other":        {[]func(*story){mine, sharing(), reboot("a", 1), granted("b", 2), drains("b", 2)}, nil},
		"both at once":               {[]func(*story){mine, sharing(), grant("a", 1), granted("b", 2), drains("a", 1), drains("b", 2)}, []Rule{Unavailable, Limit}},
		"both, and the limit is two": {[]func(*story){mine, sharing(), limitIs(intstr.FromInt32(2)), grant("a", 1), granted("b", 2), drains("a", 1), drains("b", 2)}, nil},
		"a percentage of the nodes of both": {
			[]func(*story){mine, sharing(), limitIs(intstr.FromString("100%")), grant("a", 1), granted("b", 2), drains("a", 1), drains("b", 2)}, nil,
		},
		"two, and the policy's own limit is one": {
			[]func(*story){labelled("a", "q"), mine, sharing(atMost(1)), limitIs(intstr.FromInt32(2)), granted("a", 1), granted("b", 2), drains("a", 1), drains("b", 2)},
			[]Rule{Limit},
		},
		"two, and the policy's own limit was two": {
			[]func(*story){
				labelled("a", "q"), mine, sharing(atMost(2)), limitIs(intstr.FromInt32(2)), granted("a", 1), granted("b", 2),
				sharing(atMost(1)), drains("a", 1), drains("b", 2),
			}, nil,
		},
		"in the ledger of a policy whose limit it does not share": {[]func(*story){mine, another, granted("b", 1), drains("b", 1)}, []Rule{Window}},
		"in its own ledger, and it shares another limit": {
			[]func(*story){mine, sharing(), spec(func(s *v1alpha1.RebootPolicySpec) { s.Concurrency = &v1alpha1.Concurrency{Shared: "q"} }), grant("a", 1), drains("a", 1)}, []Rule{Window},
		},
		"of a policy that does not exist":               {[]func(*story){granted("b", 1), drains("b", 1)}, []Rule{Window, Governs}},
		"in a pause of the other policy":                {[]func(*story){mine, sharing(), spec(paused), granted("b", 1), drains("b", 1)}, nil},
		"in a pause":                                    {[]func(*story){mine, sharing(paused), granted("b", 1), drains("b", 1)}, []Rule{Window}},
		"in a pause that its manager may not have seen": {[]func(*story){mine, sharing(), sharing(paused), granted("b", 1), drains("b", 1)}, nil},
		"in a pause that its manager has seen":          {[]func(*story){mine, sharing(), sharing(paused), passes(2 * Slack), granted("b", 1), drains("b", 1)}, []Rule{Window}},
		"back in the ledger that had lost it, in a pause": {
			[]func(*story){mine, sharing(), granted("b", 1), policyGone, policyAnew, sharing(paused), passes(2 * Slack), ofQ("b", 1), drains("b", 1)}, nil,
		},
		"outside the ledger": {[]func(*story){mine, sharing(), granted("b", 1), wiped(manager), drains("b", 1)}, []Rule{Ledger}},
	}.check(t)
}
