package explanation_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// TestAdviceFor tests that every reason to wait in docs/reasons.md has advice.
func TestAdviceFor(t *testing.T) {
	text, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| [0-9]+ \\| `([A-Za-z]+)` \\|").FindAllSubmatch(text, -1)
	if len(rows) < 10 {
		t.Fatalf("found %d reasons", len(rows))
	}
	for _, row := range rows {
		reason := v1alpha1.Reason(row[1])
		a := explanation.AdviceFor(reason, "n1", "workers")
		if strings.Contains(a.Text, "docs/reasons.md") || a.Command == "" || strings.Contains(a.Command, "NODE") || strings.Contains(a.Command, "POLICY") {
			t.Errorf("%s: %+v; explanation/advice.go wants a row for it", reason, a)
		}
	}
	if a := explanation.AdviceFor(v1alpha1.ReasonRecordUnreadable, "n1", "workers"); strings.Contains(a.Command, "reboot-operator-system") {
		t.Errorf("the operator may run in another namespace: %s", a.Command)
	}
	if a := explanation.AdviceFor(v1alpha1.ReasonCoordinatorConflict, "n1", "workers"); strings.Contains(a.Command, "systemctl") {
		t.Errorf("the other program may be any, and the message has the command against it: %s", a.Command)
	}
	if a := explanation.AdviceFor("SomethingNew", "n1", "workers"); !strings.Contains(a.Text, "docs/reasons.md") {
		t.Errorf("an unknown reason: %+v", a)
	}
}

// TestOf_AnyReasonOfANode tests that a Node may show the reason of any check, whether a policy governs
// it or not. What the agent reports is not what the policy decided.
func TestOf_AnyReasonOfANode(t *testing.T) {
	for _, reason := range []v1alpha1.Reason{
		v1alpha1.ReasonWindowClosed, v1alpha1.ReasonBlackout, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonBackingOff, v1alpha1.ReasonUndrainablePod,
		v1alpha1.ReasonPolicyConflict, v1alpha1.ReasonRunHookWaits, v1alpha1.ReasonDryRun,
	} {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
			for _, policies := range [][]v1alpha1.RebootPolicy{nil, {Policy("w")}} {
				node := Node("n1", "w")
				node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeRebootRequired, Status: status, Reason: string(reason)})
				e, err := explanation.Of(fleet.New(policies, []corev1.Node{node}, Now), "n1")
				if err != nil || strings.Contains(e.Advice.Command, "windows") || strings.Contains(e.Advice.Command, "retry") || strings.Contains(e.Advice.Command, "edit") {
					t.Errorf("%s %s: %v, %+v", status, reason, err, e.Advice)
				}
			}
		}
	}
}

// TestOf_TheMoreSpecificPolicyWins tests that the command for a conflict raises the priority of the
// policy that selects fewer nodes.
func TestOf_TheMoreSpecificPolicyWins(t *testing.T) {
	everything := Policy("all")
	everything.Spec.NodeSelector = nil
	e, err := explanation.Of(fleet.New([]v1alpha1.RebootPolicy{everything, Policy("w")}, []corev1.Node{
		Node("n1", "w", Needs(time.Hour)), Node("n2", "other"), Node("n3", "other"),
	}, Now), "n1")
	if err != nil || !strings.HasPrefix(e.Advice.Command, "kubectl patch rbp w ") {
		t.Errorf("%v, %s", err, e.Advice.Command)
	}
}

// TestOf_TheAdviceForAConflictEndsIt tests that the suggested priority is new, because one that
// another policy has would be the next tie.
func TestOf_TheAdviceForAConflictEndsIt(t *testing.T) {
	prioritised := func(name string, priority int32) v1alpha1.RebootPolicy {
		return Policy(name, Spec(func(s *v1alpha1.RebootPolicySpec) { s.Priority = priority }))
	}
	node := Node("n1", "w", Needs(time.Hour))
	for name, priorities := range map[string]struct {
		w, rival, third int32
		want            string
	}{
		"both have priority 0":                 {0, 0, -1, `{"spec":{"priority":1}}`},
		"both have priority 1":                 {1, 1, 0, `{"spec":{"priority":2}}`},
		"a third policy has the next priority": {1, 1, 2, `{"spec":{"priority":3}}`},
		"both have a negative priority":        {-5, -5, -9, `{"spec":{"priority":-4}}`},
		"the highest priority is taken":        {1, 1, 1000000, "kubectl edit rbp rival"},
	} {
		t.Run(name, func(t *testing.T) {
			rival, third := prioritised("rival", priorities.rival), prioritised("third", priorities.third)
			rival.Spec.NodeSelector = nil
			e := explain(t, []v1alpha1.RebootPolicy{prioritised("w", priorities.w), rival, third}, node)
			if e.Reason != v1alpha1.ReasonPolicyConflict || !strings.Contains(e.Advice.Command, priorities.want) {
				t.Errorf("%s: %q, want %q in it", e.Reason, e.Advice.Command, priorities.want)
			}
		})
	}
}

