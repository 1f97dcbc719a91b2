package controllers

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// undoes installs a mutating admission policy that resets annotations of a node that the manager
// writes.
func (s *server) undoes(name string, keys ...string) {
	before := maps.Clone(s.node(name).Annotations)
	s.store.Mutate(func(by string, _, object client.Object) {
		if by != v1alpha1.FieldOwnerManager || object.GetName() != name {
			return
		}
		annotations := maps.Clone(object.GetAnnotations())
		for _, key := range keys {
			if value, exists := before[key]; exists {
				annotations[key] = value
			} else {
				delete(annotations, key)
			}
		}
		object.SetAnnotations(annotations)
	})
}

// writesOf counts the writes to an object from now on.
func (s *server) writesOf(name string) *int {
	writes := new(int)
	s.fault = func(written string) error {
		if written == name {
			*writes++
		}
		return nil
	}
	return writes
}

// A grant that does not stay on its Node is written once a minute, and its slot is returned after
// five minutes. Other nodes are not affected.
func TestReconcile_AGrantThatDoesNotStayGivesItsSlotBack(t *testing.T) {
	for name, how := range map[string]struct {
		policy bool // an admission policy, or else a controller that reverts the write later
		why    string
	}{
		"an admission policy drops it": {true, "the API server accepted the write and did not keep annotation reboot-operator.io/grant"},
		"a controller removes it":      {false, "another program removed annotation reboot-operator.io/grant after it was written"},
	} {
		t.Run(name, func(t *testing.T) {
			now := testclock.NewFakePassiveClock(time.Now())
			s := newServer(t, 2*needy, now)
			e := s.policy().Status.Grants[0]
			s.due(t, dueGrant)
			if how.policy {
				change(t, s, e.Node, func(node *corev1.Node) {
					maps.DeleteFunc(node.Annotations, func(key, _ string) bool { return record.IsAutoscalerAnnotation(key) })
				})
				s.undoes(e.Node, v1alpha1.AnnotationGrant)
			}
			writes, passes := s.writesOf(e.Node), 0
			for passed := time.Duration(0); passed < publishTimeout; passed += 10 * time.Second {
				_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
				if _, shown := s.node(e.Node).Annotations[v1alpha1.AnnotationGrant]; shown && !how.policy {
					change(t, s, e.Node, ungrant)
				}
				now.SetTime(now.Now().Add(10 * time.Second))
				passes++
			}
			_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
			if got := s.reported(t); s.seqOf(e.Node) == e.Seq && (got.Reason != v1alpha1.ReasonNodeWriteRefused || !strings.Contains(got.Message, how.why)) {
				t.Errorf("reported: %+v", got)
			}
			if most := 2*int(publishTimeout/refusedPause) + 3; *writes > most { // the grant, and the removal of its markers
				t.Errorf("the Node was written %d times in %d passes, want at most %d", *writes, passes, most)
			}
			now.SetTime(now.Now().Add(refusedPause + time.Second))
			_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
			if s.seqOf(e.Node) == e.Seq {
				t.Error("the slot is kept")
			}
			if past := s.policy().Status.History; len(past) == 0 || past[len(past)-1].Result != v1alpha1.RebootWithdrawn ||
				!strings.Contains(past[len(past)-1].Message, how.why) {
				t.Errorf("the history is %+v", past)
			}
			for key := range s.node(e.Node).Annotations {
				if how.policy && record.IsAutoscalerAnnotation(key) {
					t.Errorf("annotation %s stays on the Node", key)
				}
			}
			if granted := len(s.policy().Status.Grants); granted != slots {
				t.Errorf("%d nodes hold a slot, want %d: the next one has it", granted, slots)
			}
		})
	}
}

// publishTimeout is the time-out of the planner.
const publishTimeout = 5 * time.Minute

// For each step of a granted reboot, the policy reports that the write is undone, and the Node is
// written once a minute.
func TestReconcile_ReportsAGrantedRebootWhoseWriteIsUndone(t *testing.T) {
	for name, key := range map[string]string{
		dueEnd: v1alpha1.AnnotationGrant, dueCancelled: v1alpha1.AnnotationGrant, dueHooks: v1alpha1.AnnotationHooks,
	} {
		t.Run(name, func(t *testing.T) {
			now := testclock.NewFakePassiveClock(time.Now())
			s := newServer(t, 2*needy, now)
			e := s.policy().Status.Grants[0]
			s.due(t, name)
			s.undoes(e.Node, key)
			writes := s.writesOf(e.Node)
			for range 5 {
				_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
				now.SetTime(now.Now().Add(time.Second))
			}
			if *writes != 1 {
				t.Errorf("the Node was written %d times within seconds, want once", *writes)
			}
			if got := s.reported(t); got.Reason != v1alpha1.ReasonNodeWriteRefused || !strings.Contains(got.Message, "did not keep annotation "+key) {
				t.Errorf("reported: %+v", got)
			}
			s.store.Mutate(nil)
			now.SetTime(now.Now().Add(refusedPause))
			_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
			if got := s.reported(t); got.Reason == v1alpha1.ReasonNodeWriteRefused {
				t.Errorf("once the write stays, it is reported: %+v", got)
			}
		})
	}
}

