package explanation_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// permitted sets the condition that the manager writes.
func permitted(status corev1.ConditionStatus, reason v1alpha1.Reason, message string) func(*corev1.Node) {
	return Condition(v1alpha1.NodeRebootPermitted, status, string(reason), time.Hour, message)
}

// explain explains node n1 of pool w.
func explain(t *testing.T, policies []v1alpha1.RebootPolicy, nodes ...corev1.Node) explanation.Explanation {
	t.Helper()
	e, err := explanation.Of(fleet.New(policies, nodes, Now), "n1")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// few keeps only some checks, so that golden files do not change with every new check.
func few(e explanation.Explanation) explanation.Explanation {
	keep := []v1alpha1.Reason{"NoPolicy", "PolicyConflict", "NodePaused", "WindowClosed", "BackingOff", "BudgetExhausted", "DryRun"}
	e.Checks = slices.DeleteFunc(e.Checks, func(c explanation.Check) bool { return !slices.Contains(keep, c.Name) })
	return e
}

func policies(list ...v1alpha1.RebootPolicy) []v1alpha1.RebootPolicy { return list }

func TestLines(t *testing.T) {
	everything := Policy("everything", Spec(func(s *v1alpha1.RebootPolicySpec) { s.NodeSelector, s.Priority = nil, -5 }))
	rival := Policy("rival", Spec(func(s *v1alpha1.RebootPolicySpec) { s.NodeSelector = nil }))
	needy := func(options ...func(*corev1.Node)) corev1.Node {
		return Node("n1", "w", append([]func(*corev1.Node){Needs(50 * time.Hour)}, options...)...)
	}
	aborted := Progressed(6, protocol.PhaseAborted, 2*time.Minute, func(p *protocol.Progress) {
		p.Failures, p.Reason, p.Message = 1, v1alpha1.ReasonDrainTimedOut, "pod shop/db-0: terminating until Mon 2026-11-23 16:05:30 UTC"
		started := p.At
		started.Time = started.Add(-20 * time.Minute)
		p.DrainStartedAt = &started
	})
	cases := map[string]struct {
		policies []v1alpha1.RebootPolicy
		nodes    []corev1.Node
	}{
		"requested": {policies(Policy("w", Weeknights)), []corev1.Node{
			Node("n1", "w", Condition(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, "Requested", time.Hour,
				`An administrator asks for a reboot: "firmware". Nothing is staged. Reported by update-engine, sentinel.`), Annotated(v1alpha1.AnnotationRebootRequested, "firmware")),
		}},
		"window-closed": {policies(Policy("w", Weeknights), everything), []corev1.Node{
			needy(permitted(corev1.ConditionFalse, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Mon 2026-11-23 22:00:00 CET")),
		}},
		"budget": {policies(Policy("w", Holds("n0", 7, time.Minute))), []corev1.Node{
			Node("n0", "w", Needs(51*time.Hour), Granted("w", 7, time.Minute)), needy(permitted(corev1.ConditionFalse, v1alpha1.ReasonBudgetExhausted, "")),
		}},
		"backing-off": {policies(Policy("w")), []corev1.Node{needy(aborted, permitted(corev1.ConditionFalse, v1alpha1.ReasonBackingOff, ""))}},
		"draining": {policies(Policy("w", Holds("n1", 7, 3*time.Minute))), []corev1.Node{
			needy(Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseDraining, 150*time.Second), permitted(corev1.ConditionTrue, v1alpha1.ReasonGranted, "")),
		}},
		"draining-blocked": {policies(Policy("w", Holds("n1", 7, 3*time.Minute))), []corev1.Node{
			needy(Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseDraining, 150*time.Second), permitted(corev1.ConditionTrue, v1alpha1.ReasonGranted, ""),
				Condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, "Draining", 2*time.Minute,
					"The drain waits for default/db-0 (PodDisruptionBudget db). The drain may take until Mon 2026-11-23 16:05:30 UTC; then the node is uncordoned and backs off.")),
		}},
		"hooks": {policies(Policy("w", Holds("n1", 7, 20*time.Minute), Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/backup", "example.com/raid"}}
		}))), []corev1.Node{needy(func(n *corev1.Node) {
			phase := protocol.BeginHooks(v1alpha1.LedgerEntry{Node: "n1", Seq: 7}, "w", n.Status.NodeInfo.BootID, v1alpha1.HooksBefore,
				[]v1alpha1.AnnotationKey{"example.com/backup", "example.com/raid"}, Ago(15*time.Minute).Time)
			n.Annotations[v1alpha1.AnnotationHooks] = phase.String()
		})}},
		"past-its-deadline": {policies(Policy("w", Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Deadline = &v1alpha1.Duration{Duration: 24 * time.Hour}
		}))), []corev1.Node{needy()}},
		"settling": {policies(Policy("w", Holds("n1", 7, 3*time.Minute))), []corev1.Node{
			Node("n1", "w", Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseRebooting, 2*time.Minute), Booted(20*time.Second),
				permitted(corev1.ConditionTrue, v1alpha1.ReasonGranted, "")),
		}},
		"overdue": {policies(Policy("w", Holds("n1", 7, 3*time.Hour))), []corev1.Node{
			needy(Granted("w", 7, 3*time.Hour), Progressed(7, protocol.PhaseRebooting, 2*time.Hour), NotReady, permitted(corev1.ConditionTrue, v1alpha1.ReasonRebootTimedOut, "")),
		}},
		"write-refused": {policies(Policy("w", Holds("n1", 7, time.Minute), WriteRefused("node n1 has held a slot since Mon 2026-11-16 11:59:00 UTC, and the "+
			"API server refuses the manager's writes about its reboot: denied"))), []corev1.Node{needy()}},
		"conflict":   {policies(Policy("w"), rival), []corev1.Node{needy(permitted(corev1.ConditionFalse, v1alpha1.ReasonPolicyConflict, ""))}},
		"no-policy":  {nil, []corev1.Node{needy(permitted(corev1.ConditionFalse, v1alpha1.ReasonNoPolicy, ""))}},
		"no-need":    {policies(Policy("w")), []corev1.Node{Node("n1", "w")}},
		"agent-gone": {policies(Policy("w", AgentsMissing("n1"))), []corev1.Node{Node("n1", "w")}},
		"not-ready":  {policies(Policy("w")), []corev1.Node{Node("n1", "w", NotReady)}},
		"no-agent":   {policies(Policy("w")), []corev1.Node{Node("n1", "w", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] })}},
		"windows": {policies(Policy("w")), []corev1.Node{Node("n1", "w", func(n *corev1.Node) {
			n.Labels[corev1.LabelOSStable], n.Status.Conditions = "windows", n.Status.Conditions[:1]
		})}},
		"unanswered": {policies(Policy("w")), []corev1.Node{Node("n1", "w", Annotated(v1alpha1.AnnotationRebootRequested, "firmware"), func(n *corev1.Node) {
			n.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "kubelet", Time: new(Ago(time.Minute)), FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
				{Manager: "kubectl-annotate", Time: new(Ago(time.Hour)), FieldsV1: metav1.NewFieldsV1(
					`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.AnnotationRebootRequested + `":{}}}}`)},
			}
		})}},
		"manager-lags": {policies(Policy("w")), []corev1.Node{
			needy(permitted(corev1.ConditionFalse, v1alpha1.ReasonWindowClosed, "no window is open; the next reboot may start Mon 2026-11-23 15:00:00 UTC")),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := few(explain(t, tc.policies, tc.nodes...))
			terminaltest.Golden(t, name, e.Lines(terminal.Look{Zone: Berlin}))
			terminaltest.Fits(t, 100, e.Lines(terminal.Look{Zone: Berlin, Width: 100}))
		})
	}
	wide := few(explain(t, cases["backing-off"].policies, cases["backing-off"].nodes...))
	terminaltest.Golden(t, "80-columns", wide.Lines(terminal.Look{Zone: Berlin, Width: 80}))
	terminaltest.Golden(t, "colour", wide.Lines(terminal.Look{Zone: Berlin, Width: 120, Theme: terminal.Theme{Color: true}}))
}

