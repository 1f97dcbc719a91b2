package verdict_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/verdict"
)

// story is a history that is told in short words.
type story struct {
	h      verdict.History
	policy *v1alpha1.RebootPolicy
	nodes  map[string]*corev1.Node
	at     time.Time
}

// newStory begins with a policy of a limit and nodes n1, n2 and n3.
func newStory(limit int) *story {
	s := &story{nodes: map[string]*corev1.Node{}, policy: &v1alpha1.RebootPolicy{}, at: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	s.policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted}}
	s.h.MinAvailable, s.h.Removed, s.h.Zones = 2, map[string]bool{}, map[string]*time.Location{}
	s.limit(limit)
	for _, name := range []string{"n1", "n2", "n3"} {
		s.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
		s.write(name)
	}
	return s
}

func (s *story) append(r verdict.Revision) *story {
	r.Number = int64(len(s.h.Revisions) + 1)
	s.h.Revisions = append(s.h.Revisions, r)
	return s
}

func (s *story) write(node string) *story {
	return s.append(verdict.Revision{Node: s.nodes[node].DeepCopy()})
}

func (s *story) limit(n int) *story {
	s.policy.Spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt(n))}
	return s.append(verdict.Revision{Policy: s.policy.DeepCopy()})
}

func (s *story) grant(node string, seq int64) *story {
	s.policy.Status.Grants = append(s.policy.Status.Grants, v1alpha1.LedgerEntry{Node: node, Seq: seq, BootID: "b" + node, At: metav1.NewTime(s.at)})
	s.append(verdict.Revision{Policy: s.policy.DeepCopy()})
	s.record(node, seq, v1alpha1.GrantActive)
	return s.write(node)
}

func (s *story) record(node string, seq int64, state v1alpha1.GrantState) {
	s.nodes[node].Annotations[v1alpha1.AnnotationGrant] = (&v1alpha1.Grant{Policy: "p", Seq: seq, BootID: "b" + node, State: state, At: metav1.NewTime(s.at)}).String()
}

// progress is the agent's; it cordons the node, or uncordons it with the end.
func (s *story) progress(node string, seq int64, phase v1alpha1.Phase) *story {
	s.nodes[node].Annotations[v1alpha1.AnnotationProgress] = (&v1alpha1.Progress{Seq: seq, Phase: phase, BootID: "b" + node, Cordoned: true, At: metav1.NewTime(s.at)}).String()
	s.nodes[node].Spec.Unschedulable = phase != v1alpha1.PhaseAborted
	return s.write(node)
}

func (s *story) finish(node string, seq int64) *story {
	s.record(node, seq, v1alpha1.GrantFinished)
	s.nodes[node].Spec.Unschedulable = false
	return s.write(node)
}

func (s *story) release(node string) *story {
	s.policy.Status.Grants = slices.DeleteFunc(slices.Clone(s.policy.Status.Grants), func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
	return s.append(verdict.Revision{Policy: s.policy.DeepCopy()})
}

func (s *story) machine(n int, what verdict.What) *story {
	node := fmt.Sprintf("n%d", n)
	s.h.Machines = append(s.h.Machines, verdict.MachineEvent{Machine: n, What: what, Node: node, Boot: "b" + node})
	return s
}

// madeFor has a node's entries name another UID.
func (s *story) madeFor(node string, uid types.UID) *story {
	for i := range s.policy.Status.Grants {
		if e := &s.policy.Status.Grants[i]; e.Node == node {
			e.NodeUID = uid
		}
	}
	return s.append(verdict.Revision{Policy: s.policy.DeepCopy()})
}

// wipe takes the status away.
func (s *story) wipe() *story {
	s.policy.Status = v1alpha1.RebootPolicyStatus{}
	return s.append(verdict.Revision{Policy: s.policy.DeepCopy()})
}

// reboot is a whole one, in order.
func (s *story) reboot(n int, seq int64) *story {
	node := fmt.Sprintf("n%d", n)
	return s.machine(n, verdict.Needs).grant(node, seq).progress(node, seq, v1alpha1.PhaseDraining).progress(node, seq, v1alpha1.PhaseRebooting).
		machine(n, verdict.Reboots).finish(node, seq).release(node)
}

func (s *story) pod(uid string, ready corev1.ConditionStatus) *story {
	return s.append(verdict.Revision{Pod: podOf(uid, ready)})
}

// evicted is what the API server does: the budget gives leave, and then the pod goes.
func (s *story) evicted(uid string) *story {
	budget := &policyv1.PodDisruptionBudget{}
	budget.Status.DisruptedPods = map[string]metav1.Time{uid: {}}
	return s.append(verdict.Revision{Budget: budget}).deleted(uid)
}

// deleted is a pod that somebody deletes.
func (s *story) deleted(uid string) *story {
	return s.append(verdict.Revision{Pod: podOf(uid, corev1.ConditionTrue), Deleted: true})
}

func podOf(uid string, ready corev1.ConditionStatus) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return pod
}

