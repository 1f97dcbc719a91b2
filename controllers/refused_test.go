package controllers

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

// always makes each write to an object fail.
func always(name string, err error) func(string) error {
	return func(written string) error {
		if written == name {
			return err
		}
		return nil
	}
}

// refusal is the error of a webhook that refuses a write of a Node.
func refusal(node string) error {
	return apierrors.NewForbidden(corev1.Resource("nodes"), node, errors.New("a webhook refuses"))
}

// once makes one write to an object fail.
func once(name string, err error) func(string) error {
	return func(written string) error {
		if written != name {
			return nil
		}
		defer func() { err = nil }()
		return err
	}
}

// outrun changes an object just before each of the manager's next writes to it, a number of times.
func outrun[T client.Object](t *testing.T, s *server, name string, often int, how func(T)) func(string) error {
	t.Helper()
	return func(written string) error {
		if written == name && often > 0 {
			often--
			change(t, s, name, how)
		}
		return nil
	}
}

// A write about a grant that conflicts with a heartbeat of the kubelet is repeated at once.
func TestReconcile_AForeignWriteCostsNoWait(t *testing.T) {
	for _, due := range []string{dueGrant, dueEnd, dueCancelled, dueHooks} {
		t.Run(due, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			e := s.policy().Status.Grants[0]
			s.due(t, due)
			before := s.node(e.Node).Annotations
			s.fault = outrun(t, s, e.Node, conflictTries, beat)
			s.pass(t)
			after := s.node(e.Node).Annotations
			if after[v1alpha1.AnnotationGrant] == before[v1alpha1.AnnotationGrant] && after[v1alpha1.AnnotationHooks] == before[v1alpha1.AnnotationHooks] {
				t.Error("the pass did not write what was due")
			}
		})
	}
}

// After too many conflicts, the next pass comes soon. A write is valid only for the version that
// was read, and heartbeats do not cause events.
func TestReconcile_TriesAgainAfterAHeartbeat(t *testing.T) {
	for due, kept := range map[string]bool{dueEnd: false, dueCancelled: false, dueHooks: true} {
		t.Run(due, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			node := s.policy().Status.Grants[0].Node
			s.due(t, due)
			s.fault = outrun(t, s, node, conflictTries+1, beat)
			result, err := s.reconciler.Reconcile(t.Context(), request(workers))
			if err != nil || result.RequeueAfter != conflictPause {
				t.Errorf("the next pass comes after %s (%v), want %s", result.RequeueAfter, err, conflictPause)
			}
			s.pass(t)
			if e := s.policy().Status.Grants[0]; (e.Node == node) != kept {
				t.Errorf("the slot is kept: %t, want %t: %+v", e.Node == node, kept, e)
			}
		})
	}
}

// The message of a waiting node is updated even if the reason stays the same.
func TestReconcile_WritesAMessageThatChanges(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	waits := serverNode(2*slots, true, s.reconciler.Clock.Now()).Name
	for _, reason := range []string{"holidays", "audit"} {
		change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = &v1alpha1.Pause{Reason: reason} })
		for range 2 * needy / conditionsPerPass {
			s.pass(t)
		}
		if got, want := permittedOf(s.node(waits)).Message, "policy workers is paused: "+reason; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A Node that refuses writes delays neither other nodes nor the policy's status.
