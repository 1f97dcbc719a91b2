package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// busy returns a fleet in which everything happens at once, at night.
func busy() fleet.Fleet {
	night := Now.Add(6 * time.Hour)
	over := metav1.NewTime(night.Add(26 * time.Hour))
	policies := []v1alpha1.RebootPolicy{
		Policy("workers", AtMost("25%"), Weeknights, Holds("worker-04", 7, -5*time.Hour-50*time.Minute), Holds("worker-05", 8, -5*time.Hour),
			Holds("worker-06", 9, -5*time.Hour-55*time.Minute)),
		Policy("control-plane", Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Blackouts = []v1alpha1.Blackout{{Name: "audit", From: "2026-11-20", To: "2027-01-04", TimeZone: "Europe/Berlin"}}
		})),
		Policy("gpu", AtMost("3"), Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Pause = &v1alpha1.Pause{Reason: "Black Friday", Until: &over}
		})),
		Policy("edge", Halted("2 nodes failed since the last success (maxFailures is 2): edge-1 (DrainTimedOut), edge-2 (RebootTimedOut)"), Holds("edge-2", 3, 4*time.Hour)),
		Policy("lab", Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })),
	}
	nodes := []corev1.Node{
		Node("worker-01", "workers"), Node("worker-02", "workers"), Node("worker-03", "workers"),
		Node("worker-04", "workers", Needs(50*time.Hour), Granted("workers", 7, -5*time.Hour-50*time.Minute), Progressed(7, protocol.PhaseDraining, -5*time.Hour-50*time.Minute), Condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, "Draining",
			-5*time.Hour-50*time.Minute, "The drain waits for default/db-0 (PodDisruptionBudget db). The drain may take until Mon 2026-11-23 21:58:00 UTC; then the node is uncordoned and backs off.")),
		Node("worker-05", "workers", Needs(49*time.Hour), Granted("workers", 8, -5*time.Hour), Progressed(8, protocol.PhaseRebooting, -5*time.Hour-58*time.Minute)),
		Node("worker-06", "workers", Granted("workers", 9, -5*time.Hour-55*time.Minute), Progressed(9, protocol.PhaseRebooting, -5*time.Hour-57*time.Minute), Booted(-5*time.Hour-59*time.Minute-30*time.Second)),
		Node("worker-16", "workers", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true")),
		Node("edge-1", "edge", Needs(9*time.Hour)),
		Node("edge-2", "edge", Needs(9*time.Hour), Granted("edge", 3, 4*time.Hour), Progressed(3, protocol.PhaseRebooting, 4*time.Hour), NotReady),
		Node("control-plane-1", "control-plane", Needs(9*time.Hour)),
		Node("gpu-1", "gpu", Needs(9*time.Hour)), Node("gpu-2", "gpu"), Node("lab-1", "lab", Needs(time.Hour)), Node("stray-1", "none", Needs(time.Hour)),
	}
	for _, name := range []string{"07", "08", "09", "10", "11", "12", "13", "14", "15"} {
		nodes = append(nodes, Node("worker-"+name, "workers", Needs(48*time.Hour)))
	}
	return fleet.New(policies, nodes, night)
}

// versions returns a fleet with two channels, in which some nodes are outdated and wait for
// nothing.
func versions() fleet.Fleet {
	var nodes []corev1.Node
	add := func(number int, group, version string, options ...func(*corev1.Node)) {
		for range number {
			n := Node(fmt.Sprintf("n%02d", len(nodes)), "workers", options...)
			n.Labels[v1alpha1.LabelOSID], n.Labels[v1alpha1.LabelOSVersion] = "flatcar", version
			if group != "" {
				n.Labels[v1alpha1.LabelOSGroup] = group
			}
			nodes = append(nodes, n)
		}
	}
	add(31, "stable", "4593.1.0")
	add(6, "stable", "4459.2.1", Needs(time.Hour))
	add(1, "stable", "4459.2.1")
	add(2, "stable", "4459.2.0")
	for _, old := range []string{"3975.2.0", "3815.2.5", "3760.2.0", "3602.2.0"} {
		add(1, "stable", old, Needs(time.Hour))
	}
	add(2, "beta", "4628.0.0")
	add(1, "", "edge")
	return fleet.New([]v1alpha1.RebootPolicy{Policy("workers", Weeknights), Policy("gpu")}, append(nodes, Node("gpu-1", "gpu")), Now)
}

