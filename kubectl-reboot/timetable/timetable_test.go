package timetable_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

// needy returns n nodes of pool w that need a reboot.
func needy(n int, name string) []corev1.Node {
	nodes := make([]corev1.Node, n)
	for i := range nodes {
		nodes[i] = Node(fmt.Sprintf(name, i+1), "w", Needs(time.Hour))
	}
	return nodes
}

// upFor returns a node that needs no reboot, with a maximum uptime of 720 hours and the given
// uptime.
func upFor(name string, uptime time.Duration) corev1.Node {
	return Node(name, "w", Annotated(v1alpha1.AnnotationMaxUptime, "720h0m0s"), Annotated(v1alpha1.AnnotationBootedAt, Ago(uptime).UTC().Format(time.RFC3339)))
}

func freeze(from, to string) func(*v1alpha1.RebootPolicy) {
	return Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Blackouts = []v1alpha1.Blackout{{Name: "freeze", From: from, To: to, TimeZone: "Europe/Berlin", Reason: "Black Friday"}}
	})
}

func timetableOf(now time.Time, nodes []corev1.Node, options ...func(*v1alpha1.RebootPolicy)) timetable.Timetable {
	policy := Policy("w", options...)
	f := fleet.New([]v1alpha1.RebootPolicy{policy}, nodes, now)
	return timetable.Of(f, f.Policy("w"))
}

func TestLines(t *testing.T) {
	inProgress := func() []corev1.Node {
		return append(needy(3, "node-%d"), Node("node-0", "w", Needs(time.Hour), Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseDraining, time.Minute)))
	}
	settles := func(d time.Duration) func(*v1alpha1.RebootPolicy) {
		return Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{Duration: d}}
		})
	}
	cases := map[string]struct {
		now    time.Time
		nodes  []corev1.Node
		policy []func(*v1alpha1.RebootPolicy)
		look   terminal.Look
	}{
		"nothing":          {nodes: []corev1.Node{Node("node-1", "w")}},
		"nothing-known":    {nodes: []corev1.Node{Node("node-1", "w")}, policy: []func(*v1alpha1.RebootPolicy){AgentsMissing("node-1")}},
		"no-nodes":         {},
		"down":             {nodes: []corev1.Node{Node("node-1", "w", NotReady), Node("node-2", "w")}},
		"some-unknown":     {nodes: append(needy(1, "node-%d"), Node("node-2", "w")), policy: []func(*v1alpha1.RebootPolicy){AgentsMissing("node-2")}},
		"always-open":      {nodes: needy(3, "node-%d")},
		"in-progress":      {nodes: inProgress(), policy: []func(*v1alpha1.RebootPolicy){Holds("node-0", 7, 3*time.Minute)}},
		"in-progress-wide": {nodes: inProgress(), policy: []func(*v1alpha1.RebootPolicy){Holds("node-0", 7, 3*time.Minute)}, look: terminal.Look{Wide: true}},
		"weeknights":       {nodes: append(needy(3, "node-%d"), Node("node-9", "w", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "until Mon 2026-11-23 20:00:00 UTC"))), policy: []func(*v1alpha1.RebootPolicy){Weeknights}, look: terminal.Look{Width: 80}},
		"overruns":         {nodes: needy(7, "node-%d"), policy: []func(*v1alpha1.RebootPolicy){Weeknights, settles(56 * time.Minute)}},
		"over-the-freeze":  {now: Now.AddDate(0, 0, 2).Add(6 * time.Hour), nodes: needy(3, "node-%d"), policy: []func(*v1alpha1.RebootPolicy){Weeknights, freeze("2026-11-26", "2026-12-01"), settles(50 * time.Minute)}},
		"deadline": {
			nodes: append(needy(3, "node-%d"), Node("node-9", "w", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true"))),
			policy: []func(*v1alpha1.RebootPolicy){Spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Deadline = &v1alpha1.Duration{Duration: 70 * time.Minute}
			})},
		},
		"pods-in-the-way": {
			nodes:  append(needy(1, "node-%d"), Node("node-8", "w", Needs(time.Hour), finds(`"kept":{"count":1,"pods":[{"pod":"default/bare","why":"no controller"}]}`)), Node("node-9", "w", Needs(time.Hour), finds(`"closed":{"count":1,"pods":[{"pod":"shop/db-0","why":"PodDisruptionBudget db"}]}`))),
			policy: []func(*v1alpha1.RebootPolicy){Weeknights}, look: terminal.Look{Width: 100},
		},
		"comes-due": {nodes: append(needy(1, "node-%d"), upFor("node-2", 29*24*time.Hour), upFor("node-3", 20*24*time.Hour)), policy: []func(*v1alpha1.RebootPolicy){Weeknights}, look: terminal.Look{Width: 80}},
		"dry-run":   {nodes: needy(1, "node-%d"), policy: []func(*v1alpha1.RebootPolicy){Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })}},
		"paused":    {nodes: needy(2, "node-%d"), policy: []func(*v1alpha1.RebootPolicy){Spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{Reason: "audit"} })}, look: terminal.Look{Width: 60}},
		"colour":    {nodes: append(inProgress(), Node("node-9", "w", Needs(time.Hour), NotReady)), policy: []func(*v1alpha1.RebootPolicy){AtMost("2"), Holds("node-0", 7, 3*time.Minute), Weeknights}, look: terminal.Look{Width: 100, Theme: terminal.Theme{Color: true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.now.IsZero() {
				tc.now = Now
			}
			tc.look.Zone = Berlin
			lines := timetableOf(tc.now, tc.nodes, tc.policy...).Lines(tc.look)
			terminaltest.Golden(t, name, lines)
			if tc.look.Width > 0 && !tc.look.Theme.Color {
				terminaltest.Fits(t, tc.look.Width, lines)
			}
		})
	}
}