func TestReconcile_ARefusedNodeDelaysNoOther(t *testing.T) {
	waits := serverNode(2*slots, true, clock.RealClock{}.Now()).Name
	forbidden := refusal(waits)
	for name, tc := range map[string]struct {
		refuses func(*server) string
		lasts   bool // each pass tries again
		answer  error
	}{
		"the condition of a waiting node": {refuses: func(*server) string { return waits }, answer: forbidden},
		"putting a node back in service":  {refuses: func(s *server) string { return s.policy().Status.Grants[0].Node }, lasts: true, answer: forbidden},
		"a write whose webhook fails":     {refuses: func(*server) string { return waits }, answer: webhookDown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			refuses := tc.refuses(s)
			s.comeBack(t)
			s.fault = always(refuses, tc.answer)
			change(t, s, workers, holidays)
			result, err := s.reconciler.Reconcile(t.Context(), request(workers))
			if err != nil || result.RequeueAfter != conditionsPause {
				t.Errorf("others are reported after %s (%v), want %s", result.RequeueAfter, err, conditionsPause)
			}
			for range 2 * needy / conditionsPerPass {
				result, err = s.reconciler.Reconcile(t.Context(), request(workers))
			}
			again := apierrors.IsForbidden(err) || result.RequeueAfter > 0 && result.RequeueAfter <= errorPauseMax
			if tc.lasts && !again {
				t.Errorf("once all others are reported, the next pass comes after %s (%v)", result.RequeueAfter, err)
			}
			var untold []string
			for i := range needy {
				node := s.node(serverNode(i, true, s.reconciler.Clock.Now()).Name)
				if c := permittedOf(node); s.seqOf(node.Name) == 0 && (c == nil || c.Reason != string(v1alpha1.ReasonPaused)) {
					untold = append(untold, node.Name)
				}
			}
			want := []string{refuses}
			if refuses != waits {
				want = nil // the node keeps its slot
			}
			if diff := cmp.Diff(want, untold); diff != "" {
				t.Errorf("not reported that the policy is paused (-want +got):\n%s", diff)
			}
			if s.policy().Status.Window.State != v1alpha1.WindowPaused {
				t.Errorf("the status shows %s", s.policy().Status.Window.State)
			}
		})
	}
}

// webhookDown is the API server's error for a webhook that does not answer.
var webhookDown = apierrors.NewInternalError(errors.New(`failed calling webhook "nodes.example.com": failed to call webhook: connection refused`))

// If the policy's status cannot be written, Nodes still can: waiting nodes show their reason, and
// so do the metrics.
func TestReconcile_AStatusThatIsRefusedKeepsNoNodeWaiting(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	for _, e := range s.policy().Status.Grants {
		s.progress(t, e, protocol.PhaseDraining)
	}
	s.fault = always(workers, apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("rebootpolicies").GroupResource(), workers, errors.New("no right to its status")))
	change(t, s, workers, holidays)
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err == nil {
		t.Error("the pass ends as if all were reported")
	}
	if paused := s.paused(); paused != conditionsPerPass {
		t.Errorf("%d nodes show that their policy is paused, want %d of a pass", paused, conditionsPerPass)
	}
	if blocked := s.reconciler.announce.measured(t, "blocked_nodes", "reason"); blocked[string(v1alpha1.ReasonPaused)] == 0 {
		t.Errorf("the metrics show %v", blocked)
	}
}

// If the ledger cannot be written although a grant is due, the other nodes still show why they
// wait.
func TestReconcile_ALedgerThatIsRefusedKeepsNoNodeWaiting(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	for _, e := range s.policy().Status.Grants {
		s.progress(t, e, protocol.PhaseDraining)
	}
	s.fault = always(workers, apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("rebootpolicies").GroupResource(), workers, errors.New("no right to its status")))
	change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(slots + 1)) })
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err == nil {
		t.Error("the pass ends as if all were reported")
	}
	if shown := s.waiting("at most 11 of the nodes"); shown != conditionsPerPass {
		t.Errorf("%d nodes show the limit of now, want %d of a pass", shown, conditionsPerPass)
	}
}

// If no Node can be written, the policy's status still can, because nothing else shows what
// happens.
func TestReconcile_NodesThatCannotBeWrittenKeepNoStatusWaiting(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	s.fault = func(written string) error {
		if written == workers {
			return nil
		}
		return apierrors.NewTooManyRequests("too many writes of Nodes", 1)
	}
	change(t, s, workers, holidays)
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err == nil {
		t.Error("the pass ends as if all were reported")
	}
	if s.policy().Status.Window.State != v1alpha1.WindowPaused {
		t.Errorf("the status shows %s", s.policy().Status.Window.State)
	}
}