// TestOf_NoPriorityBringsControlPlaneNodesTogether tests policies that select different
// control-plane nodes, so that they do not tie.
func TestOf_NoPriorityBringsControlPlaneNodesTogether(t *testing.T) {
	controlPlane := func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }
	e := explain(t, policies(Policy("w"), Policy("other")), Node("n1", "w", controlPlane, Needs(time.Hour)), Node("n2", "other", controlPlane))
	if e.Reason != v1alpha1.ReasonPolicyConflict || e.Advice.Command != "kubectl edit rbp w" {
		t.Errorf("%s: %q", e.Reason, e.Advice.Command)
	}
}

// TestOf_NothingWouldFollow tests that the advice is neither to wait nor to request a reboot if none
// would follow.
func TestOf_NothingWouldFollow(t *testing.T) {
	tries := Policy("w", Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	for name, tc := range map[string]struct {
		policy v1alpha1.RebootPolicy
		node   corev1.Node
		want   string
	}{
		"no policy":                           {Policy("w"), Node("n1", "other"), "kubectl get rebootpolicies"},
		"its turn never comes in mode DryRun": {tries, Node("n1", "w", Needs(time.Minute)), `kubectl patch rbp w --type=merge -p '{"spec":{"mode":"Enforce"}}'`},
		"a paused node in mode DryRun":        {tries, Node("n1", "w", Needs(time.Minute), Annotated(v1alpha1.AnnotationPaused, "true")), "kubectl reboot resume node/n1"},
		"its turn comes":                      {Policy("w"), Node("n1", "w", Needs(time.Minute)), "kubectl reboot status w -o wide"},
	} {
		t.Run(name, func(t *testing.T) {
			if e := explain(t, policies(tc.policy), tc.node, Node("n0", "w", Needs(time.Hour))); e.Advice.Command != tc.want {
				t.Errorf("%s: %+v, want %s", e.Reason, e.Advice, tc.want)
			}
		})
	}
}

// TestOf_NoTurnComesIfTheLimitIsZero tests that the advice is not to wait if the limit is zero.
func TestOf_NoTurnComesIfTheLimitIsZero(t *testing.T) {
	for limit, want := range map[string]string{"0": "raise spec.concurrency.maxUnavailable", "0%": "raise spec.concurrency.maxUnavailable", "1": "repair n0, which is not Ready"} {
		t.Run(limit, func(t *testing.T) {
			down := Node("n0", "w", NotReady)
			e := explain(t, []v1alpha1.RebootPolicy{Policy("w", AtMost(limit))}, down, Node("n1", "w", Needs(time.Hour)))
			if e.Reason != v1alpha1.ReasonBudgetExhausted || !strings.HasPrefix(e.Advice.Text, want) {
				t.Errorf("%s: %+v, want %s", e.Reason, e.Advice, want)
			}
		})
	}
}

// TestOf_NoWindowEverOpens tests that the advice is not to wait for a window that never opens, or
// after which nothing happens.
func TestOf_NoWindowEverOpens(t *testing.T) {
	dryRun := Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })
	for want, tc := range map[string]struct {
		to   string
		edit func(*v1alpha1.RebootPolicy)
	}{
		"change the windows or blackouts":            {"2029-01-01", AtMost("1")},
		"wait":                                       {"2026-12-01", AtMost("1")},
		"raise spec.concurrency.maxUnavailable":      {"2026-12-01", AtMost("0")},
		"let the policy grant reboots, because in m": {"2026-12-01", dryRun},
	} {
		frozen := Policy("w", Weeknights, tc.edit, Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Blackouts = []v1alpha1.Blackout{{Name: "freeze", From: "2026-01-01", To: tc.to}}
		}))
		if e := explain(t, policies(frozen), Node("n1", "w", Needs(time.Hour))); e.Reason != v1alpha1.ReasonBlackout || !strings.HasPrefix(e.Advice.Text, want) {
			t.Errorf("%s: %+v, want %s", e.Reason, e.Advice, want)
		}
	}
}

