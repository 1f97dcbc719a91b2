package controllers

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// announcing returns an announcer with a recorder, and a state with one node that needs a reboot
// under a policy with the name of the test.
func announcing(t *testing.T) (*announcer, *events.FakeRecorder, *state) {
	t.Helper()
	s := newState(snapshot.Views([]corev1.Node{*serverNode(1, true, time.Now())}))
	s.Policy = &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: t.Name()}}
	recorder := events.NewFakeRecorder(10)
	return &announcer{recorder: recorder, metrics: NewMetrics(prometheus.NewRegistry())}, recorder, s
}

// emitted returns the types and reasons of the events.
func emitted(recorder *events.FakeRecorder) (all []string) {
	for len(recorder.Events) > 0 {
		parts := strings.SplitN(<-recorder.Events, " ", 3)
		all = append(all, parts[0]+" "+parts[1])
	}
	return all
}

// measured returns the sums of a metric of the announcer by the values of a label, without zeros.
func (a *announcer) measured(t *testing.T, name, by string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(a.metrics.gauges, a.metrics.reboots, a.metrics.phases, a.metrics.needAge)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range m.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if sum := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum(); family.GetName() == prefix+name && sum != 0 {
				sums[labels[by]] += sum
			}
		}
	}
	return sums
}

// TestExplained shows which reasons need attention, on both node and policy, and as which failure a
// reboot counts.
func TestExplained(t *testing.T) {
	for reason, tc := range map[v1alpha1.Reason]struct {
		events []string
		counts map[string]float64
	}{
		v1alpha1.ReasonRebootTimedOut:   {[]string{"Warning RebootTimedOut", "Warning RebootTimedOut"}, map[string]float64{"timed_out": 1}},
		v1alpha1.ReasonAgentSilent:      {[]string{"Warning AgentSilent", "Warning AgentSilent"}, map[string]float64{"timed_out": 1}},
		v1alpha1.ReasonStartupTaint:     {[]string{"Warning StartupTaint", "Warning StartupTaint"}, map[string]float64{"timed_out": 1}},
		v1alpha1.ReasonHookTimedOut:     {[]string{"Warning HookTimedOut", "Warning HookTimedOut"}, map[string]float64{"hook_failed": 1}},
		v1alpha1.ReasonHookFailed:       {[]string{"Warning HookFailed", "Warning HookFailed"}, map[string]float64{"hook_failed": 1}},
		v1alpha1.ReasonDrainTimedOut:    {[]string{"Warning DrainTimedOut", "Warning DrainTimedOut"}, map[string]float64{}},
		v1alpha1.ReasonUndrainablePod:   {[]string{"Warning UndrainablePod", "Warning UndrainablePod"}, map[string]float64{}},
		v1alpha1.ReasonBlockingPod:      {[]string{"Warning BlockingPod", "Warning BlockingPod"}, map[string]float64{}},
		v1alpha1.ReasonPolicyConflict:   {[]string{"Warning PolicyConflict"}, map[string]float64{}},
		v1alpha1.ReasonRecordUnreadable: {[]string{"Warning RecordUnreadable"}, map[string]float64{}},
		v1alpha1.ReasonWindowClosed:     {nil, map[string]float64{}},
		v1alpha1.ReasonBudgetExhausted:  {nil, map[string]float64{}},
	} {
		t.Run(string(reason), func(t *testing.T) {
			r, recorder, s := announcing(t)
			r.explained(s, s.Nodes[0], "", plan.Decision{Node: s.Nodes[0].Name, Reason: reason, Message: "why"})
			if diff := cmp.Diff([]any{tc.events, tc.counts}, []any{emitted(recorder), r.measured(t, "reboots_total", "result")}); diff != "" {
				t.Errorf("events and failures (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplained_Again shows that an overdue reboot counts as failed only once, even if the reason
// changes because a machine comes and goes and its agent is silent. Each reason emits an event.
func TestExplained_Again(t *testing.T) {
	r, recorder, s := announcing(t)
	was := v1alpha1.ReasonGranted
	for _, reason := range []v1alpha1.Reason{
		v1alpha1.ReasonRebootTimedOut, v1alpha1.ReasonAgentSilent, v1alpha1.ReasonRebootTimedOut, v1alpha1.ReasonHookTimedOut, v1alpha1.ReasonHookFailed,
	} {
		r.explained(s, s.Nodes[0], was, plan.Decision{Node: s.Nodes[0].Name, Reason: reason, Message: "why"})
		was = reason
	}
	if diff := cmp.Diff(map[string]float64{"timed_out": 1, "hook_failed": 1}, r.measured(t, "reboots_total", "result")); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if got := emitted(recorder); len(got) != 10 {
		t.Errorf("events: %v", got)
	}
}

// TestPolicyEvents shows what a written status announces, and whether somebody has to act.
func TestPolicyEvents(t *testing.T) {
	const yes, no, unset = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionStatus("")
	for name, tc := range map[string]struct {
		kind       string
		was, is    metav1.ConditionStatus
		acceptedAs v1alpha1.Reason
		want       []string
	}{
		"it halts":                                {kind: v1alpha1.ConditionHalted, was: no, is: yes, want: []string{"Warning Halted"}},
		"the policy is resumed":                   {kind: v1alpha1.ConditionHalted, was: yes, is: no, want: []string{"Normal Resumed"}},
		"the policy stays halted":                 {kind: v1alpha1.ConditionHalted, was: yes, is: yes},
		"the policy is new":                       {kind: v1alpha1.ConditionHalted, was: unset, is: no},
		"a window opens":                          {kind: v1alpha1.ConditionWindowOpen, was: no, is: yes},
		"a window closes":                         {kind: v1alpha1.ConditionWindowOpen, was: yes, is: no},
		"another policy has the same priority":    {kind: v1alpha1.ConditionHalted, was: no, is: no, acceptedAs: v1alpha1.ReasonPolicyConflict, want: []string{"Warning PolicyConflict"}},
		"the spec is invalid":                     {kind: v1alpha1.ConditionHalted, was: no, is: no, acceptedAs: v1alpha1.ReasonInvalid, want: []string{"Warning Invalid"}},
		"the policy to share with does not exist": {kind: v1alpha1.ConditionHalted, was: no, is: no, acceptedAs: v1alpha1.ReasonSharedPolicyNotFound, want: []string{"Warning SharedPolicyNotFound"}},
		"the policy is accepted":                  {kind: v1alpha1.ConditionHalted, was: no, is: no, acceptedAs: v1alpha1.ReasonAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(status metav1.ConditionStatus, accepted v1alpha1.Reason) *v1alpha1.RebootPolicy {
				p := &v1alpha1.RebootPolicy{}
				p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Reason: string(accepted)}}
				if status != unset {
					p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: tc.kind, Status: status})
				}
				return p
			}
			r, recorder, _ := announcing(t)
			r.policyEvents(with(tc.was, ""), with(tc.is, tc.acceptedAs))
			if diff := cmp.Diff(tc.want, emitted(recorder)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			r.policyEvents(with(tc.is, tc.acceptedAs), with(tc.is, tc.acceptedAs))
			if again := emitted(recorder); len(again) > 0 {
				t.Errorf("without a change, too: %v", again)
			}
		})
	}
}

// TestPolicyEvents_Resumed shows that the event has the value of the annotation, like the
// condition.
func TestPolicyEvents_Resumed(t *testing.T) {
	with := func(status metav1.ConditionStatus, reason v1alpha1.Reason, message string) *v1alpha1.RebootPolicy {
		p := &v1alpha1.RebootPolicy{}
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHalted, Status: status, Reason: string(reason), Message: message}}
		return p
	}
	r, recorder, _ := announcing(t)
	r.policyEvents(with(metav1.ConditionTrue, v1alpha1.ReasonTooManyFailures, "2 nodes failed"), with(metav1.ConditionFalse, v1alpha1.ReasonResumed, "resumed: fixed"))
	if got, want := <-recorder.Events, "Normal Resumed resumed: fixed"; got != want {
		t.Errorf("emitted %q, want %q", got, want)
	}
}