// TestLines_TheBarIsNotFullWithNodesInConflict tests that nodes that nobody reboots keep the bar from
// looking done.
func TestLines_TheBarIsNotFullWithNodesInConflict(t *testing.T) {
	rival := Policy("rival", Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"tier": "db"}
	}))
	s := status.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("workers"), rival}, []corev1.Node{
		Node("n1", "workers", func(n *corev1.Node) { n.Labels["tier"] = "db" }), Node("n2", "workers"),
	}, Now))
	if bar := s.Lines(terminal.Look{Zone: time.UTC, Width: 100})[0]; bar != strings.Repeat("━", 12)+strings.Repeat("─", 12)+
		"  1 of 1 nodes up to date, 1 in conflict, 0 rebooting, 0 waiting" {
		t.Error(bar)
	}
}

// TestLines_ANodeThatIsDownIsNotUpToDate tests that the last report of an agent does not count while
// its node is not Ready.
func TestLines_ANodeThatIsDownIsNotUpToDate(t *testing.T) {
	s := status.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("workers")}, []corev1.Node{Node("n1", "workers", NotReady), Node("n2", "workers")}, Now))
	if bar := s.Lines(terminal.Look{Zone: time.UTC, Width: 100})[0]; !strings.Contains(bar, "  1 of 2 nodes up to date") {
		t.Error(bar)
	}
}

// TestLines_ANodeOfRivalsStaysOnce tests that a node in a conflict is counted once, although both
// policies leave it out.
func TestLines_ANodeOfRivalsStaysOnce(t *testing.T) {
	db := func(n *corev1.Node) { n.Labels["tier"] = "db" }
	rival := Policy("rival", Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"tier": "db"}
	}))
	s := status.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("workers"), rival}, []corev1.Node{
		Node("n1", "workers", Needs(time.Hour), db), Node("n2", "workers", Needs(time.Hour)), Node("n3", "others", Needs(time.Hour), db),
	}, Now))
	if bar := s.Lines(terminal.Look{Zone: time.UTC, Width: 100})[0]; !strings.Contains(bar, "0 of 2 nodes up to date, 1 in conflict, all but 1 in about") {
		t.Error(bar)
	}
}

// TestLines_NamesWhoUsesUpTheLimit tests a node that is cordoned while another waits for its turn.
func TestLines_NamesWhoUsesUpTheLimit(t *testing.T) {
	s := status.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("workers")}, []corev1.Node{
		Node("n1", "workers", func(n *corev1.Node) { n.Spec.Unschedulable = true }), Node("n2", "workers", Needs(time.Hour)),
	}, Now))
	lines := strings.Join(s.Lines(terminal.Look{Zone: time.UTC, Width: 100}), "\n")
	if row := "BudgetExhausted  workers      1  n2; n1 is cordoned"; !strings.Contains(lines, row) {
		t.Error(lines)
	}
}

