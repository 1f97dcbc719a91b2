package gate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var start = time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)

// testServer is a server whose answers the test sends.
type testServer[G any] struct {
	asked   chan context.Context
	answers chan Answer
}

func (s *testServer[G]) Ask(ctx context.Context, _ G) Answer {
	s.asked <- ctx
	return <-s.answers
}

// bench is an evaluator with the test's server and clock.
type bench struct {
	*Evaluator

	t      *testing.T
	server *testServer[v1alpha1.PrometheusGate]
	clock  *clocktesting.FakePassiveClock
}

func newBench(t *testing.T) *bench {
	t.Helper()
	asked, answers := make(chan context.Context, 10), make(chan Answer)
	b := &bench{server: &testServer[v1alpha1.PrometheusGate]{asked, answers}, t: t, clock: clocktesting.NewFakePassiveClock(start)}
	b.Evaluator = NewEvaluator(b.server, &testServer[v1alpha1.ObjectGate]{asked, answers}, b.clock, Interval)
	return b
}

// at sets the clock.
func (b *bench) at(after time.Duration) { b.clock.SetTime(start.Add(after)) }

// answer makes the server answer the one query and waits until the answer has arrived.
func (b *bench) answer(a Answer) {
	b.t.Helper()
	select {
	case <-b.server.asked:
	case <-time.After(time.Minute):
		b.t.Fatal("nobody asks")
	}
	b.server.answers <- a
	isIdle := func(context.Context) (bool, error) { return !b.busy(), nil }
	if err := wait.PollUntilContextTimeout(b.t.Context(), time.Millisecond, time.Minute, true, isIdle); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.known {
		if k.asking {
			return true
		}
	}
	return false
}

func (b *bench) idle() {
	b.t.Helper()
	if b.busy() {
		b.t.Error("the server is asked")
	}
}

func (b *bench) ask(policy string, gates ...v1alpha1.PrometheusGate) time.Duration {
	b.t.Helper()
	return b.askAll(b.t.Context(), policy, v1alpha1.Gates{Prometheus: gates})
}

func (b *bench) askAll(ctx context.Context, name string, gates v1alpha1.Gates) time.Duration {
	policy := &v1alpha1.RebootPolicy{Spec: v1alpha1.RebootPolicySpec{Gates: &gates}}
	policy.Name = name
	return b.Ask(ctx, policy).Sub(start)
}

// answersOf returns the last answers of Prometheus gates.
func (b *bench) answersOf(gates ...v1alpha1.PrometheusGate) []v1alpha1.GateStatus {
	return b.Answers(&v1alpha1.RebootPolicySpec{Gates: &v1alpha1.Gates{Prometheus: gates}})
}

// wakes returns the woken policies without duplicates.
func (b *bench) wakes() []string {
	var names []string
	for len(b.Woken()) > 0 {
		names = append(names, (<-b.Woken()).Object.GetName())
	}
	slices.Sort(names)
	return names
}

func (b *bench) expect(want ...v1alpha1.GateStatus) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.answersOf(up)); diff != "" {
		b.t.Errorf("(-want +got):\n%s", diff)
	}
}

func status(state v1alpha1.GateState, message string, since time.Duration) v1alpha1.GateStatus {
	return v1alpha1.GateStatus{Name: "up", State: state, Message: message, At: metav1.NewTime(start.Add(since))}
}

var (
	up    = v1alpha1.PrometheusGate{Name: "up", URL: "http://prometheus", Query: "up == 0"}
	quiet = Answer{State: v1alpha1.GateClear}
)

func fires(series string) Answer {
	return Answer{State: v1alpha1.GateFiring, Message: series, blocking: []string{series}}
}

// TestEvaluator shows the answers, and the policies that are woken as answers arrive.
func TestEvaluator(t *testing.T) {
	b := newBench(t)
	b.expect()
	if next := b.ask("workers", up); next != Interval {
		t.Errorf("looks again after %s", next)
	}
	b.expect() // queried but not answered
	b.at(2 * time.Second)
	b.answer(quiet)
	b.expect(status(v1alpha1.GateClear, "", 2*time.Second))
	if diff := cmp.Diff([]string{"workers"}, b.wakes()); diff != "" {
		t.Error(diff)
	}

	b.at(Interval)
	b.ask("workers", up)
	b.expect(status(v1alpha1.GateClear, "", 2*time.Second)) // the last answer counts until the next one
	b.answer(quiet)
	b.expect(status(v1alpha1.GateClear, "", 2*time.Second))
	if woken := b.wakes(); len(woken) > 0 {
		t.Errorf("the same again wakes %v", woken)
	}

	b.at(2 * Interval)
	b.ask("workers", up)
	b.answer(fires("x"))
	b.expect(status(v1alpha1.GateFiring, "x", 2*Interval))
	if diff := cmp.Diff([]string{"workers"}, b.wakes()); diff != "" {
		t.Error(diff)
	}

	b.at(3 * Interval)
	b.ask("workers", up)
	b.answer(unreachable("no answer"))
	b.expect(status(v1alpha1.GateUnreachable, "no answer", 3*Interval)) // a failure counts at once
}

// TestEvaluator_AsksOnce shows one query per interval, however many policies and nodes wait.
func TestEvaluator_AsksOnce(t *testing.T) {
	b := newBench(t)
	same := up
	same.Name, same.FailurePolicy = "also-up", v1alpha1.ObstacleIgnore
	for range 100 {
		b.ask("workers", up)
		b.ask("databases", same)
	}
	b.answer(quiet)
	if diff := cmp.Diff([]string{"databases", "workers"}, b.wakes()); diff != "" {
		t.Error(diff)
	}
	b.at(Interval - 1)
	if next := b.ask("workers", up); next != Interval {
		t.Errorf("looks again after %s", next)
	}
	b.idle()
	b.at(Interval)
	b.ask("databases", same)
	b.answer(quiet)
}