// TestOf_NothingIsDecidedBeforeTheLastGrantIsOver tests the explanation while the manager has not
// released the last grant.
func TestOf_NothingIsDecidedBeforeTheLastGrantIsOver(t *testing.T) {
	replaced := Policy("w", Holds("n1", 7, time.Hour))
	replaced.Status.Grants[0].NodeUID = "of-an-earlier-node"
	e := explain(t, policies(replaced), Node("n1", "w", Needs(time.Hour)))
	if e.Verdict != explanation.Waiting || e.Message != "the manager has not released its last grant yet" || e.Advice.Command != status.LookAtManager {
		t.Errorf("%s: %q, %+v", e.Verdict, e.Message, e.Advice)
	}
}

// TestOf_WhatAWindowDoesNotEnd tests that a node which waits for its window, and then for a person,
// has the advice for the person.
func TestOf_WhatAWindowDoesNotEnd(t *testing.T) {
	closed := Policy("w", Weeknights)
	node := Node("n1", "w", Needs(time.Hour))
	question, _ := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: gates.PodsOf(&closed).Preflight()})
	kept := &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: "shop/batch", Why: "drain.unmanagedPods is Block"}}}
	f := fleet.New(policies(closed), []corev1.Node{node}, Now)
	for name, tc := range map[string]struct {
		fleet fleet.Fleet
		want  v1alpha1.Reason
	}{
		"nothing is in the way": {f, v1alpha1.ReasonWindowClosed},
		"a pod is in the way": {f.Looked(map[string]protocol.PreflightReport{"n1": {
			Policy: question.Policy, Revision: question.Revision, BootID: node.Status.NodeInfo.BootID, Kept: kept,
		}}), v1alpha1.ReasonUndrainablePod},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := explanation.Of(tc.fleet, "n1")
			if err != nil || e.Reason != v1alpha1.ReasonWindowClosed || e.Advice != explanation.AdviceFor(tc.want, "n1", "w") {
				t.Errorf("%v; %s: %s; %s", err, e.Reason, e.Message, e.Advice.Text)
			}
		})
	}
}

// TestOf_ANodeThatOthersWaitFor tests a node that needs no reboot and uses up the limit.
func TestOf_ANodeThatOthersWaitFor(t *testing.T) {
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, tc := range map[string]struct {
		node corev1.Node
		want string
	}{
		"cordoned": {Node("n1", "w", cordoned), "kubectl uncordon n1"},
		"in order": {Node("n1", "w"), "kubectl reboot request n1 --reason=why"},
	} {
		t.Run(name, func(t *testing.T) {
			if e := explain(t, policies(Policy("w")), tc.node, Node("n2", "w", Needs(time.Hour))); e.Verdict != explanation.NoNeed || e.Advice.Command != tc.want {
				t.Errorf("others wait: %s, %+v", e.Verdict, e.Advice)
			}
			if e := explain(t, policies(Policy("w")), tc.node, Node("n2", "w")); !strings.HasPrefix(e.Advice.Text, "nothing") {
				t.Errorf("nobody waits: %+v", e.Advice)
			}
		})
	}
}

// TestOf_AClosedBudget tests a node whose last drain a closed PodDisruptionBudget has made fail.
func TestOf_AClosedBudget(t *testing.T) {
	w := Policy("w")
	question, _ := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: gates.PodsOf(&w).Preflight()})
	node := Node("n1", "w", Needs(time.Hour), Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseAborted, 2*time.Minute, func(p *protocol.Progress) {
		p.Failures, p.Reason, p.Message, p.Try = 1, v1alpha1.ReasonUndrainablePod, "The drain took too long.", true
	}))
	f := fleet.New(policies(w), []corev1.Node{node}, Now).Looked(map[string]protocol.PreflightReport{"n1": {
		Policy: question.Policy, Revision: question.Revision, BootID: node.Status.NodeInfo.BootID,
		Closed: &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: "shop/mail-0"}}},
	}})
	e, err := explanation.Of(f, "n1")
	if err != nil || e.Reason != v1alpha1.ReasonUndrainablePod || e.Advice.Command != "kubectl reboot retry n1" || strings.Contains(e.Message, "kubectl") {
		t.Errorf("%v; %s: %s; %+v", err, e.Reason, e.Message, e.Advice)
	}
}
