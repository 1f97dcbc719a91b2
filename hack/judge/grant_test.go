package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// changes returns a write of a kubelet.
func changes(name string, change func(*corev1.Node)) func(*story) {
	return func(s *story) { s.node(name, "kubelet", change) }
}

func notReady(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
}

func deleting(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} }

// TestTake_Grant tests which nodes may get a grant, next to which other grants, and when an entry
// may be released.
func TestTake_Grant(t *testing.T) {
	two, late := limitIs(intstr.FromInt32(2)), passes(stale)
	ofPool := spec(func(s *v1alpha1.RebootPolicySpec) {
		s.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "p"}}
	})
	equal := sharing(func(s *v1alpha1.RebootPolicySpec) { s.Priority, s.Concurrency = 0, nil })
	down, drain, a := changes("b", notReady), all(grant("a", 1), drains("a", 1)), grant("a", 1)
	cases := map[string]struct {
		story []func(*story)
		want  []Rule
		// exact lists the rules broken if the granter has current data, if that differs.
		exact []Rule
	}{
		"a node that is not selected":                 {[]func(*story){ofPool, late, a}, []Rule{Governs}, nil},
		"a node that is selected":                     {[]func(*story){labelled("a", "p"), ofPool, late, a}, nil, nil},
		"a node of a policy with a higher priority":   {[]func(*story){labelled("a", "q"), another, late, a}, []Rule{Governs}, nil},
		"a node that joined the policy a moment ago":  {[]func(*story){labelled("a", "q"), another, passes(time.Second), a}, nil, []Rule{Governs}},
		"a node of two policies of the same priority": {[]func(*story){labelled("a", "q"), equal, late, a}, []Rule{Governs}, nil},
		"a node that does not exist":                  {[]func(*story){ledger("c", 1, "c")}, []Rule{Governs}, nil},

		"while another node is not Ready":                       {[]func(*story){down, late, a}, []Rule{Unavailable}, nil},
		"while another node has just become not Ready":          {[]func(*story){late, down, passes(time.Second), a}, nil, []Rule{Unavailable}},
		"after another node was not Ready":                      {[]func(*story){down, late, joins("b", "b"), a}, nil, nil},
		"while an administrator has cordoned another node":      {[]func(*story){cordons("b", Admin, true), late, a}, []Rule{Unavailable}, nil},
		"while another node is being deleted":                   {[]func(*story){changes("b", deleting), late, a}, []Rule{Unavailable}, nil},
		"after another node was deleted":                        {[]func(*story){down, late, deleted("b"), a}, nil, nil},
		"while another node is not Ready, with a limit of two":  {[]func(*story){two, down, late, a}, nil, nil},
		"while a node that just joined the policy is not Ready": {[]func(*story){labelled("b", "q"), another, down, late, labelled("b", "p"), a}, nil, []Rule{Unavailable}},
		"to a node that is down and joined the policy a moment ago": {
			[]func(*story){labelled("a", "q"), another, down, cordons("a", Admin, true), late, labelled("a", "p"), a}, nil, nil,
		},
		"to a node that was down until a moment ago":      {[]func(*story){down, cordons("a", Admin, true), late, cordons("a", Admin, false), a}, nil, []Rule{Unavailable}},
		"while a node of another policy is not Ready":     {[]func(*story){labelled("b", "q"), another, down, late, a}, nil, nil},
		"while a node that shares the limit is not Ready": {[]func(*story){labelled("b", "q"), sharing(), down, late, a}, []Rule{Unavailable}, nil},
		"while another node holds a grant":                {[]func(*story){a, grant("b", 2)}, []Rule{Unavailable}, nil},

		"an entry is released during the drain":                {[]func(*story){drain, released("a")}, []Rule{Release}, nil},
		"an entry is released past the point of no return":     {[]func(*story){drain, commits("a", 1), released("a")}, []Rule{Release}, nil},
		"an entry disappears with its policy during the drain": {[]func(*story){drain, policyGone}, []Rule{Release}, nil},
		"an entry is released before the drain":                {[]func(*story){a, released("a")}, nil, nil},
		"an entry is released after a drain that was given up": {[]func(*story){drain, aborts("a", 1), released("a")}, nil, nil},
		"an entry is released after its reboot":                {[]func(*story){drain, commits("a", 1), finishes("a", 1), released("a")}, nil, nil},
		"an entry is released after its Node was deleted":      {[]func(*story){drain, deleted("a"), joins("a", "2"), released("a")}, nil, nil},
		"an administrator removes the entry":                   {[]func(*story){drain, wiped(Admin)}, nil, nil},

		"a grant of a deleted policy appears in its ledger": {[]func(*story){
			another, carriesOf("q", "a", 1), ofPool, late,
			func(s *story) {
				q := s.records[slices.IndexFunc(s.records, func(r Change) bool { return r.Name == "q" })]
				q.At, q.Gone = s.now, true
				s.records = append(s.records, q)
			}, passes(time.Hour), ledger("a", 1, "a"),
		}, nil, nil},
		"a grant dated in the future": {[]func(*story){grantAfter(-time.Minute, "a", 1)}, []Rule{Window}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, broken(tc.story...)); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s", diff)
			}
			if tc.exact == nil {
				tc.exact = tc.want
			}
			if diff := cmp.Diff(tc.exact, rulesOf(judgedBy(Options{TrueClocks: true, Exact: true}, tc.story...))); diff != "" {
				t.Errorf("rules broken, exactly (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTake_WrongClocks tests managers whose clocks differ from that of the records: only the time
// in the entry counts.
func TestTake_WrongClocks(t *testing.T) {
	cases := map[string]struct {
		decided time.Duration // age of the decision according to its entry
		want    []Rule
	}{
		"in the window, dated in the future": {-2 * time.Hour, nil},
		"in the window, long ago":            {22 * time.Hour, nil},
		"outside of the window":              {0, []Rule{Window}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			window := spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Windows = []v1alpha1.Window{{Name: "w", Start: "02:00", Duration: v1alpha1.Duration{Duration: time.Hour}}}
			})
			if diff := cmp.Diff(tc.want, rulesOf(judgedBy(Options{}, window, grantAfter(tc.decided, "a", 1)))); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTake_Budget tests percentages, as the disruption controller counts them, and a changed
// selector.
func TestTake_Budget(t *testing.T) {
	budget := func(keeps, app string, leave ...string) func(*story) {
		return all(budgeted(leave...), func(s *story) {
			b := s.records[len(s.records)-1].Budget
			b.Spec.MinAvailable, b.Status.DesiredHealthy = new(intstr.Parse(keeps)), 2
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		})
	}
	three := func(s *story) {
		pods("True", "1", "2", "3")(s)
		for _, r := range s.records[len(s.records)-3:] {
			r.Pod.Labels = map[string]string{"app": "shop"}
		}
	}
	ends := func(uid string) func(*story) {
		return all(goes(uid, ""), func(s *story) { s.records[len(s.records)-1].Pod.Labels = map[string]string{"app": "shop"} })
	}
	histories{
		"50% of three pods is two":                {[]func(*story){three, budget("50%", "shop", "1"), ends("1")}, nil},
		"50% of three pods is not less than two":  {[]func(*story){three, budget("50%", "shop", "1", "2"), ends("1"), ends("2")}, []Rule{Budget}},
		"a pod of another app":                    {[]func(*story){three, budget("2", "bank"), ends("1")}, nil},
		"a pod of another app until a moment ago": {[]func(*story){three, budget("2", "bank"), budget("2", "shop"), ends("1")}, []Rule{Budget}},
		"a pod of this app until a moment ago":    {[]func(*story){three, budget("2", "shop"), budget("2", "bank"), ends("1")}, nil},
	}.check(t)
}