// TestEvaluator_Questions shows that an answer belongs to an address, query and Secret, not to the
// name of a gate.
func TestEvaluator_Questions(t *testing.T) {
	b := newBench(t)
	b.ask("workers", up)
	b.answer(quiet)
	for name, edit := range map[string]func(*v1alpha1.PrometheusGate){
		"query":   func(g *v1alpha1.PrometheusGate) { g.Query = "up == 1" },
		"address": func(g *v1alpha1.PrometheusGate) { g.URL = "http://other" },
		"Secret":  func(g *v1alpha1.PrometheusGate) { g.SecretRef = &v1alpha1.SecretReference{Name: "other"} },
	} {
		t.Run(name, func(t *testing.T) {
			edited := up
			edit(&edited)
			if answers := b.answersOf(edited); answers != nil {
				t.Errorf("the answer to another question counts: %v", answers)
			}
			b.ask("workers", edited)
			b.answer(fires("x"))
			b.expect(status(v1alpha1.GateClear, "", 0))
		})
	}
}

// TestEvaluator_Stale shows that an answer that is not recent does not count, even if the clock is
// set.
func TestEvaluator_Stale(t *testing.T) {
	b := newBench(t)
	b.ask("workers", up)
	b.answer(quiet)
	b.at(2*Interval - 1)
	b.expect(status(v1alpha1.GateClear, "", 0))
	b.at(2 * Interval)
	b.expect()
	b.at(-time.Second) // the clock was set back, so the age of the answer is unknown
	b.expect()
	b.ask("workers", up)
	b.answer(quiet)
	b.expect(status(v1alpha1.GateClear, "", -time.Second))
}

// TestEvaluator_SlowServer shows that nobody waits for a server that does not answer, and that it
// is not queried again during that time. The answer is as old as the query, on which
// spec.concurrency.spacing depends.
func TestEvaluator_SlowServer(t *testing.T) {
	b := newBench(t)
	b.ask("workers", up)
	b.at(2*Interval - 1)
	b.ask("workers", up)
	b.answer(unreachable("no answer within 10s"))
	b.idle()
	b.expect(status(v1alpha1.GateUnreachable, "no answer within 10s", 2*Interval-1))
	b.at(2 * Interval)
	b.expect()
}

// TestEvaluator_BoundsEachQuestion shows that a query may outlive its reconcile, but lasts at most
// timeout.
func TestEvaluator_BoundsEachQuestion(t *testing.T) {
	b := newBench(t)
	reconcile, end := context.WithCancel(t.Context())
	b.askAll(reconcile, "workers", v1alpha1.Gates{Prometheus: []v1alpha1.PrometheusGate{up}})
	end()
	question := <-b.server.asked
	if question.Err() != nil {
		t.Error("the question ends with the reconcile")
	}
	if deadline, bounded := question.Deadline(); !bounded || time.Until(deadline) > timeout {
		t.Errorf("the question may take until %v (bounded %t), want at most %s", deadline, bounded, timeout)
	}
	b.server.answers <- quiet
}

// TestEvaluator_Forgets shows that unused answers do not use up memory.
func TestEvaluator_Forgets(t *testing.T) {
	b := newBench(t)
	b.ask("workers", up)
	b.answer(quiet)
	b.at(forgotten * Interval)
	other := up
	other.Query = "other"
	b.ask("workers", other)
	b.answer(quiet)
	if len(b.known) != 1 {
		t.Errorf("%d questions are remembered", len(b.known))
	}
}

// TestEvaluator_Objects shows that a gate of objects behaves like one of Prometheus, even if
// another gate has the same name.
func TestEvaluator_Objects(t *testing.T) {
	ceph := v1alpha1.ObjectGate{APIVersion: "ceph.rook.io/v1", Kind: "CephCluster", Namespace: "rook-ceph", Name: "a", Expression: "true"}
	other := ceph
	other.Namespace = "other"
	gates := v1alpha1.Gates{Objects: []v1alpha1.ObjectGate{ceph}}
	b := newBench(t)
	b.askAll(t.Context(), "workers", gates)
	b.askAll(t.Context(), "databases", gates)
	notReady := Answer{State: v1alpha1.GateNotReady, Message: "a is not ready", blocking: []string{"a", "b"}}
	b.answer(notReady)
	if diff := cmp.Diff([]string{"databases", "workers"}, b.wakes()); diff != "" {
		t.Error(diff)
	}
	expect := func(want ...v1alpha1.GateStatus) {
		t.Helper()
		both := v1alpha1.RebootPolicySpec{Gates: &v1alpha1.Gates{Objects: []v1alpha1.ObjectGate{ceph, other}}}
		if diff := cmp.Diff(want, b.Answers(&both)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	first := v1alpha1.GateStatus{Name: "CephCluster/a", State: v1alpha1.GateNotReady, Message: "a is not ready", At: metav1.NewTime(start)}
	expect(first)

	b.at(Interval)
	b.askAll(t.Context(), "workers", gates)
	b.answer(Answer{State: v1alpha1.GateNotReady, Message: "0 is not ready", blocking: []string{"0", "a"}})
	expect(first) // the named object is still not ready
	if woken := b.wakes(); len(woken) > 0 {
		t.Errorf("the same again wakes %v", woken)
	}
	b.askAll(t.Context(), "workers", v1alpha1.Gates{Objects: []v1alpha1.ObjectGate{ceph, other}})
	b.answer(Answer{State: v1alpha1.GateClear})
	expect(first, v1alpha1.GateStatus{Name: "CephCluster/a#2", State: v1alpha1.GateClear, At: metav1.NewTime(start.Add(Interval))})
}
