// Package gate asks Prometheus the queries of spec.gates.prometheus, and reads the objects of spec.gates.objects. Each is asked at most
// once per Interval, however many nodes and policies wait for it, and only while a node waits. No reconcile waits for it: the answer
// wakes the policies. Nothing here has to outlive a crash: a gate without an answer blocks until it has been asked again.
package gate

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	// Interval is how often a gate is asked while a node waits for it.
	Interval = 30 * time.Second
	// timeout is how long a server may take to answer.
	timeout = 10 * time.Second
	// fresh is for how many intervals an answer counts; an older one is as good as none.
	fresh = 2
	// forgotten is after how many intervals an unused answer is dropped.
	forgotten = 20
	// verdictsKept is how many expressions are remembered to compile or not.
	verdictsKept = 256
	// wakes is how many policies can be woken before the reconciler listens; what is lost is looked at an Interval later.
	wakes = 1024
)

// Asker asks one gate; it keeps to the context's deadline.
type Asker[G any] interface {
	Ask(ctx context.Context, gate G) Answer
}

// Evaluator remembers what gates reported last, and has them asked. A nil one asks nothing and has no answers.
type Evaluator struct {
	prometheus Asker[v1alpha1.PrometheusGate]
	objects    Asker[v1alpha1.ObjectGate]
	clock      clock.PassiveClock
	interval   time.Duration
	woken      chan event.GenericEvent
	verdicts   *lru.Cache // why expressions do not compile, by their text

	mu    sync.Mutex
	known map[target]*cachedAnswer
}

// target is all that an answer depends on: gates of several policies that agree in it are asked once.
type target struct{ url, query, secret, object string }

// question is one gate of a policy, as it is asked.
type question struct {
	name   string
	target target
	ask    func(ctx context.Context) Answer
}

// cachedAnswer is the last answer of one target, and who waits for the next one.
type cachedAnswer struct {
	answer Answer
	// since is when the target began to give it. asOf is when it was asked for the last answer, which is no newer than that. Zero: it has
	// not answered.
	since, asOf time.Time
	asked       time.Time
	asking      bool
	// policies wait for it, by name.
	policies map[string]bool
}

// NewEvaluator makes one that knows nothing yet and asks each gate once in an interval.
func NewEvaluator(
	prometheus Asker[v1alpha1.PrometheusGate], objects Asker[v1alpha1.ObjectGate], clock clock.PassiveClock, interval time.Duration,
) *Evaluator {
	return &Evaluator{
		prometheus: prometheus, objects: objects, clock: clock, interval: interval,
		verdicts: lru.New(verdictsKept), woken: make(chan event.GenericEvent, wakes), known: map[target]*cachedAnswer{},
	}
}

// Woken has an object with the name of a policy whenever one of its gates reports something else than before.
func (e *Evaluator) Woken() <-chan event.GenericEvent { return e.woken }

// Answers is what the gates of a policy reported last, without those that have not been asked, or not lately.
func (e *Evaluator) Answers(policy *v1alpha1.RebootPolicySpec) []v1alpha1.GateStatus {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	var answers []v1alpha1.GateStatus
	for _, q := range e.questions(policy) {
		k := e.known[q.target]
		if k != nil && e.counts(k, now) {
			answers = append(answers, v1alpha1.GateStatus{Name: q.name, State: k.answer.State, Message: k.answer.Message, At: metav1.NewTime(k.since)})
		}
	}
	return answers
}

// counts reports whether the last answer is fresh. The age of one of the future is unknown: the clock was set.
func (e *Evaluator) counts(k *cachedAnswer, now time.Time) bool {
	return !k.asOf.IsZero() && !k.asOf.After(now) && now.Sub(k.asOf) < fresh*e.interval
}

// Ask has those gates of a policy asked that are due, and returns at once with the instant at which the next one is. Zero: there are
// none. A policy that still waits then asks again.
func (e *Evaluator) Ask(ctx context.Context, policy *v1alpha1.RebootPolicy) time.Time {
	if e == nil {
		return time.Time{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	e.forget(now)
	var next time.Time
	for _, q := range e.questions(&policy.Spec) {
		k := e.known[q.target]
		if k == nil {
			k = &cachedAnswer{policies: map[string]bool{}}
			e.known[q.target] = k
		}
		k.policies[policy.Name] = true
		if due := k.asked.After(now) || now.Sub(k.asked) >= e.interval; due && !k.asking {
			k.asked, k.asking = now, true
			go e.ask(context.WithoutCancel(ctx), q, k)
		}
		next = timing.Earliest(next, k.asked.Add(e.interval))
	}
	return next
}

// ask outlives the reconcile that wants to know, by timeout at most.
func (e *Evaluator) ask(ctx context.Context, q question, k *cachedAnswer) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := q.ask(bounded)
	if answer.State == v1alpha1.GateUnreachable {
		ctrl.LoggerFrom(ctx).Info("Could not ask a gate", "gate", q.name, "reason", answer.Message)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	k.asking = false
	changed := !e.counts(k, now) || !k.answer.same(answer)
	if changed {
		k.answer, k.since = answer, now
	}
	k.asOf = k.asked
	for policy := range k.policies {
		if changed {
			e.wake(policy)
		}
	}
	clear(k.policies)
}

// wake never waits: the policy looks again by itself when the next question is due.
func (e *Evaluator) wake(policy string) {
	select {
	case e.woken <- event.GenericEvent{Object: &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}}}:
	default:
	}
}

// forget drops what was not asked for in a long time.
func (e *Evaluator) forget(now time.Time) {
	for q, k := range e.known {
		if !k.asking && now.Sub(k.asOf) >= forgotten*e.interval {
			delete(e.known, q)
		}
	}
}

// questions are those of the gates of a policy.
func (e *Evaluator) questions(policy *v1alpha1.RebootPolicySpec) []question {
	queries, objects := policy.PrometheusGates(), policy.ObjectGates()
	all := make([]question, 0, len(queries)+len(objects))
	for _, g := range queries {
		t := target{url: g.URL, query: g.Query}
		if g.SecretRef != nil {
			t.secret = g.SecretRef.Name
		}
		all = append(all, question{g.Name, t, func(ctx context.Context) Answer { return e.prometheus.Ask(ctx, g) }})
	}
	names := v1alpha1.ObjectGateNames(objects)
	for i, g := range objects {
		encoded, _ := json.Marshal(g) // it has no part that JSON cannot write
		all = append(all, question{names[i], target{object: string(encoded)}, func(ctx context.Context) Answer { return e.objects.Ask(ctx, g) }})
	}
	return all
}