// TestOf_Calendar tests that the calendar covers all reboots, even if none starts in the first
// windows.
func TestOf_Calendar(t *testing.T) {
	current := timetableOf(Now, needy(2, "node-%d"), Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Pause = &v1alpha1.Pause{Until: new(metav1.NewTime(Now.AddDate(0, 0, 14)))}
	}))
	for _, r := range current.Reboots {
		if !slices.ContainsFunc(current.Calendar, func(e calendar.Period) bool { return !r.StartsAt.Before(e.From) && r.StartsAt.Before(e.To) }) {
			t.Errorf("%s starts %s, in no window of %v", r.Node, r.StartsAt, current.Calendar)
		}
	}
	if len(current.Reboots) != 2 {
		t.Errorf("reboots: %v", current.Reboots)
	}
}

// Programs iterate over the reboots, so the list must be empty instead of null.
func TestOf_WithoutRebootsIsAnEmptyList(t *testing.T) {
	never := Policy("w", Weeknights)
	never.Spec.Windows[0].TimeZone = "Mars/Olympus"
	for name, f := range map[string]fleet.Fleet{
		"no nodes":     fleet.New([]v1alpha1.RebootPolicy{Policy("w", Weeknights)}, nil, Now),
		"never open":   fleet.New([]v1alpha1.RebootPolicy{never}, needy(1, "n%d"), Now),
		"nothing asks": fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{Node("n1", "w")}, Now),
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(timetable.Of(f, f.Policy("w")))
			if err != nil || !strings.Contains(string(text), `"reboots":[]`) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// finds is an agent's answer about the pods of its node, before a window.
func finds(pods string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		w := Policy("w", Weeknights)
		asked := strings.TrimSuffix(gates.PodsOf(&w).Preflight(), "}")
		Annotated(v1alpha1.AnnotationReport, `{"preflight":`+asked+`,"bootID":"`+n.Status.NodeInfo.BootID+`",`+pods+`}}`)(n)
	}
}
