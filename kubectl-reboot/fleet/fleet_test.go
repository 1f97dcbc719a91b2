package fleet_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

// TestRebootOf tests each phase and its beginning.
func TestRebootOf(t *testing.T) {
	hooks := Annotated(v1alpha1.AnnotationHooks, protocol.HookPhase{
		Policy: "w", Seq: 7, BootID: "n1-boot-1", Stage: v1alpha1.HooksBefore, Hooks: []v1alpha1.AnnotationKey{"example.com/ok"}, At: Ago(50 * time.Second),
	}.String())
	hooked := Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/ok"}}
	})
	rebooting := Progressed(7, protocol.PhaseRebooting, 40*time.Second)
	cases := map[string]struct {
		policy []func(*v1alpha1.RebootPolicy)
		node   []func(*corev1.Node)
		phase  underway.RebootState
		ago    time.Duration
	}{
		"only in the ledger": {phase: underway.StateGranted, ago: time.Minute},
		"published":          {node: []func(*corev1.Node){Granted("w", 7, 30*time.Second)}, phase: underway.StateGranted, ago: time.Minute},
		"hooks":              {policy: []func(*v1alpha1.RebootPolicy){hooked}, node: []func(*corev1.Node){hooks}, phase: underway.StateHooks, ago: 50 * time.Second},
		"hooks that are about to begin": {
			policy: []func(*v1alpha1.RebootPolicy){hooked}, node: []func(*corev1.Node){Annotated(v1alpha1.AnnotationHooks, `{"seq":7,"stage":"Before"}`)},
			phase: underway.StateHooks, ago: time.Minute,
		},
		"an earlier grant that is over": {node: []func(*corev1.Node){Progressed(6, protocol.PhaseAborted, time.Hour)}, phase: underway.StateGranted, ago: time.Minute},
		"draining": {
			node: []func(*corev1.Node){Granted("w", 7, time.Minute), Progressed(7, protocol.PhaseDraining, 50*time.Second)}, phase: underway.StateDraining, ago: 50 * time.Second,
		},
		"rebooting":             {node: []func(*corev1.Node){Granted("w", 7, time.Minute), rebooting}, phase: underway.StateRebooting, ago: 40 * time.Second},
		"booted, and not Ready": {node: []func(*corev1.Node){Granted("w", 7, time.Minute), rebooting, Booted(9 * time.Second), NotReady}, phase: underway.StateBooted, ago: 40 * time.Second},
		"Ready, and no agent has reported": {
			node: []func(*corev1.Node){
				Granted("w", 7, time.Minute), rebooting, Booted(9 * time.Second),
				Condition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, "Rebooting", 40*time.Second),
			}, phase: underway.StateBooted, ago: 40 * time.Second,
		},
		"settling since the agent's report": {
			node: []func(*corev1.Node){
				Granted("w", 7, time.Minute), rebooting, Booted(9 * time.Second),
				Condition(corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, "RebootSucceeded", 5*time.Second),
			}, phase: underway.StateSettling, ago: 5 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Policy("w", append(tc.policy, Holds("n1", 7, time.Minute))...)
			n := Node("n1", "w", append([]func(*corev1.Node){Needs(time.Hour)}, tc.node...)...)
			f := fleet.New([]v1alpha1.RebootPolicy{p}, []corev1.Node{n}, Now)
			reboot := f.RebootOf(f.Plan(f.Policy("w")).Reboots[0])
			if got, want := []any{reboot.Phase, Now.Sub(reboot.Since)}, []any{tc.phase, tc.ago}; !cmp.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestRebootOf_Draining tests the agent's report about its drain, and when drain.timeout ends it.
func TestRebootOf_Draining(t *testing.T) {
	const waits, volumes = "The drain waits for default/db-0 (PodDisruptionBudget db).", "The pods have left. The reboot waits for disk."
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, message string) func(*corev1.Node) {
		return Condition(kind, status, "why", time.Minute, message)
	}
	began := 2 * time.Minute
	type drain struct {
		report string
		left   time.Duration
	}
	cases := map[string]struct {
		node []func(*corev1.Node)
		past time.Duration
		want drain
	}{
		"no report yet":              {want: drain{"", 18 * time.Minute}},
		"pods are in the way":        {node: []func(*corev1.Node){condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, waits)}, want: drain{waits, 18 * time.Minute}},
		"the report of an old drain": {node: []func(*corev1.Node){condition(corev1.NodeDrainInProgress, corev1.ConditionFalse, waits)}, want: drain{"", 18 * time.Minute}},
		"the pods have left": {node: []func(*corev1.Node){
			condition(corev1.NodeDrainInProgress, corev1.ConditionFalse, volumes), condition(corev1.NodeDrained, corev1.ConditionTrue, volumes),
		}, want: drain{volumes, 0}},
		"the pods had left, and an agent that has restarted drains again": {node: []func(*corev1.Node){
			condition(corev1.NodeDrained, corev1.ConditionTrue, volumes), condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, waits),
		}, want: drain{waits, 18 * time.Minute}},
		"overdue: the last report stays": {
			node: []func(*corev1.Node){condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, waits)}, past: time.Hour, want: drain{waits, 0},
		},
		"past drain.timeout, and not yet overdue": {past: 19 * time.Minute, want: drain{"", -time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := Node("n1", "w", append(tc.node, Needs(time.Hour), Granted("w", 7, began), Progressed(7, protocol.PhaseDraining, began))...)
			f := fleet.New([]v1alpha1.RebootPolicy{Policy("w", Holds("n1", 7, began))}, []corev1.Node{n}, Now.Add(tc.past))
			reboot := f.RebootOf(f.Plan(f.Policy("w")).Reboots[0])
			got := drain{report: reboot.Drain}
			if !reboot.DrainUntil.IsZero() {
				got.left = reboot.DrainUntil.Sub(f.Now)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
	gone := Node("n1", "w", condition(corev1.NodeDrained, corev1.ConditionTrue, volumes), Granted("w", 7, began), Progressed(7, protocol.PhaseRebooting, time.Minute))
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w", Holds("n1", 7, began))}, []corev1.Node{gone}, Now)
	if reboot := f.RebootOf(f.Plan(f.Policy("w")).Reboots[0]); reboot.Drain != "" || !reboot.DrainUntil.IsZero() {
		t.Errorf("a node that reboots still drains: %+v", reboot)
	}
}

// TestFleet tests lookups by name, and which nodes no policy governs.
func TestFleet(t *testing.T) {
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w"), Policy("a", Weeknights)}, []corev1.Node{Node("n2", "w"), Node("n1", "none", Needs(0))}, Now)
	if f.Policy("nowhere") != nil || f.Policy("w").Name != "w" {
		t.Error("policies are found by name")
	}
	if object, _ := f.Node("nowhere"); object != nil {
		t.Error("a node that is not there")
	}
	for _, name := range []string{"n1", "n2"} {
		if object, view := f.Node(name); object.Name != name || view.Name != name {
			t.Error("nodes are found by name")
		}
	}
	var governed []string
	for _, n := range f.Governed("w") {
		governed = append(governed, n.Name)
	}
	ungoverned := f.Ungoverned()
	if diff := cmp.Diff([]any{[]string{"n2"}, 1, v1alpha1.ReasonNoPolicy}, []any{governed, len(ungoverned), ungoverned[0].Reason}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFleet_Silent tests that only nodes on which an agent could run count as silent.
func TestFleet_Silent(t *testing.T) {
	silent := func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }
	windows := func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = string(corev1.Windows) }
	f := fleet.New(nil, []corev1.Node{Node("n1", "w"), Node("n2", "w", silent), Node("n3", "w", silent, windows)}, Now)
	if got := f.Silent(); got != 1 {
		t.Errorf("%d nodes are silent, want 1", got)
	}
}

// TestFleet_Unknown tests that nodes whose agents cannot report now count, unless it is known that
// they need a reboot or they are being rebooted.
func TestFleet_Unknown(t *testing.T) {
	silent := func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }
	windows := func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = string(corev1.Windows) }
	policy := Policy("w", AgentsMissing("gone"), Holds("rebooting", 7, time.Minute))
	f := fleet.New([]v1alpha1.RebootPolicy{policy}, []corev1.Node{
		Node("well", "w"), Node("gone", "w"), Node("down", "w", NotReady), Node("down-too", "w", NotReady), Node("other", "none", NotReady),
		Node("needs", "w", NotReady, Needs(time.Hour)), Node("windows", "w", NotReady, silent, windows),
		Node("rebooting", "w", NotReady, Granted("w", 7, time.Minute), Progressed(7, protocol.PhaseRebooting, time.Minute)),
	}, Now)
	if got := f.Unknown(&policy); got != 3 {
		t.Errorf("%d nodes are unknown, want gone, down and down-too", got)
	}
	f = fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{Node("silent", "w", silent)}, Now)
	if got := f.Unknown(f.Policy("w")); got != 1 {
		t.Errorf("%d nodes are unknown, want the silent one", got)
	}
}