// TestOf_TheAgentMayBeMissing tests nodes that the status does not name, because it names at most
// five.
func TestOf_TheAgentMayBeMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		named          []string
		missing, ready int32
		want           explanation.Verdict
	}{
		"the node is named": {[]string{"n0", "n1"}, 2, 6, explanation.Unknown},
		"all missing nodes are named, and the node is not among them": {[]string{"n0", "n2"}, 2, 6, explanation.NoNeed},
		"the node sorts before the named ones":                        {[]string{"n2", "n3"}, 7, 1, explanation.NoNeed},
		"the node sorts after the named ones":                         {[]string{"n", "n0"}, 7, 1, explanation.Unknown},
		"no agent at all":                                             {[]string{"n2", "n3"}, 7, 0, explanation.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := Policy("w", AgentsMissing(tc.named...))
			w.Status.Nodes.Agents.Missing, w.Status.Nodes.Agents.Ready = tc.missing, tc.ready
			if e := explain(t, policies(w), Node("n1", "w")); e.Verdict != tc.want {
				t.Errorf("%s %s: %s", e.Verdict, e.Reason, e.Message)
			}
		})
	}
	t.Run("the node is in a conflict, so no policy counts its agent", func(t *testing.T) {
		w := Policy("w", AgentsMissing("n0"))
		w.Status.Nodes.Agents.Missing = 7
		if e := explain(t, policies(w, Policy("w2", Spec(func(s *v1alpha1.RebootPolicySpec) { s.NodeSelector = nil }))), Node("n1", "w")); e.Verdict != explanation.NoNeed {
			t.Errorf("%s %s: %s", e.Verdict, e.Reason, e.Message)
		}
	})
}