func (s *story) cordon(node string, on bool) *story {
	s.nodes[node].Spec.Unschedulable = on
	s.write(node)
	s.h.Cordons = append(s.h.Cordons, verdict.Cordon{Revision: int64(len(s.h.Revisions)), Node: node, On: on})
	return s
}

func (s *story) delete(node string) *story {
	return s.append(verdict.Revision{Node: s.nodes[node].DeepCopy(), Deleted: true})
}

func (s *story) window(at time.Time) *story {
	s.at = at
	s.policy.Spec.Windows = []v1alpha1.Window{{Name: "w", Start: "10:00", Duration: metav1.Duration{Duration: time.Hour}}}
	return s
}

// TestCheck: each rule finds the history that breaks it, and none finds fault with one that is in order.
func TestCheck(t *testing.T) {
	draining, aborted := v1alpha1.PhaseDraining, v1alpha1.PhaseAborted
	cases := map[string]struct {
		told *story
		want []string
	}{
		"reboots one after the other": {newStory(1).reboot(1, 1).reboot(2, 2), nil},
		"two nodes drained where one may be": {
			newStory(1).grant("n1", 1).progress("n1", 1, draining).grant("n2", 2).progress("n2", 2, draining).
				progress("n1", 1, aborted).progress("n2", 2, aborted).release("n1").release("n2"),
			[]string{"no bounded semaphore", "over the limit"},
		},
		"a grant that no ledger has": {
			newStory(1).grant("n1", 1).progress("n1", 1, draining).progress("n2", 2, draining).
				progress("n2", 2, aborted).progress("n1", 1, aborted).release("n1"),
			[]string{"begun outside the ledger", "no bounded semaphore", "over the limit"},
		},
		"a limit that is lowered under grants": {
			newStory(2).grant("n1", 1).grant("n2", 2).limit(1).progress("n1", 1, draining).progress("n2", 2, draining).
				progress("n1", 1, aborted).progress("n2", 2, aborted).release("n1").release("n2"),
			nil,
		},
		"a limit that is lowered before a grant": {
			newStory(2).grant("n1", 1).progress("n1", 1, draining).limit(1).grant("n2", 2).progress("n2", 2, draining).
				progress("n1", 1, aborted).progress("n2", 2, aborted).release("n1").release("n2"),
			[]string{"no bounded semaphore"},
		},
		"a slot given away before its holder is back": {
			newStory(1).grant("n1", 1).progress("n1", 1, draining).release("n1").grant("n2", 2).progress("n2", 2, draining).
				progress("n2", 2, aborted).release("n2").progress("n1", 1, aborted),
			[]string{"no bounded semaphore", "over the limit"},
		},
		"a node that is deleted gives its slot back": {
			newStory(1).grant("n1", 1).progress("n1", 1, draining).delete("n1").release("n1").grant("n2", 2).
				progress("n2", 2, draining).progress("n2", 2, aborted).release("n2"),
			nil,
		},
		"two reboots for one need":        {newStory(1).reboot(1, 1).machine(1, verdict.Reboots), []string{"a reboot without a need"}},
		"a need that nobody answers":      {newStory(1).machine(1, verdict.Needs), []string{"a need without a reboot"}},
		"a need of a machine that leaves": {newStory(1).machine(1, verdict.Needs).machine(1, verdict.Leaves), nil},
		"a reboot that nobody granted":    {newStory(1).machine(1, verdict.Needs).machine(1, verdict.Reboots), []string{"a reboot without a grant"}},
		"a node that is left cordoned": {
			newStory(1).grant("n1", 1).progress("n1", 1, draining).release("n1"),
			[]string{"left cordoned", "left in mid-attempt"},
		},
		"an entry that is left in the ledger": {newStory(1).grant("n1", 1), []string{"left in the ledger"}},
		"a Node registered anew that begins what its ledger has released": {
			newStory(1).grant("n1", 1).progress("n1", 1, draining).delete("n1").release("n1").progress("n1", 1, draining).progress("n1", 1, aborted),
			[]string{"begun outside the ledger"},
		},
		"an entry for the Node before": {
			newStory(1).grant("n1", 1).madeFor("n1", "another").progress("n1", 1, draining).progress("n1", 1, aborted).release("n1"),
			[]string{"begun outside the ledger"},
		},
		"a status that is wiped under a grant": {
			newStory(1).grant("n1", 1).wipe().progress("n1", 1, draining).progress("n1", 1, aborted), nil,
		},
		"a node that is granted another reboot in mid-attempt": {
			func() *story {
				s := newStory(1).grant("n1", 1).progress("n1", 1, draining)
				s.record("n1", 2, v1alpha1.GrantCancelled)
				s.nodes["n1"].Spec.Unschedulable = false
				return s.write("n1").release("n1")
			}(),
			[]string{"granted in mid-attempt"},
		},
		"a grant that is taken back after a reboot": {
			func() *story {
				s := newStory(1).reboot(1, 1)
				s.record("n1", 2, v1alpha1.GrantCancelled)
				return s.write("n1")
			}(),
			nil,
		},
		"an administrator's cordon that stays": {newStory(1).cordon("n1", true), nil},
		"an administrator's cordon that is undone": {
			func() *story {
				s := newStory(1).cordon("n1", true)
				s.nodes["n1"].Spec.Unschedulable = false
				return s.write("n1")
			}(),
			[]string{"an administrator's cordon undone"},
		},
		"an administrator who uncordons":     {newStory(1).cordon("n1", true).cordon("n1", false), nil},
		"an eviction that the budget allows": {newStory(1).pod("a", "True").pod("b", "True").pod("c", "True").evicted("a"), nil},
		"an eviction past the budget":        {newStory(1).pod("a", "True").pod("b", "True").evicted("a"), []string{"past a PodDisruptionBudget"}},
		"a pod that is deleted instead": {
			newStory(1).pod("a", "True").pod("b", "True").pod("c", "True").deleted("a"),
			[]string{"without the leave of its PodDisruptionBudget"},
		},
		"a replacement that is not Ready yet": {
			newStory(1).pod("a", "True").pod("b", "True").pod("c", "True").evicted("a").pod("d", "False").evicted("b"),
			[]string{"past a PodDisruptionBudget"},
		},
		"a pod that goes with its machine": {
			func() *story {
				s := newStory(1).pod("a", "True").pod("b", "True").evicted("a")
				s.h.Removed["a"] = true
				return s
			}(),
			nil,
		},
		"a grant in the window":      {newStory(1).window(time.Date(2026, 6, 1, 10, 59, 59, 0, time.UTC)).reboot(1, 1), nil},
		"a grant after the window":   {newStory(1).window(time.Date(2026, 6, 1, 11, 0, 0, 0, time.UTC)).reboot(1, 1), []string{"outside the window"}},
		"a grant before the window":  {newStory(1).window(time.Date(2026, 6, 1, 9, 59, 59, 0, time.UTC)).reboot(1, 1), []string{"outside the window"}},
		"a taint that is left":       {newStory(1).taint("n1"), []string{"left tainted"}},
		"a node renamed, then alone": {newStory(1).machine(1, verdict.Needs).delete("n1").reboot(2, 1).machine(1, verdict.Leaves), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := map[string]bool{}
			for _, v := range verdict.Check(tc.told.h) {
				found[v.What] = true
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(found))); diff != "" {
				t.Errorf("violations (-want +got):\n%s\n%v", diff, verdict.Check(tc.told.h))
			}
		})
	}
}