// TestFleet_Next tests that the earliest change of any policy counts, wherever it is in the list.
func TestFleet_Next(t *testing.T) {
	early := Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Windows = []v1alpha1.Window{{Name: "early", Start: "18:00", Duration: v1alpha1.Duration{Duration: time.Hour}}}
	})
	for name, policies := range map[string][]v1alpha1.RebootPolicy{
		"first": {Policy("a", early), Policy("b", Weeknights), Policy("c")}, "last": {Policy("a"), Policy("b", Weeknights), Policy("c", early)},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := fleet.New(policies, nil, Now).Next(), time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC); !got.Equal(want) {
				t.Errorf("the next change is at %v, want %v", got, want)
			}
		})
	}
}

// TestFleet_Torn tests a grant that is in no ledger. The planner adopts it, but one watch may just
// be ahead.
func TestFleet_Torn(t *testing.T) {
	n := []corev1.Node{Node("n1", "w", Needs(time.Hour), Granted("w", 7, 0))}
	if f := fleet.New([]v1alpha1.RebootPolicy{Policy("w", Holds("n1", 7, 0))}, n, Now); f.Torn() {
		t.Error("the ledger has the grant")
	}
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, n, Now)
	if !f.Torn() {
		t.Error("the ledger has not the grant")
	}
	if e := plan.Explain(f.Snapshot(f.Policy("w")), "n1"); e.Reboot == nil || f.RebootOf(*e.Reboot).Phase != underway.StateGranted {
		t.Errorf("its reboot is in progress all the same: %+v", e)
	}
}
