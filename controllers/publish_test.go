package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A slot waits for only a few of the due markers, and the next pass continues with the rest.
func TestConverge_MarksGiveWayToASlotThatWaits(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	last := ""
	for i := 2 * slots; i < needy; i++ {
		last = serverNode(i, true, time.Time{}).Name
		change(t, s, last, unmark)
	}
	s.comeBack(t)
	s.pass(t)
	if most := 2 + conditionsAtLeast; len(s.written) > most || s.published.IsZero() {
		t.Errorf("%d Nodes were written until the grant was published, want at most %d: %v", len(s.written), most, s.written)
	}
	for range needy / conditionsPerPass {
		s.pass(t)
	}
	if taints := s.node(last).Spec.Taints; len(taints) != 1 {
		t.Errorf("the last one in the line has taints %v", taints)
	}
}

// A grant is published from the cache, and after a conflict from a live read of the Node.
func TestPublish_ReadsTheNodeOnlyIfTheCacheIsBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		reads  int // live reads of the node with the grant, before it is published and before it is cancelled
		want   protocol.GrantState
	}{
		"the cache is not behind":       {want: protocol.GrantActive},
		"something else has changed":    {change: func(n *corev1.Node) { n.Labels["example.com/a"] = "b" }, reads: 1, want: protocol.GrantActive},
		"it was cordoned":               {change: func(n *corev1.Node) { n.Spec.Unschedulable = true }, reads: 1, want: protocol.GrantActive},
		"it needs no reboot any more":   {change: func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }, reads: 2, want: protocol.GrantCancelled},
		"somebody else has rebooted it": {change: func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" }, reads: 2, want: protocol.GrantCancelled},
		"an administrator has paused it": {
			change: func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"} }, reads: 2, want: protocol.GrantCancelled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			next := serverNode(slots, true, s.reconciler.Clock.Now()).Name // the first node without a slot
			if tc.change != nil {
				s.lag(next, s.node(next))
				change(t, s, next, tc.change)
			}
			back := s.policy().Status.Grants[0].Node
			s.comeBack(t)
			s.pass(t)
			if diff := cmp.Diff(append([]string{back}, slices.Repeat([]string{next}, tc.reads)...), s.read); diff != "" {
				t.Errorf("read from the API server (-want +got):\n%s", diff)
			}
			grant, err := protocol.ParseGrant(s.node(next).Annotations)
			if err != nil || grant == nil || grant.State != tc.want {
				t.Errorf("the grant is %+v (%v), want it %s", grant, err, tc.want)
			}
		})
	}
}

// A grant that somebody removes during its reboot is written again, because the reboot could not be
// finished without it. It does not count as a new one.
func TestPublish_AGrantRemovedDuringItsRebootIsNotNew(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	e := s.policy().Status.Grants[0]
	s.progress(t, e, protocol.PhaseRebooting)
	change(t, s, e.Node, ungrant)
	recorder := events.NewFakeRecorder(10)
	s.reconciler.announce.recorder = recorder
	waited := s.reconciler.announce.measured(t, "reboot_duration_seconds", "phase")["waiting"]
	s.pass(t)
	if grant, err := protocol.ParseGrant(s.node(e.Node).Annotations); err != nil || grant == nil || grant.Seq != e.Seq || grant.State != protocol.GrantActive {
		t.Errorf("the grant is %+v (%v)", grant, err)
	}
	if got := emitted(recorder); len(got) > 0 || s.reconciler.announce.measured(t, "reboot_duration_seconds", "phase")["waiting"] != waited {
		t.Errorf("events %v, or it counts as one more that waited", got)
	}
}

// A paused policy grants nothing, even if the cache does not show the pause yet or its grants are
// in another policy's ledger.
func TestConverge_GrantsNothingByAnOldPolicy(t *testing.T) {
	for _, shares := range []bool{false, true} {
		t.Run(fmt.Sprintf("it shares its limit: %t", shares), func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			if shares {
				share(t, s)
			}
			change(t, s, workers, holidays)
			s.pass(t)
			if remaining := s.ledger(); len(remaining) > 0 {
				t.Fatalf("the ledger has %v", remaining)
			}
			change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = nil })
			s.old = s.policy()
			change(t, s, workers, holidays)
			s.pass(t)
			if granted := s.ledger(); len(granted) > 0 {
				t.Errorf("granted %v", granted)
			}
		})
	}
}

// While the cache is behind the policy, the nodes must not be listed every second.
func TestReconcile_WaitsLongerWhileTheCacheStaysBehind(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	edit := func(to string) {
		s.old = s.policy()
		change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Labels = map[string]string{"example.com/edit": to} })
		s.comeBack(t)
	}
	edit("1")
	reconcile := func() time.Duration {
		result, err := s.reconciler.Reconcile(t.Context(), request(workers))
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	for _, want := range []time.Duration{conflictPause, 2 * listPause, 4 * listPause} {
		if got := reconcile(); got != want {
			t.Errorf("the next pass comes after %s, want %s", got, want)
		}
	}
	s.old = nil
	s.pass(t)
	edit("2")
	if got := reconcile(); got != conflictPause {
		t.Errorf("after the cache had caught up, the next pass comes after %s", got)
	}
}