// A policy that refuses its finalizer gets no new entries and begins no run. Granted reboots
// continue to their end, the status shows them, and the refusal is reported.
func TestReconcile_APolicyThatTakesNoFinalizerKeepsNoRebootWaiting(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("rebootpolicies").GroupResource(), workers, errors.New("a webhook refuses"))
	for name, tc := range map[string]struct {
		edit    func(*v1alpha1.RebootPolicy)
		window  v1alpha1.WindowState
		entries int
	}{
		"a grant is due": {func(*v1alpha1.RebootPolicy) {}, v1alpha1.WindowAlways, slots},
		"a run begins": {func(p *v1alpha1.RebootPolicy) {
			p.Spec.Hooks = &v1alpha1.Hooks{RunBefore: []v1alpha1.AnnotationKey{"example.com/ok"}}
		}, v1alpha1.WindowAlways, slots},
		"the policy is paused, which ends attempts that have not begun": {holidays, v1alpha1.WindowPaused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			back, given := s.ledger()[0], s.policy().Status.Seq
			s.comeBack(t)
			change(t, s, workers, func(p *v1alpha1.RebootPolicy) {
				p.Finalizers = nil
				tc.edit(p)
			})
			s.fault = once(workers, forbidden)
			_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
			r, policy := protocol.RecordOf(s.node(back.Node)), s.policy()
			if !r.Finished(back.Seq) || len(policy.Finalizers) > 0 {
				t.Errorf("the grant is %+v, finalizers %v", r.Grant, policy.Finalizers)
			}
			// A grant and the begin of a run each use up a number.
			if status := policy.Status; status.Seq != given || len(status.Grants) != tc.entries || status.Window.State != tc.window {
				t.Errorf("number %d after %d, %d entries, the window is %s", status.Seq, given, len(status.Grants), status.Window.State)
			}
		})
	}
	t.Run("no write is due", func(t *testing.T) {
		s := newServer(t, 2*needy, clock.RealClock{})
		change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Finalizers = nil })
		s.fault = once(workers, forbidden)
		if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); !apierrors.IsForbidden(err) {
			t.Errorf("the pass ends with %v", err)
		}
	})
}

// A webhook that hangs makes a few writes of Nodes use up the time of a pass. After half of that
// time, the rest is reserved for ledger and status.
func TestReconcile_WritesOfNodesLeaveTimeForTheLedger(t *testing.T) {
	now := testclock.NewFakePassiveClock(time.Now())
	s := newServer(t, 2*needy, now)
	back := s.policy().Status.Grants[0].Node
	s.comeBack(t)
	s.fault = func(written string) error {
		if written == back {
			now.SetTime(now.Now().Add(reconcileTimeout / 2))
		}
		return nil
	}
	s.read, s.written, s.published = nil, nil, time.Time{}
	result, err := s.reconciler.Reconcile(t.Context(), request(workers))
	if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > listPause {
		t.Errorf("the next pass comes after %s (%v)", result.RequeueAfter, err)
	}
	if over := s.seqOf(back) == 0; len(s.policy().Status.Grants) != slots || !over || !s.published.IsZero() {
		t.Errorf("the slot was handed over: %t; a grant was published: %t", over, !s.published.IsZero())
	}
	s.fault = nil
	if s.pass(t); s.published.IsZero() {
		t.Error("the grant is not published in the next pass")
	}
}

// A Node whose writes hang comes first only once. After that the others come before it, no matter
// which has held its slot for longest.
func TestReconcile_ANodeThatHangsLetsOthersGoFirst(t *testing.T) {
	now := testclock.NewFakePassiveClock(time.Now())
	s := newServer(t, 2*needy, now)
	s.comeBack(t)
	hanging, other := s.policy().Status.Grants[0].Node, s.policy().Status.Grants[1]
	s.back(t, other)
	s.fault = func(written string) error {
		if written != hanging {
			return nil
		}
		now.SetTime(now.Now().Add(reconcileTimeout / 2))
		return webhookDown
	}
	for pass, want := range []bool{true, false} {
		if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err != nil {
			t.Fatal(err)
		}
		if holds := s.seqOf(other.Node) != 0; holds != want {
			t.Errorf("after pass %d the other node holds its slot: %t", pass+1, holds)
		}
	}
}