func TestLines(t *testing.T) {
	quiet := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", Weeknights)}, []corev1.Node{Node("n1", "workers"), Node("n2", "workers")}, Now)
	frozen := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Windows[0].Days, s.Blackouts = []v1alpha1.Day{"Mon"}, []v1alpha1.Blackout{{Name: "long", From: "2026-11-24", To: "2029-01-01"}}
		s.Windows[0].Start = "01:00"
	}))}, []corev1.Node{Node("n1", "workers", Needs(time.Hour))}, Now)
	due := fleet.New([]v1alpha1.RebootPolicy{Policy("workers")}, []corev1.Node{Node("n1", "workers", Needs(time.Hour))}, Now)
	both := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", Halted("1 node failed"), Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Pause = &v1alpha1.Pause{Reason: "Black Friday"}
	}))}, []corev1.Node{Node("n1", "workers", Needs(time.Hour))}, Now)
	unreported := Node("n2", "workers", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] })
	silent := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", AgentsMissing("n2"))}, []corev1.Node{Node("n1", "workers"), unreported}, Now)
	gone := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", AgentsMissing("n2"))}, []corev1.Node{Node("n1", "workers"), Node("n2", "workers")}, Now)
	dryRun := fleet.New([]v1alpha1.RebootPolicy{Policy("lab", Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })), Policy("workers")},
		[]corev1.Node{Node("n1", "workers", Needs(time.Hour)), Node("n2", "lab", Needs(time.Hour))}, Now)
	rival := Policy("rival")
	rival.Spec.NodeSelector = nil // every node
	tie := fleet.New([]v1alpha1.RebootPolicy{Policy("workers"), rival}, []corev1.Node{Node("n0", "workers"), Node("n1", "workers", Needs(time.Hour))}, Now)
	refused := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", Holds("n1", 1, time.Minute), WriteRefused("node n1 has held a slot since "+
		"Mon 2026-11-16 12:00:00 UTC, and the API server refuses the manager's writes about its reboot: denied; 1 of at most 1 reboots in progress"))},
		[]corev1.Node{Node("n1", "workers", Needs(time.Hour))}, Now)
	asked := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", func(p *v1alpha1.RebootPolicy) {
		p.Spec.Hooks = &v1alpha1.Hooks{RunAfter: []v1alpha1.AnnotationKey{"example.com/noout-unset"}}
		p.Status.Run = &v1alpha1.RunStatus{Hooks: &v1alpha1.RunHooks{
			Stage: v1alpha1.RunAfter, Number: 7, Asked: p.Spec.Hooks.RunAfter, At: metav1.NewTime(Now.Add(-time.Minute)),
		}}
	})}, []corev1.Node{Node("n1", "workers")}, Now)
	shares := Spec(func(s *v1alpha1.RebootPolicySpec) { s.Concurrency = &v1alpha1.Concurrency{Shared: "workers"} })
	shared := fleet.New([]v1alpha1.RebootPolicy{Policy("workers", AtMost("50%")), Policy("gpu", shares)},
		[]corev1.Node{Node("n1", "workers"), Node("n2", "workers"), Node("n3", "workers"), Node("n4", "gpu")}, Now)
	cases := map[string]struct {
		status status.Status
		look   terminal.Look
	}{
		"dry-run-with-others": {status.Of(dryRun), terminal.Look{Width: 100}},
		"hooks-of-a-run":      {status.Of(asked), terminal.Look{Width: 100}},
		"paused-and-halted":   {status.Of(both), terminal.Look{Width: 100}},
		"conflict":            {status.Of(tie), terminal.Look{Width: 100}},
		"shared-limit":        {status.Of(shared), terminal.Look{Wide: true}},
		"pipe":                {status.Of(busy()), terminal.Look{}},
		"wide":                {status.Of(busy()), terminal.Look{Wide: true}},
		"80-columns":          {status.Of(busy()), terminal.Look{Width: 80}},
		"120-columns":         {status.Of(busy()), terminal.Look{Width: 120}},
		"colour":              {status.Of(busy()), terminal.Look{Width: 120, Theme: terminal.Theme{Color: true}}},
		"one-policy":          {status.Of(busy(), "workers"), terminal.Look{Width: 80}},
		"never-open":          {status.Of(frozen), terminal.Look{Width: 100}},
		"nothing-to-do":       {status.Of(quiet), terminal.Look{Width: 80}},
		"versions":            {status.Of(versions()), terminal.Look{}},
		"due":                 {status.Of(due), terminal.Look{Width: 80}},
		"agents-missing":      {status.Of(silent), terminal.Look{Width: 100}},
		"agents-gone":         {status.Of(gone), terminal.Look{Width: 100}},
		"write-refused":       {status.Of(refused), terminal.Look{Width: 100}},
		"nothing-known":       {status.Of(fleet.New(nil, []corev1.Node{unreported}, Now)), terminal.Look{Width: 80}},
		"empty":               {status.Of(fleet.New(nil, nil, Now)), terminal.Look{Width: 80}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.look.Zone = Berlin
			lines := tc.status.Lines(tc.look)
			terminaltest.Golden(t, name, lines)
			if tc.look.Width > 0 && !tc.look.Theme.Color {
				terminaltest.Fits(t, tc.look.Width, lines)
			}
		})
	}
}