// TestOf_NoPolicyEndsTheReboot tests a node that is back and needs no reboot, but stays cordoned
// until a policy selects it.
func TestOf_NoPolicyEndsTheReboot(t *testing.T) {
	e := explain(t, nil, Node("n1", "w", Granted("gone", 7, 3*time.Minute), Progressed(7, protocol.PhaseRebooting, 2*time.Minute), Booted(20*time.Second)))
	if e.Verdict != explanation.Waiting || e.Reason != v1alpha1.ReasonNoPolicy || e.Advice != explanation.AdviceFor(v1alpha1.ReasonNoPolicy, "n1", "") {
		t.Errorf("%s %s: %s; %s", e.Verdict, e.Reason, e.Message, e.Advice.Text)
	}
}

// TestOf_TheLastRebootEnded tests the end of a reboot whose grant on the Node was replaced by a
// later one.
func TestOf_TheLastRebootEnded(t *testing.T) {
	w := Policy("w", Holds("n1", 7, time.Minute))
	w.Status.History = []v1alpha1.PastReboot{
		{Node: "n0", Seq: 6, Result: v1alpha1.RebootSucceeded, EndedAt: Ago(3 * time.Minute)},
		{Node: "n1", Seq: 6, Result: v1alpha1.RebootSucceeded, EndedAt: Ago(2 * time.Minute)},
	}
	e := explain(t, policies(w), Node("n1", "w", Needs(90*time.Second), Granted("w", 7, time.Minute), Progressed(6, protocol.PhaseRebooting, 4*time.Minute)))
	var got []string
	for _, m := range e.Timeline {
		got = append(got, Now.Sub(m.At).String()+" "+m.What)
	}
	want := []string{"4m0s sent to reboot", "2m0s back in service, grant 6 of policy w is over", "1m30s needs a reboot: UpdateStaged", "1m0s granted by policy w, number 7"}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q first", got, want)
	}
}

// TestLines_ANeedOfUnknownAge tests a condition without a transition time.
func TestLines_ANeedOfUnknownAge(t *testing.T) {
	undated := func(n *corev1.Node) { n.Status.Conditions[1].LastTransitionTime = metav1.Time{} }
	lines := explain(t, policies(Policy("w")), Node("n1", "w", Needs(time.Hour), undated)).Lines(terminal.Look{Zone: Berlin})
	if want := "Needs     a reboot: UpdateStaged, Flatcar 4459.2.1 is staged; 4459.2.0 runs"; !slices.Contains(lines, want) {
		t.Errorf("no line is %q: %q", want, lines)
	}
}