// A policy that is being deleted stays while a Node refuses to remove what the policy has set on
// it. An event reports that.
func TestReconcile_ReportsWhyADeletedPolicyStays(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	for _, e := range s.policy().Status.Grants {
		change(t, s, e.Node, ungrant)
	}
	change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Status.Grants, p.Status.Run = nil, nil })
	s.remove(t, s.policy())
	refuses := serverNode(2*slots, true, time.Now()).Name
	s.fault = always(refuses, refusal(refuses))
	recorder := events.NewFakeRecorder(100)
	s.reconciler.announce.recorder = recorder
	for range 2 * needy / conditionsPerPass {
		_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
	}
	if got := emitted(recorder); !slices.Contains(got, "Warning NodeWriteRefused") || len(s.policy().Finalizers) == 0 {
		t.Errorf("events %v, finalizers %v", got, s.policy().Finalizers)
	}
}

// A policy that is being deleted stays for a reboot that neither its ledger nor its selector covers
// any more, because nothing else would end it.
func TestReconcile_APolicyThatIsDeletedStaysForARebootThatItsLedgerHasLost(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	e := s.ledger()[0]
	s.progress(t, e, protocol.PhaseRebooting)
	change(t, s, workers, func(p *v1alpha1.RebootPolicy) {
		p.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"example.com/pool": "none"}}
		p.Status.Grants, p.Status.Run = nil, nil
	})
	s.remove(t, s.policy())
	passes := func() {
		for range 2 * needy / conditionsPerPass {
			s.pass(t)
		}
	}
	passes()
	if s.policy() == nil {
		t.Fatal("the policy is gone in mid-reboot")
	}
	change(t, s, e.Node, func(node *corev1.Node) { node.Status.NodeInfo.BootID = "another" })
	passes()
	if grant := protocol.RecordOf(s.node(e.Node)).Grant; s.policy() != nil || grant.State != protocol.GrantFinished {
		t.Errorf("policy %v, grant %v", s.policy(), grant)
	}
}

// A policy that was removed by force and created again in dry-run mode takes back the reboot that
// it has granted, and also stays for it.
func TestReconcile_APolicyThatOnlyReportsStaysForARebootThatItTakesBack(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	e := s.ledger()[0]
	s.progress(t, e, protocol.PhaseRebooting)
	change(t, s, workers, func(p *v1alpha1.RebootPolicy) {
		p.Finalizers, p.Spec.Mode, p.Status.Grants, p.Status.Run = nil, v1alpha1.ModeDryRun, nil, nil
	})
	for range 2 {
		s.pass(t)
	}
	s.remove(t, s.policy())
	if s.policy() == nil {
		t.Fatal("the policy is gone in mid-reboot")
	}
}

// reported holds a policy's report of its granted reboots, in its condition and in the metric.
type reported struct {
	Reason  v1alpha1.Reason
	Message string
	Refused float64
}

func (s *server) reported(t *testing.T) reported {
	t.Helper()
	c := meta.FindStatusCondition(s.policy().Status.Conditions, v1alpha1.ConditionProgressing)
	message, _, _ := strings.Cut(c.Message, "; unavailable: ")
	return reported{v1alpha1.Reason(c.Reason), message, s.reconciler.announce.measured(t, "nodes", "state")["node_write_refused"]}
}