// A grant counts as ended even if the cordon stays. An event reports the cordon.
func TestReconcile_ReportsACordonThatStays(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	recorder := events.NewFakeRecorder(100)
	s.reconciler.announce.recorder = recorder
	e := s.policy().Status.Grants[0]
	apiserver.Change(s.store, e.Node, v1alpha1.FieldOwnerAgent, func(node *corev1.Node) {
		p := protocol.Progress{Seq: e.Seq, Phase: protocol.PhaseRebooting, BootID: e.BootID, At: e.At, Cordoned: true}
		node.Annotations[v1alpha1.AnnotationProgress], node.Spec.Unschedulable, node.Status.NodeInfo.BootID = p.String(), true, "another"
	})
	s.store.Mutate(func(by string, _, object client.Object) {
		if node, ok := object.(*corev1.Node); ok && by == v1alpha1.FieldOwnerManager && node.Name == e.Node {
			node.Spec.Unschedulable = true
		}
	})
	s.pass(t)
	if s.seqOf(e.Node) == e.Seq {
		t.Error("the reboot is not over")
	}
	got := emitted(recorder)
	if !slices.Contains(got, "Warning NodeWriteRefused") || slices.Contains(got, "Normal Uncordoned") {
		t.Errorf("events %v", got)
	}
}

// A grant that another program removes in its reboot is written again with the taints of the node, so
// that a permanent one does not count as a startup taint.
func TestReconcile_AGrantThatIsWrittenAgainKnowsTheTaintsBeforeTheBoot(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	e := s.policy().Status.Grants[0]
	s.progress(t, e, protocol.PhaseRebooting)
	change(t, s, e.Node, func(node *corev1.Node) {
		ungrant(node)
		node.Spec.Taints = []corev1.Taint{{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	})
	s.pass(t)
	grant, err := protocol.ParseGrant(s.node(e.Node).Annotations)
	if err != nil || grant == nil || !slices.Equal(grant.Taints, []string{"pool:NoSchedule"}) {
		t.Errorf("%+v, %v", grant, err)
	}
}

// A condition that is undone is written once a minute. Other nodes still get theirs, and an event
// names the node.
func TestReconcile_AConditionThatIsUndoneIsWrittenOnceAMinute(t *testing.T) {
	now := testclock.NewFakePassiveClock(time.Now())
	s := newServer(t, 2*needy, now)
	recorder := events.NewFakeRecorder(1000)
	s.reconciler.announce.recorder = recorder
	waits, undone := serverNode(2*slots, true, now.Now()).Name, 0
	s.store.Mutate(func(by string, _, object client.Object) {
		node, ok := object.(*corev1.Node)
		if !ok || by != v1alpha1.FieldOwnerManager || node.Name != waits {
			return
		}
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			paused := c.Type == v1alpha1.NodeRebootPermitted && c.Reason == string(v1alpha1.ReasonPaused)
			if paused {
				undone++
			}
			return paused
		})
	})
	change(t, s, workers, holidays)
	for range 3 * needy / conditionsPerPass {
		_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
	}
	if undone != 1 {
		t.Errorf("the condition was written %d times at once, want once", undone)
	}
	if got := emitted(recorder); !slices.Contains(got, "Warning NodeWriteRefused") {
		t.Errorf("events %v", got)
	}
	if paused := s.paused(); paused != needy-1 {
		t.Errorf("%d nodes show that their policy is paused, want all but one", paused)
	}
}

// If the API server accepts a ledger but does not keep it, nothing is granted, and the ledger is
// not written again in the same pass.
func TestReconcile_ALedgerThatIsUndoneGrantsNothing(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	recorder := events.NewFakeRecorder(1000)
	s.reconciler.announce.recorder = recorder
	before := s.policy().Status.Grants
	s.comeBack(t)
	s.store.Mutate(func(by string, _, object client.Object) {
		if policy, ok := object.(*v1alpha1.RebootPolicy); ok && by == v1alpha1.FieldOwnerManager {
			policy.Status.Grants = before
		}
	})
	writes := s.writesOf(workers)
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); !nodepatch.IsUndone(err) {
		t.Errorf("the pass ends with %v", err)
	}
	if *writes != 1 || !s.published.IsZero() {
		t.Errorf("the policy was written %d times, want once; a grant was published: %t", *writes, !s.published.IsZero())
	}
	if diff := cmp.Diff([]string{"Warning PolicyWriteRefused"}, slices.DeleteFunc(emitted(recorder), func(e string) bool { return !strings.HasPrefix(e, "Warning") })); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