func (s *story) taint(node string) *story {
	s.nodes[node].Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintPending}}
	return s.write(node)
}

// TestOpen: windows on nights on which clocks change, by the letter of docs/policy.md.
func TestOpen(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]*time.Location{"Europe/Berlin": berlin}
	cases := map[string]struct {
		start    string
		duration time.Duration
		at       string
		want     bool
	}{
		"the start":                              {"02:30", time.Hour, "2026-06-01T00:30:00Z", true},
		"before the start":                       {"02:30", time.Hour, "2026-06-01T00:29:59Z", false},
		"the end":                                {"02:30", time.Hour, "2026-06-01T01:30:00Z", false},
		"a start that is skipped, after the gap": {"02:30", time.Hour, "2026-03-29T01:00:00Z", true},
		"a start that is skipped, before it":     {"02:30", time.Hour, "2026-03-29T00:59:59Z", false},
		"a start that is repeated, the first":    {"02:30", time.Hour, "2026-10-25T00:30:00Z", true},
		"a start that is repeated, the second":   {"02:30", time.Hour, "2026-10-25T01:30:00Z", false},
		"past midnight, the day before":          {"23:30", time.Hour, "2026-06-01T22:10:00Z", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			w := v1alpha1.Window{Start: tc.start, Duration: metav1.Duration{Duration: tc.duration}, TimeZone: "Europe/Berlin"}
			if got := verdict.Open([]v1alpha1.Window{w}, zones, at); got != tc.want {
				t.Errorf("open at %s: %t", tc.at, got)
			}
		})
	}
}