// A refused write about a granted reboot is reported on the policy once, for as long as it is
// refused, with the message of the response. Conflicts and outages neither count as a refusal nor
// end one.
func TestReconcile_ReportsAGrantedRebootThatCannotBeWritten(t *testing.T) {
	for _, due := range []string{dueGrant, dueEnd, dueCancelled, dueHooks} {
		t.Run(due, func(t *testing.T) {
			now := testclock.NewFakePassiveClock(time.Now())
			s := newServer(t, 2*needy, now)
			recorder := events.NewFakeRecorder(100)
			s.reconciler.announce.recorder = recorder
			e := s.policy().Status.Grants[0]
			s.due(t, due)
			step := func(after time.Duration, err error, want reported, emits ...string) {
				t.Helper()
				s.fault = always(e.Node, err)
				now.SetTime(now.Now().Add(after))
				_, _ = s.reconciler.Reconcile(t.Context(), request(workers))
				if diff := cmp.Diff(want, s.reported(t)); diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
				var warnings []string
				for _, event := range emitted(recorder) {
					if strings.HasPrefix(event, corev1.EventTypeWarning) {
						warnings = append(warnings, event)
					}
				}
				if diff := cmp.Diff(emits, warnings); diff != "" {
					t.Errorf("%v: warnings (-want +got):\n%s", err, diff)
				}
			}
			fine := reported{Reason: v1alpha1.ReasonRebooting, Message: "10 of at most 10 reboots in progress"}
			written, since := func(t time.Time) string { return t.UTC().Format("Mon 2006-01-02 15:04:05 UTC") }, now.Now()
			refused := func(answer string) reported {
				keeps := "the node keeps its slot until the write is accepted or the Node is deleted"
				if due == dueGrant { // the grant was never visible
					keeps = "the grant will be withdrawn " + written(since.Add(5*time.Minute)) + ", which frees the slot"
				}
				return reported{Reason: v1alpha1.ReasonNodeWriteRefused, Refused: 1, Message: fmt.Sprintf(
					"node %s has held a slot since %s, and the API server refuses the manager's writes about its reboot: %s; %s; %s",
					e.Node, written(e.At.Time), answer, keeps, fine.Message)}
			}
			nodes := corev1.Resource("nodes")
			forbidden := func(why string) error { return apierrors.NewForbidden(nodes, e.Node, errors.New(why)) }
			first := refused(`nodes "` + e.Node + `" is forbidden: request 1`)

			step(0, apierrors.NewConflict(nodes, e.Node, errors.New("somebody was first")), fine)
			step(0, apierrors.NewInternalError(errors.New("etcd has no leader")), fine)
			step(0, apierrors.NewUnauthorized("the token has expired"), fine)
			step(0, forbidden("request 1"), first, "Warning NodeWriteRefused")
			step(time.Second, forbidden("request 2"), first)
			step(time.Second, apierrors.NewConflict(nodes, e.Node, errors.New("somebody was first")), first)
			step(time.Second, apierrors.NewInternalError(errors.New("etcd has no leader")), first)
			step(time.Minute, apierrors.NewBadRequest("request 3"), refused("request 3"))
			step(time.Minute, &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTeapot, Message: "request 4"}}, refused("request 4"))
			denied := `admission webhook "x" denied the request: request 5`
			step(time.Minute, &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTooManyRequests, Message: denied}}, refused(denied))
			step(time.Minute, webhookDown, refused(webhookDown.Error()))
			step(0, nil, fine)
			// The response to a write that succeeded in the end must not be reported for the next
			// one.
			change(t, s, e.Node, func(node *corev1.Node) { node.Annotations[v1alpha1.AnnotationPaused] = "again" })
			step(0, apierrors.NewConflict(nodes, e.Node, errors.New("somebody was first")), fine)
		})
	}
}

// Even if more Nodes refuse than a pass may write, they do not block the nodes behind them, because
// they are tried again only after a while.
func TestReconcile_ManyRefusedNodesDelayNoOther(t *testing.T) {
	now := testclock.NewFakePassiveClock(time.Now())
	s := newServer(t, 2*needy, now)
	refusing, asked := map[string]bool{}, 0
	for i := range 2 * conditionsPerPass {
		refusing[serverNode(slots+i, true, now.Now()).Name] = true
	}
	s.fault = func(written string) error {
		if !refusing[written] {
			return nil
		}
		asked++
		return refusal(written)
	}
	change(t, s, workers, holidays)
	explained := func() int {
		for range 2 * needy / conditionsPerPass {
			_, _ = s.reconciler.Reconcile(t.Context(), request(workers)) // some passes return the refusals
		}
		return s.paused()
	}
	if got, want := explained(), needy-len(refusing); got != want || asked > 2*len(refusing) {
		t.Errorf("%d nodes are reported, want %d; those that refuse were asked %d times", got, want, asked)
	}
	clear(refusing)
	now.SetTime(now.Now().Add(refusedPause))
	if got, want := explained(), needy; got != want {
		t.Errorf("%d nodes are reported once none refuses, want %d", got, want)
	}
}

// A new leader lists the Nodes live until its ledger has everything that they show, even if its
// first write failed.
func TestReconcile_ListsLiveUntilTheLedgerKnows(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	e := s.policy().Status.Grants[0]
	s.progress(t, e, protocol.PhaseDraining)
	behind := s.node(e.Node)
	ungrant(behind)
	s.lag(e.Node, behind)
	clear(s.reconciler.ledger.memories)
	change(t, s, workers, unledger)
	s.fault = once(workers, apierrors.NewInternalError(errors.New("etcd has no leader")))
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err == nil {
		t.Fatal("the status was written")
	}
	s.pass(t)
	if grants := s.policy().Status.Grants; len(grants) != slots || s.seqOf(e.Node) != e.Seq {
		t.Errorf("the ledger has %d entries, and that of %s is not one of them: %v", len(grants), e.Node, grants)
	}
}