// TestPolicyEvents_HooksOfARun shows one event when the hooks start, and one when a hook refuses.
func TestPolicyEvents_HooksOfARun(t *testing.T) {
	none := &v1alpha1.RebootPolicy{}
	with := func(number int64, reason v1alpha1.Reason) *v1alpha1.RebootPolicy {
		p := &v1alpha1.RebootPolicy{}
		p.Status.Run = &v1alpha1.RunStatus{Hooks: &v1alpha1.RunHooks{
			Stage: v1alpha1.RunAfter, Number: number, Asked: []v1alpha1.AnnotationKey{"example.com/noout-unset"}, Reason: reason,
		}}
		return p
	}
	r, recorder, _ := announcing(t)
	for _, change := range [][2]*v1alpha1.RebootPolicy{
		{none, with(7, "")},
		{with(7, ""), with(7, "")},
		{with(7, ""), with(7, v1alpha1.ReasonHookFailed)},
		{with(7, v1alpha1.ReasonHookFailed), with(7, v1alpha1.ReasonHookFailed)},
		{with(7, v1alpha1.ReasonHookFailed), none},
	} {
		r.policyEvents(change[0], change[1])
	}
	if diff := cmp.Diff([]string{"Normal WaitingForHook", "Warning HookFailed"}, emitted(recorder)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPolicyEvents_Urgent shows one event when the urgency begins, whether or not a window was
// open.
func TestPolicyEvents_Urgent(t *testing.T) {
	with := func(reason v1alpha1.Reason) *v1alpha1.RebootPolicy {
		p := &v1alpha1.RebootPolicy{}
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWindowOpen, Status: metav1.ConditionTrue, Reason: string(reason)}}
		return p
	}
	r, recorder, _ := announcing(t)
	r.policyEvents(with(v1alpha1.ReasonWindowOpen), with(v1alpha1.ReasonUrgent))
	r.policyEvents(with(v1alpha1.ReasonUrgent), with(v1alpha1.ReasonUrgent))
	r.policyEvents(with(v1alpha1.ReasonUrgent), with(v1alpha1.ReasonWindowOpen))
	if diff := cmp.Diff([]string{"Warning Urgent"}, emitted(recorder)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDeadlineEvents shows that each deadline that passes is a warning, even if another node is
// done and as many nodes are overdue as before.
func TestDeadlineEvents(t *testing.T) {
	last := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		before, passed int32
		passedAt, last time.Time
		want           []string
	}{
		"one more is overdue":                                    {before: 1, passed: 2, passedAt: last.Add(time.Second), last: last, want: []string{"Warning DeadlinePassed"}},
		"one node is done while another passes its deadline":     {before: 1, passed: 1, passedAt: last.Add(time.Second), last: last, want: []string{"Warning DeadlinePassed"}},
		"one node is done":                                       {before: 2, passed: 1, passedAt: last.Add(-time.Hour), last: last},
		"nothing has changed, by a new leader":                   {before: 1, passed: 1, passedAt: last},
		"one node is overdue because the deadline was shortened": {passed: 1, passedAt: last.Add(-time.Hour), last: last, want: []string{"Warning DeadlinePassed"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.RebootPolicy{}
			before.Status.Nodes.Overdue = tc.before
			r, recorder, _ := announcing(t)
			r.deadlineEvents(before, before, &report.DeadlinesHealth{Passed: tc.passed, PassedAt: tc.passedAt, Reason: v1alpha1.ReasonDeadlinePassed}, tc.last)
			if diff := cmp.Diff(tc.want, emitted(recorder)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGateEvents shows that a gate that blocks is a warning, once for each state, and that the end
// of it is not.
func TestGateEvents(t *testing.T) {
	const isClear, firing, unreachable, notReady = v1alpha1.GateClear, v1alpha1.GateFiring, v1alpha1.GateUnreachable, v1alpha1.GateNotReady
	with := func(state v1alpha1.GateState) *v1alpha1.RebootPolicy {
		p := &v1alpha1.RebootPolicy{}
		if state != "" {
			p.Status.Gates = []v1alpha1.GateStatus{{Name: "errors", State: state}}
		}
		return p
	}
	r, recorder, _ := announcing(t)
	var all []string
	for _, states := range [][2]v1alpha1.GateState{
		{"", isClear}, {isClear, firing}, {firing, firing}, {firing, unreachable}, {unreachable, isClear}, {isClear, notReady}, {notReady, notReady}, {notReady, isClear}, {isClear, ""},
	} {
		r.gateEvents(with(states[0]), with(states[1]))
		all = append(all, emitted(recorder)...)
	}
	if diff := cmp.Diff([]string{"Warning AlertFiring", "Warning GateUnreachable", "Warning ObjectNotReady"}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Events that differ only in their notes become a series with the note of the first, so gates that
// begin to block together share one event.
func TestGateEvents_NameEachGate(t *testing.T) {
	after := &v1alpha1.RebootPolicy{}
	for _, name := range []string{"errors", "latency"} {
		after.Status.Gates = append(after.Status.Gates, v1alpha1.GateStatus{Name: name, State: v1alpha1.GateFiring, Message: "high"})
	}
	r, recorder, _ := announcing(t)
	r.gateEvents(&v1alpha1.RebootPolicy{}, after)
	if got, want := <-recorder.Events, "Warning AlertFiring gate errors: high; gate latency: high"; got != want || len(recorder.Events) > 0 {
		t.Errorf("%q and %d more, want %q", got, len(recorder.Events), want)
	}
}

// TestGranted_Urgently shows that a reboot by an urgent request is reported on node and policy if
// the policy permits it.
func TestGranted_Urgently(t *testing.T) {
	for requested, want := range map[*v1alpha1.UrgentNodes][]string{
		{Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows}}: {"Normal RebootGranted", "Normal RebootGranted", "Warning Urgent", "Warning Urgent"},
		nil: {"Normal RebootGranted", "Normal RebootGranted"},
	} {
		r, recorder, s := announcing(t)
		r.clock = clock.RealClock{}
		s.Policy.Spec.Urgent = &v1alpha1.Urgent{Requested: requested}
		s.Nodes[0].Urgent, s.Nodes[0].UrgentReason = true, "CVE-2026-12345"
		r.granted(s, s.Nodes[0], underway.Reboot{})
		if diff := cmp.Diff(want, emitted(recorder)); diff != "" {
			t.Errorf("spec.urgent.requested %+v (-want +got):\n%s", requested, diff)
		}
	}
}

// TestFinished shows that each phase of a successful reboot is measured separately.
func TestFinished(t *testing.T) {
	r, recorder, s := announcing(t)
	second := func(seconds int) metav1.Time { return metav1.NewTime(time.Unix(int64(seconds), 0)) }
	n, began := s.Nodes[0], second(100)
	n.Grant = &protocol.Grant{Need: "MadeUp7f3a"} // which must not become a series
	n.Progress = &protocol.Progress{DrainStartedAt: &began, At: second(130)}
	n.MaintenanceSince, s.Now = second(200).Time, second(260).Time
	r.finished(s, n, underway.Reboot{Entry: v1alpha1.LedgerEntry{At: second(90)}}, true)
	want := map[string]float64{"drain": 30, "reboot": 70, "settle": 60}
	if diff := cmp.Diff(want, r.measured(t, "reboot_duration_seconds", "phase")); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"succeeded": 1}, r.measured(t, "reboots_total", "result")); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"Other": 1}, r.measured(t, "reboots_total", "engine")); diff != "" {
		t.Errorf("engines (-want +got):\n%s", diff)
	}
	if text, want := <-recorder.Events, "Normal RebootSucceeded node "+s.Nodes[0].Name+" is back in service"; text != want {
		t.Errorf("event %q, want %q", text, want)
	}
	if diff := cmp.Diff([]string{"Normal RebootSucceeded", "Normal Uncordoned"}, emitted(recorder)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestObserveReleases_Lost shows that a Node that is deleted during its reboot is counted and
// reported as one failure. If it was overdue before, it has already been reported.
func TestObserveReleases_Lost(t *testing.T) {
	now := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason   v1alpha1.Reason
		since    time.Duration
		failedAt time.Time
		counts   map[string]float64
		events   []string
	}{
		"in time":                     {v1alpha1.ReasonNodeGoneInReboot, 5 * time.Minute, time.Time{}, map[string]float64{"lost": 1}, []string{"Warning RebootLost"}},
		"because its hooks took long": {v1alpha1.ReasonNodeGoneInReboot, time.Hour, time.Time{}, map[string]float64{"lost": 1}, []string{"Warning RebootLost"}},
		"overdue":                     {v1alpha1.ReasonNodeGoneInReboot, 30 * time.Minute, now, map[string]float64{}, nil},
		"before it was rebooting":     {v1alpha1.ReasonNodeGone, 0, time.Time{}, map[string]float64{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, recorder, s := announcing(t)
			r.freedAt, s.Now = map[string]time.Time{}, now
			e := v1alpha1.LedgerEntry{Node: "gone", Seq: 7, RebootingAt: &metav1.Time{Time: now.Add(-tc.since)}}
			r.metrics.gauges.set(s.Policy.Name, plan.Plan{Reboots: []underway.Reboot{{Entry: e, Node: &record.Node{Name: "gone"}, FailedAt: tc.failedAt}}}, window.State{})
			r.observeReleases(t.Context(), s, plan.Plan{Reboots: []underway.Reboot{{Entry: e, Action: underway.ReleaseEntry, Reason: tc.reason}}})
			if diff := cmp.Diff([]any{tc.counts, tc.events}, []any{r.measured(t, "reboots_total", "result"), emitted(recorder)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Events about the same objects become a series with the note of the first, so each lost Node needs
// its own event.
func TestObserveReleases_LostNodesAreEventsOfTheirOwn(t *testing.T) {
	r, _, s := announcing(t)
	recorder := &regarding{}
	r.freedAt, r.recorder = map[string]time.Time{}, recorder
	var released []underway.Reboot
	for _, e := range []v1alpha1.LedgerEntry{{Node: "a", NodeUID: "1"}, {Node: "b", NodeUID: "2"}} {
		released = append(released, underway.Reboot{Entry: e, Action: underway.ReleaseEntry, Reason: v1alpha1.ReasonNodeGoneInReboot})
	}
	r.observeReleases(t.Context(), s, plan.Plan{Reboots: released})
	if diff := cmp.Diff([]runtime.Object{lifecycle.NodeReference("a", "1"), lifecycle.NodeReference("b", "2")}, recorder.related); diff != "" {
		t.Errorf("the events are related to (-want +got):\n%s", diff)
	}
}

// TestObserveReleases shows that each attempt that has ended is logged in one line, and that the
// age of the need is measured if a reboot ended it.
func TestObserveReleases(t *testing.T) {
	second := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 6, 1, 22, minute, 0, 0, time.UTC)) }
	since, began := metav1.NewTime(second(0).Add(-48*time.Hour)), second(1)
	entry := v1alpha1.LedgerEntry{Node: "n1", Seq: 7, BootID: "1", At: second(0), NeedSince: since, OSVersion: "1.0"}
	back := func() *record.Node {
		return &record.Node{
			Name: "n1", Required: corev1.ConditionFalse, BootID: "2", MaintenanceSince: second(5).Time, OSVersion: "2.0",
			Record: protocol.Record{
				Grant:    &protocol.Grant{Policy: "p", Seq: 7, BootID: "1", State: protocol.GrantFinished, At: second(6), Need: v1alpha1.ReasonUpdateStaged},
				Progress: &protocol.Progress{Seq: 7, BootID: "1", Phase: protocol.PhaseRebooting, At: second(3), DrainStartedAt: &began},
			},
		}
	}
	aborted := back()
	aborted.Required, aborted.BootID, aborted.Grant.State = corev1.ConditionTrue, "1", protocol.GrantActive
	aborted.Progress.Phase, aborted.Progress.Reason, aborted.Progress.Message = protocol.PhaseAborted, v1alpha1.ReasonDrainTimedOut, "web-1 stays"
	needsAgain, unknown, undisturbed := back(), entry, back()
	needsAgain.Required = corev1.ConditionTrue
	unknown.NeedSince = metav1.Time{}
	undisturbed.Progress = nil
	const common = `"level"=0 "msg"="Ended a reboot attempt" "RebootPolicy"={"name"="TestObserveReleases"} "Node"={"name"="n1"} "seq"=7 `
	succeeded := func(needSince string) []string {
		return []string{common + `"result"="Succeeded" "reason"="UpdateStaged" "message"="" "needSince"="` + needSince + `" "grantedAt"="2026-06-01T22:00:00Z" ` +
			`"endedAt"="2026-06-01T22:06:00Z" "drain"="2m0s" "reboot"="2m0s" "settle"="1m0s" "fromVersion"="1.0" "toVersion"="2.0" "fromKernel"="" "toKernel"="" "podsForced"=0`}
	}
	for name, tc := range map[string]struct {
		node  *record.Node
		entry v1alpha1.LedgerEntry
		lines []string
		age   float64
	}{
		"a reboot that ends the need":     {back(), entry, succeeded("2026-05-30T22:00:00Z"), 48*3600 + 360},
		"a reboot that does not end it":   {needsAgain, entry, succeeded("2026-05-30T22:00:00Z"), 0},
		"of a need with an unknown start": {back(), unknown, succeeded(""), 0},
		"an attempt that disturbed no node": {undisturbed, entry, []string{common + `"result"="Cancelled" "reason"="HookFailed" "message"="refused" ` +
			`"needSince"="2026-05-30T22:00:00Z" "grantedAt"="2026-06-01T22:00:00Z" "endedAt"="2026-06-01T22:06:00Z" "drain"="" "reboot"="" "settle"="" ` +
			`"fromVersion"="1.0" "toVersion"="" "fromKernel"="" "toKernel"="" "podsForced"=0`}, 0},
		"a drain that was given up": {aborted, entry, []string{common + `"result"="Aborted" "reason"="DrainTimedOut" "message"="web-1 stays" ` +
			`"needSince"="2026-05-30T22:00:00Z" "grantedAt"="2026-06-01T22:00:00Z" "endedAt"="2026-06-01T22:03:00Z" "drain"="2m0s" "reboot"="" "settle"="" ` +
			`"fromVersion"="1.0" "toVersion"="" "fromKernel"="" "toKernel"="" "podsForced"=0`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, s := announcing(t)
			r.freedAt = map[string]time.Time{}
			s.Policy.Name, s.Now = "TestObserveReleases", second(6).Time
			var lines []string
			ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			r.observeReleases(ctx, s, plan.Plan{Reboots: []underway.Reboot{{
				Node: tc.node, Entry: tc.entry, Action: underway.ReleaseEntry, Reason: v1alpha1.ReasonHookFailed, Message: "refused",
			}}})
			if diff := cmp.Diff(tc.lines, lines); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if got := r.measured(t, "need_age_seconds", "policy")[s.Policy.Name]; got != tc.age {
				t.Errorf("the age of the need: %v, want %v", got, tc.age)
			}
		})
	}
}

// The end of a run is one sentence, even for a single node. It has no duration if the clock of the
// leader that began the run was ahead.
func TestFinished_OfOne(t *testing.T) {
	now := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	p := plan.Plan{Report: plan.Report{Blocked: []v1alpha1.BlockedNodes{{Reason: v1alpha1.ReasonNodePaused, Count: 1, Nodes: []string{"n2"}}}}}
	for began, in := range map[time.Duration]string{-5 * time.Minute: " in 5m0s", 2 * time.Hour: ""} {
		run := &v1alpha1.RunStatus{StartedAt: metav1.NewTime(now.Add(began)), Rebooted: 1, Failed: 1}
		want := "Policy workers is done: 1 node was rebooted" + in + "; 1 attempt failed.\n1 still waits: NodePaused (n2)."
		if got := finished(&v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}, p, run, now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestFinished_SaysOfHowManyRebootsItKnowsTheSlowest checks that the slowest reboot of a run that is
// longer than the history is not called the slowest of all.
func TestFinished_SaysOfHowManyRebootsItKnowsTheSlowest(t *testing.T) {
	now := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	for seq, took := range []time.Duration{time.Hour, 4 * time.Minute, 5 * time.Minute} {
		policy.Status.History = append(policy.Status.History, v1alpha1.PastReboot{
			Node: "n" + strconv.Itoa(seq), Seq: int64(seq), Result: v1alpha1.RebootSucceeded, GrantedAt: metav1.NewTime(now.Add(-took)), EndedAt: metav1.NewTime(now),
		})
	}
	for rebooted, want := range map[int32]string{2: "; n2 took longest, 5m0s; ", 30: "; of the last 2, n2 took longest, 5m0s; "} {
		run := &v1alpha1.RunStatus{StartedAt: metav1.NewTime(now.Add(-time.Hour)), Rebooted: rebooted}
		if got := finished(policy, plan.Plan{}, run, now); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

// A value that a Node reports must not become a label of a metric, because anyone who writes
// nodes/status could create any number of series.
func TestEngineLabel_IsOneOfTheKnownReasons(t *testing.T) {
	for need, want := range map[v1alpha1.Reason]string{
		v1alpha1.ReasonUpdateStaged: "UpdateStaged", v1alpha1.ReasonSentinelPresent: "SentinelPresent", v1alpha1.ReasonRequested: "Requested",
		v1alpha1.ReasonFleetLockRequested: "FleetLockRequested", v1alpha1.ReasonMaxUptime: "MaxUptime", v1alpha1.ReasonNodeCondition: "NodeCondition",
		"MadeUp7f3a": "Other", v1alpha1.ReasonUpToDate: "Other", "": "Other",
	} {
		if got := engineLabel(need); got != want {
			t.Errorf("the engine of need %q is %q, want %q", need, got, want)
		}
	}
}

// regarding records the objects of events and their related objects.
type regarding struct{ objects, related []runtime.Object }

func (r *regarding) Eventf(object, related runtime.Object, _, _, _, _ string, _ ...any) {
	r.objects, r.related = append(r.objects, object), append(r.related, related)
}

// `kubectl describe` finds events by the UID.
func TestEnded_IsAnEventThatPeopleFindOnThePolicy(t *testing.T) {
	a, _, s := announcing(t)
	s.Policy.UID, s.Policy.Spec.Notify = "workers-uid", []v1alpha1.Notification{{SecretRef: v1alpha1.SecretReference{Name: "chat"}}}
	recorder := &regarding{}
	a.notifier = notify.New(reading.Secrets{}, clock.RealClock{}, ended(recorder, a.metrics)) // not started, so its queue fills up
	for len(recorder.objects) == 0 {
		a.notify(s.Policy, v1alpha1.NotifyHalted, "why")
	}
	if diff := cmp.Diff([]runtime.Object{policyReference(s.Policy.Name, s.Policy.UID)}, recorder.objects); diff != "" {
		t.Errorf("the event is about (-want +got):\n%s", diff)
	}
}

// TestFinished_NamesWhatNeedsAPerson checks that the notification about the end of a run has what
// status, doctor and dashboard show as well.
func TestFinished_NamesWhatNeedsAPerson(t *testing.T) {
	now := time.Date(2026, 6, 1, 22, 6, 0, 0, time.UTC)
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	run := &v1alpha1.RunStatus{StartedAt: metav1.NewTime(now.Add(-6 * time.Minute)), Rebooted: 1, Failed: 1}
	p := plan.Plan{Report: plan.Report{Failures: []plan.Failure{{Node: "n1", Reason: v1alpha1.ReasonDrainTimedOut, Message: "db-0 stays.", RetryAt: now.Add(5 * time.Minute)}}}}
	const want = "Policy workers is done: 1 node was rebooted in 6m0s; 1 attempt failed.\n" +
		"Needs you: n1 was not rebooted (DrainTimedOut): db-0 stays; the next attempt may begin Mon 2026-06-01 22:11:00 UTC. Run: kubectl reboot retry n1"
	if got := finished(policy, p, run, now); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for i := range 12 {
		p.Failures = append(p.Failures, plan.Failure{Node: "n2", Reason: v1alpha1.Reason("R" + strconv.Itoa(i))})
	}
	if got := finished(policy, p, run, now); !strings.HasSuffix(got, "\n3 more need you: kubectl reboot status workers") {
		t.Errorf("got %q", got)
	}
}
