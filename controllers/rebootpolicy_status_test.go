package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// Failures count from an administrator's resume on, even if the policy had not halted. Then the
// condition's status stays the same, but its time changes.
func TestStatusOf_ResumesFromTheAnnotationOn(t *testing.T) {
	before := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	now := before.Add(time.Hour)
	for name, tc := range map[string]struct {
		annotations map[string]string
		before      metav1.ConditionStatus
		want        time.Time
	}{
		"halted":                              {map[string]string{v1alpha1.AnnotationResume: "fixed"}, metav1.ConditionTrue, now},
		"not halted":                          {map[string]string{v1alpha1.AnnotationResume: "fixed"}, metav1.ConditionFalse, now},
		"the annotation was handled long ago": {nil, metav1.ConditionFalse, before},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHalted, Status: tc.before, LastTransitionTime: metav1.NewTime(before)}}
			p := plan.Plan{Halt: halt.State{Reason: v1alpha1.ReasonResumed, Message: "resumed: fixed"}}
			got := meta.FindStatusCondition(statusOf(policy, p, window.State{}, now).Conditions, v1alpha1.ConditionHalted)
			if diff := cmp.Diff(tc.want, got.LastTransitionTime.Time); diff != "" {
				t.Errorf("failures count from (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLastReboot shows that the latest reboot counts, even if the clock of its leader was a day
// ahead.
func TestLastReboot(t *testing.T) {
	now := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	later := func(after time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(after)} }
	for name, tc := range map[string]struct {
		before, back, want *metav1.Time
	}{
		"the first":                              {nil, later(-time.Minute), later(-time.Minute)},
		"a later reboot":                         {later(-time.Hour), later(-time.Minute), later(-time.Minute)},
		"an earlier reboot":                      {later(0), later(-time.Minute), later(0)},
		"a leader whose clock is slightly ahead": {later(4 * time.Minute), later(-time.Minute), later(4 * time.Minute)},
		"a leader whose clock was a day ahead":   {later(24 * time.Hour), later(-time.Minute), later(-time.Minute)},
		"a leader without a successor":           {later(24 * time.Hour), nil, later(24 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			policy, p := &v1alpha1.RebootPolicy{}, plan.Plan{}
			policy.Status.LastRebootAt = tc.before
			if tc.back != nil {
				n := &record.Node{Name: "n1", Record: protocol.Record{Grant: &protocol.Grant{Seq: 7, State: protocol.GrantFinished, At: *tc.back}}}
				p.Reboots = []underway.Reboot{{Node: n, Entry: v1alpha1.LedgerEntry{Node: "n1", Seq: 7}, Action: underway.ReleaseEntry}}
			}
			if diff := cmp.Diff(tc.want, lastReboot(policy, p, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUrgent shows that a grant is written at once, while the progress of a reboot may wait.
func TestUrgent(t *testing.T) {
	entry := v1alpha1.LedgerEntry{Node: "n1", Seq: 7}
	before := v1alpha1.RebootPolicyStatus{Grants: []v1alpha1.LedgerEntry{entry}}
	entry.RebootingAt = new(metav1.Now())
	if urgent(before, v1alpha1.RebootPolicyStatus{Grants: []v1alpha1.LedgerEntry{entry}}) {
		t.Error("a node that is rebooting is written at once")
	}
	if !urgent(v1alpha1.RebootPolicyStatus{}, before) {
		t.Error("a grant waits")
	}
	if entry.RebootingAt == nil {
		t.Error("the status that is written has lost it")
	}
}

// TestStatusOf_Messages shows that every condition has a sentence, also if nothing is wrong, and that
// a closed window says when it opens, or that it never does.
func TestStatusOf_Messages(t *testing.T) {
	opens := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		window window.State
		want   string
	}{
		"always open":          {window.State{Open: true, Always: true}, "the policy has no windows: always open"},
		"closed":               {window.State{OpensAt: opens}, "no window is open; the next reboot may start Mon 2026-06-01 22:00:00 UTC"},
		"closed for good":      {window.State{}, "no window is open; no window opens within 400 days: change the windows or blackouts"},
		"blackout":             {window.State{Blackout: true, Name: "freeze", OpensAt: opens}, "blackout freeze is in force; the next reboot may start Mon 2026-06-01 22:00:00 UTC"},
		"blackout without end": {window.State{Blackout: true, Name: "freeze"}, "blackout freeze is in force; no window opens within 400 days: change the windows or blackouts"},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusOf(&v1alpha1.RebootPolicy{}, plan.Plan{Halt: halt.State{Reason: v1alpha1.ReasonHealthy}}, tc.window, opens)
			for _, c := range status.Conditions {
				if c.Message == "" {
					t.Errorf("%s=%s has no message", c.Type, c.Status)
				}
			}
			if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionWindowOpen).Message; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestStatusOf_Accepted shows that a spec from which no reboot follows says so.
func TestStatusOf_Accepted(t *testing.T) {
	for name, tc := range map[string]struct {
		mode     v1alpha1.Mode
		selected int32
		limit    int32
		want     string
	}{
		"reboots follow":  {"", 2, 1, "the whole spec is in force"},
		"it only tries":   {v1alpha1.ModeDryRun, 2, 1, "the whole spec is in force; mode DryRun grants no reboot"},
		"no nodes":        {"", 0, 1, "the whole spec is in force; the policy governs no node"},
		"a limit of zero": {"", 2, 0, "the whole spec is in force; maxUnavailable of 0 permits no reboot"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.RebootPolicy{Spec: v1alpha1.RebootPolicySpec{Mode: tc.mode}}
			p := plan.Plan{}
			p.Limit, p.Counts.Selected = tc.limit, tc.selected
			got := meta.FindStatusCondition(statusOf(policy, p, window.State{}, time.Time{}).Conditions, v1alpha1.ConditionAccepted).Message
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestStatusOf_NamesEachConflict shows that condition Accepted has the sentences of all conflicts,
// each with the nodes that are not rebooted and those that need it.
func TestStatusOf_NamesEachConflict(t *testing.T) {
	status := statusOf(&v1alpha1.RebootPolicy{}, plan.Plan{Report: plan.Report{Conflicts: []governor.Conflict{
		{Policies: []string{"a", "b"}, Nodes: []string{"n1", "n2"}, Pending: []string{"n2"}}, {Policies: []string{"b", "c"}, Nodes: []string{"n3"}},
	}}}, window.State{}, time.Time{})
	const want = "2 nodes are not rebooted (1 needs a reboot): policies a, b select n1, n2 with the same priority; raise spec.priority of one. " +
		"1 node is not rebooted (0 need a reboot): policies b, c select n3 with the same priority; raise spec.priority of one"
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted).Message; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