// Heartbeats do not affect a grant that a ledger takes back, which needs only one read.
func TestConverge_AdoptsDuringHeartbeats(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	e := s.policy().Status.Grants[0]
	s.progress(t, e, protocol.PhaseDraining)
	change(t, s, workers, unledger)
	s.between = beat
	s.pass(t)
	if diff := cmp.Diff([]string{e.Node}, s.read); diff != "" {
		t.Errorf("read live (-want +got):\n%s", diff)
	}
	if r := protocol.RecordOf(s.node(e.Node)); !r.Holds(e) || r.Holds(v1alpha1.LedgerEntry{Seq: e.Seq + 1}) {
		t.Errorf("its grant is %+v", r.Grant)
	}
}

// If a Node without a policy refuses the write of that reason, the write is tried again.
func TestReconcile_ReportsThatAnUngovernedNodeRefuses(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	change(t, s, workers, func(p *v1alpha1.RebootPolicy) {
		p.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"example.com/pool": "none"}}
	})
	unmarked := serverNode(2*slots, true, s.reconciler.Clock.Now()).Name
	change(t, s, unmarked, unmark)
	s.fault = once(unmarked, refusal(unmarked))
	if _, err := s.reconciler.Reconcile(t.Context(), request("")); !apierrors.IsForbidden(err) {
		t.Errorf("the pass ends with %v", err)
	}
}

// A ledger that cannot be confirmed because a grant changes with each read is not written.
func TestConverge_WritesNoLedgerThatIsNotConfirmed(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	change(t, s, workers, unledger)
	s.between = func(node *corev1.Node) {
		grant, err := protocol.ParseGrant(node.Annotations)
		if err != nil {
			t.Fatal(err)
		}
		grant.Seq++
		node.Annotations[v1alpha1.AnnotationGrant] = grant.String()
	}
	before := s.policy().Status
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err == nil {
		t.Error("the pass came to an end")
	}
	if diff := cmp.Diff(before, s.policy().Status); diff != "" {
		t.Errorf("the status was written (-want +got):\n%s", diff)
	}
}

// After a conflict on the policy the next pass comes soon, but later if each pass lists all nodes.
func TestReconcile_PausesAfterALostRace(t *testing.T) {
	for name, tc := range map[string]struct {
		leads bool // whether this process has already completed a pass
		want  time.Duration
	}{
		"by the cache":   {leads: true, want: conflictPause},
		"by a live LIST": {want: listPause},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			s.reconciler.ledger.of(s.policy().UID).adopted = tc.leads
			s.comeBack(t)
			s.fault = outrun(t, s, workers, 1, holidays)
			result, err := s.reconciler.Reconcile(t.Context(), request(workers))
			if err != nil || result.RequeueAfter != tc.want {
				t.Errorf("the next pass comes after %s (%v), want %s", result.RequeueAfter, err, tc.want)
			}
		})
	}
}

// A Node that the cache has lost keeps its slot and does not delay others, whether or not the API
// server shows it.
func TestReconcile_ANodeMissingInTheCacheDelaysNoOther(t *testing.T) {
	for name, unread := range map[string]error{
		"the API server has it":            nil,
		"the API server does not show it":  apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("not this one")),
		"the API server cannot decode it ": apierrors.NewInternalError(errors.New("etcd has something else")),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			back, kept := s.policy().Status.Grants[0], s.policy().Status.Grants[1]
			s.comeBack(t)
			s.lag(kept.Node, nil)
			s.unread = always(kept.Node, unread)
			_, _ = s.reconciler.Reconcile(t.Context(), request(workers)) // the error of one Node is returned
			has := func(e v1alpha1.LedgerEntry) bool { return slices.Contains(s.policy().Status.Grants, e) }
			if grants := s.policy().Status.Grants; len(grants) != slots || has(back) || !has(kept) {
				t.Errorf("of %d entries, the one of the node that is back is kept: %t; the one of the node that is lost: %t", len(grants), has(back), has(kept))
			}
		})
	}
}

