package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/report"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

func runs(os, kernel string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.OSImage, n.Status.NodeInfo.KernelVersion = os, kernel }
}

// finished makes the node rebooted by the operator some time ago.
func finished(ago time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		g := protocol.Grant{Policy: "workers", Seq: 3, BootID: "before", State: protocol.GrantFinished, At: Ago(ago)}
		n.Annotations[v1alpha1.AnnotationGrant] = g.String()
	}
}

// rows returns rows of nodes that wait, reboot, are up to date, or have no policy.
func rows() []report.Row {
	deadline := Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Deadline = &v1alpha1.Duration{Duration: 7 * 24 * time.Hour}
	})
	remembers := func(p *v1alpha1.RebootPolicy) {
		p.Status.History = []v1alpha1.PastReboot{
			{Node: "n4", Seq: 1, Result: v1alpha1.RebootSucceeded, GrantedAt: Ago(31 * time.Hour), EndedAt: Ago(30 * time.Hour)},
			{Node: "n4", Seq: 2, Result: v1alpha1.RebootAborted, GrantedAt: Ago(3 * time.Hour), EndedAt: Ago(2 * time.Hour)},
		}
	}
	flatcar := runs("Flatcar Container Linux by Kinvolk 4459.2.0 (Oklo)", "6.12.51-flatcar")
	return report.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("workers", deadline, remembers, Holds("n2", 5, time.Minute))}, []corev1.Node{
		Node("n1", "workers", flatcar, Needs(50*time.Hour), finished(40*24*time.Hour), Annotated(v1alpha1.AnnotationBootedAt, Ago(40*24*time.Hour).UTC().Format(time.RFC3339))),
		Node("n2", "workers", flatcar, Needs(9*24*time.Hour), Granted("workers", 5, time.Minute)),
		Node("n3", "workers", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true")),
		Node("n4", "workers", runs("Ubuntu 24.04.1 LTS", "6.8.0-48-generic"), finished(48*time.Hour)),
		Node("stray", "none", runs("=HYPERLINK(\"http://example.com\"),\x1b[2J", "@x\ny"), Needs(time.Hour)),
	}, Now), func(string, map[string]string) bool { return true })
}

func TestLines(t *testing.T) {
	terminaltest.Golden(t, "report", report.Lines(rows(), terminal.Look{Width: 80, Zone: time.UTC}))
}

// TestCSV tests that formulas stay text, and that nothing moves a cursor.
func TestCSV(t *testing.T) {
	text, err := report.CSV(rows())
	if err != nil {
		t.Fatal(err)
	}
	terminaltest.Golden(t, "csv", strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// TestJSON tests that the fields are those in docs/kubectl.md.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(rows())
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"node": "n1", "policy": "workers", "os": "Flatcar Container Linux by Kinvolk 4459.2.0 (Oklo)", "kernel": "6.12.51-flatcar",
		"bootedAt": "2026-10-14T15:48:00Z", "needsSince": "2026-11-21T13:48:00Z", "days": 2.0, "deadlineAt": "2026-11-28T13:48:00Z",
		"lastRebootAt": "2026-10-14T15:48:00Z", "reason": "BudgetExhausted",
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOf_UnknownNodes tests that a node of unknown state is not shown as one that needs nothing.
func TestOf_UnknownNodes(t *testing.T) {
	noCondition := func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w", AgentsMissing("gone"))}, []corev1.Node{
		Node("gone", "w"), Node("never", "none", noCondition), Node("well", "w"), Node("down", "w", NotReady),
		Node("unreachable", "w", Condition(v1alpha1.NodeRebootRequired, corev1.ConditionUnknown, "EngineUnreachable", time.Hour)),
		Node("windows", "w", noCondition, func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" }),
	}, Now)
	got := map[string]v1alpha1.Reason{}
	for _, r := range report.Of(f, func(string, map[string]string) bool { return true }) {
		got[r.Node] = r.Reason
	}
	want := map[string]v1alpha1.Reason{"gone": "AgentsMissing", "down": "NodeUnavailable", "never": "AgentsMissing", "well": "", "unreachable": "EngineUnreachable", "windows": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOf_OnlyThoseThatAreWanted tests the selection of nodes by policy and labels.
func TestOf_OnlyThoseThatAreWanted(t *testing.T) {
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("a"), Policy("b")}, []corev1.Node{Node("n1", "a"), Node("n2", "b"), Node("n3", "none")}, Now)
	var asked []string
	got := report.Of(f, func(policy string, labels map[string]string) bool {
		asked = append(asked, policy+"/"+labels[PoolLabel])
		return policy == "b"
	})
	if diff := cmp.Diff([]report.Row{{Node: "n2", Policy: "b"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a/a", "b/b", "/none"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
