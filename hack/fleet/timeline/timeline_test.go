package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

// change changes a node.
type change func(*corev1.Node)

// node returns a Ready node on boot "boot-one", with the given changes.
func node(name string, changes ...change) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	n.Status.NodeInfo.BootID = "boot-one"
	set(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "")(n)
	for _, c := range changes {
		c(n)
	}
	return n
}

func set(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) change {
	return func(n *corev1.Node) {
		n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func grant(state protocol.GrantState) change {
	return func(n *corev1.Node) {
		n.Annotations[v1alpha1.AnnotationGrant] = protocol.Grant{Policy: "p", Seq: 7, BootID: "boot-one", State: state, At: metav1.Now()}.String()
	}
}

func progress(phase protocol.Phase) change {
	return func(n *corev1.Node) {
		p := protocol.Progress{Seq: 7, Phase: phase, BootID: "boot-one", Reason: v1alpha1.ReasonDrainTimedOut, At: metav1.Now()}
		n.Annotations[v1alpha1.AnnotationProgress] = p.String()
	}
}

func boot(id string) change     { return func(n *corev1.Node) { n.Status.NodeInfo.BootID = id } }
func cordoned(n *corev1.Node)   { n.Spec.Unschedulable = true }
func uncordoned(n *corev1.Node) { n.Spec.Unschedulable = false }

var (
	upToDate = set(v1alpha1.NodeRebootRequired, corev1.ConditionFalse, "UpToDate", "")
	needs    = set(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, "UpdateStaged", "version 4. Reported by x.")
	down     = set(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", "")
	blocked  = set(v1alpha1.NodeRebootPermitted, corev1.ConditionFalse, "BudgetExhausted", "1 of 1")
	up       = set(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "")
)

// TestLook tests states outside of a successful reboot.
func TestLook(t *testing.T) {
	active := grant(protocol.GrantActive)
	cases := map[string]struct {
		changes []change
		want    State
	}{
		"nobody reports":            {nil, UpToDate},
		"aborted":                   {[]change{needs, active, progress("Aborted")}, Waiting},
		"down on another boot":      {[]change{needs, active, progress("Rebooting"), cordoned, boot("b"), down}, Rebooting},
		"cordoned by somebody else": {[]change{needs, cordoned}, Unavailable},
		"down without a reboot":     {[]change{needs, down}, Unavailable},
		"a broken record":           {[]change{func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationGrant] = "null" }}, Unavailable},
	}
	for name, tc := range cases {
		if got := look(node("n", tc.changes...)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// play applies changes to one node, a second apart.
func play(line *Timeline, n *corev1.Node, from int, changes ...change) {
	for i, c := range changes {
		c(n)
		line.Observe(at(from+i), n)
	}
}

func TestTimeline_Run(t *testing.T) {
	var line Timeline
	play(&line, node("n1"), 0,
		upToDate, func(n *corev1.Node) { needs(n); blocked(n) }, grant(protocol.GrantActive),
		func(n *corev1.Node) { progress("Draining")(n); cordoned(n) },
		progress("Rebooting"), down,
		func(n *corev1.Node) { up(n); boot("boot-two")(n) },
		upToDate,
		func(n *corev1.Node) { grant(protocol.GrantFinished)(n); uncordoned(n) },
	)
	want := []Run{{Node: "n1", Granted: at(2), Drain: at(3), Reboot: at(4), Up: at(6), Done: at(8)}}
	if diff := cmp.Diff(want, line.Story().Runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	phases := Phases{Drain: time.Second, Reboot: 2 * time.Second, Settle: 2 * time.Second}
	if diff := cmp.Diff(phases, line.Story().Runs[0].Phases()); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	views := []View{{Node: "n1", State: Back, Why: "BudgetExhausted: 1 of 1", Reboots: 1, Reports: true, Report: "version 4."}}
	if diff := cmp.Diff(views, line.Story().Views); diff != "" {
		t.Errorf("views (-want +got):\n%s", diff)
	}
	var steps []State
	for _, c := range line.Story().Changes[1:] {
		if c.From != c.To {
			steps = append(steps, c.To)
		}
	}
	if diff := cmp.Diff([]State{Waiting, Granted, Draining, Rebooting, Settling, Back}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestTimeline_AnAbortedDrainIsMeasuredFromItsSecondStart(t *testing.T) {
	var line Timeline
	n := node("n1", needs, grant(protocol.GrantActive))
	play(&line, n, 0, progress("Draining"), progress("Aborted"))
	delete(n.Annotations, v1alpha1.AnnotationProgress)
	play(&line, n, 100,
		grant(protocol.GrantActive), progress("Draining"), progress("Rebooting"), boot("boot-two"), upToDate,
		grant(protocol.GrantFinished))
	want := []Run{{Node: "n1", Granted: at(100), Drain: at(101), Reboot: at(102), Up: at(103), Done: at(105)}}
	if diff := cmp.Diff(want, line.Story().Runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestTimeline_PeakCountsEveryUnavailableNode(t *testing.T) {
	var line Timeline
	for _, name := range []string{"n1", "n2", "n3"} {
		line.Observe(at(0), node(name))
	}
	line.Observe(at(1), node("n1", cordoned))
	line.Observe(at(2), node("n2", down))
	line.Observe(at(3), node("n1"))
	if diff := cmp.Diff([]string{"n1", "n2"}, line.Story().Peak); diff != "" {
		t.Errorf("peak (-want +got):\n%s", diff)
	}
}