// An entry whose grant was withdrawn leaves the ledger only once its Node, read live after that,
// does not show the grant. A stopped leader may have published it, and the cache may not show that.
func TestConverge_LooksAtANodeBeforeItsSlotIsGivenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		published, unread bool
		kept              bool
		state             protocol.GrantState // of the grant on the Node
	}{
		"no agent has seen the grant":      {},
		"an agent may have seen the grant": {published: true, state: protocol.GrantCancelled},
		"the Node cannot be read live":     {unread: true, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			held := s.policy().Status.Grants[0]
			change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Status.Grants[0].WithdrawnAt = &held.At })
			published := s.node(held.Node).Annotations[v1alpha1.AnnotationGrant]
			change(t, s, held.Node, ungrant)
			if tc.published {
				s.lag(held.Node, s.node(held.Node))
				change(t, s, held.Node, func(node *corev1.Node) { node.Annotations[v1alpha1.AnnotationGrant] = published })
			}
			s.unread = func(string) error { return errIf(tc.unread) }
			if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err != nil && !tc.unread {
				t.Fatal(err)
			}
			if !slices.Contains(s.read, held.Node) {
				t.Errorf("read live: %v", s.read)
			}
			kept := s.seqOf(held.Node) == held.Seq
			grant, err := protocol.ParseGrant(s.node(held.Node).Annotations)
			if err != nil {
				t.Fatal(err)
			}
			state := protocol.GrantState("")
			if grant != nil {
				state = grant.State
			}
			if kept != tc.kept || state != tc.state {
				t.Errorf("kept: %t, the Node shows %q", kept, state)
			}
		})
	}
}

// A reboot that the cache shows as done is decided again by a live read. A node that is not Ready
// any more is not put back in service.
func TestConverge_FinishesByTheLiveNode(t *testing.T) {
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		s := newServer(t, 2*needy, clock.RealClock{})
		e := s.ledger()[0]
		s.back(t, e)
		s.between = func(node *corev1.Node) {
			for i := range node.Status.Conditions {
				if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
					c.Status = ready
				}
			}
		}
		s.pass(t)
		grant, err := protocol.ParseGrant(s.node(e.Node).Annotations)
		if err != nil {
			t.Fatal(err)
		}
		if finished := grant == nil || grant.State == protocol.GrantFinished; finished != (ready == corev1.ConditionTrue) {
			t.Errorf("live Ready is %s; the grant is finished: %t", ready, finished)
		}
	}
}

func errIf(fails bool) error {
	if fails {
		return apierrors.NewInternalError(errors.New("etcd has no leader"))
	}
	return nil
}

// Any reason that an agent gives for an abort must not stop a pass.
func TestConverge_AReasonOfANodeStopsNoPass(t *testing.T) {
	for _, reason := range []v1alpha1.Reason{v1alpha1.ReasonNodeGone, v1alpha1.ReasonNodeWriteRefused} {
		s := newServer(t, 2*needy, clock.RealClock{})
		e := s.policy().Status.Grants[0]
		aborted := protocol.Progress{Seq: e.Seq, Phase: protocol.PhaseAborted, BootID: e.BootID, Reason: reason, At: e.At}.String()
		change(t, s, e.Node, func(node *corev1.Node) { node.Annotations[v1alpha1.AnnotationProgress] = aborted })
		s.pass(t)
		if s.seqOf(e.Node) == e.Seq {
			t.Errorf("%s: the slot is kept", reason)
		}
	}
}

// paused returns the number of nodes that show that their policy is paused.
func (s *server) paused() int { return s.waiting("is paused") }

// waiting counts the nodes whose condition has a text in its message.
func (s *server) waiting(text string) (nodes int) {
	for _, node := range apiserver.ReadAll[*corev1.Node](s.store) {
		if c := permittedOf(node); c != nil && strings.Contains(c.Message, text) {
			nodes++
		}
	}
	return nodes
}

// permittedOf returns condition RebootPermitted, or nil.
func permittedOf(node *corev1.Node) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeRebootPermitted })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}
