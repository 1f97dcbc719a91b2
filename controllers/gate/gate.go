// Package gate runs the queries of spec.gates.prometheus and checks the objects of
// spec.gates.objects. Each gate is queried at most once per Interval, however many nodes and
// policies wait for it, and only while a node waits. Reconciles do not wait for it, because a new
// answer wakes the policies. The state may be lost in a crash: a gate without an answer blocks
// until it has been queried again.
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
	// Interval is the time between two queries of a gate while a node waits for it.
	Interval = 30 * time.Second
	// timeout is the time that a server has to answer.
	timeout = 10 * time.Second
	// fresh is the number of intervals for which an answer counts. An older one is ignored.
	fresh = 2
	// forgotten is the number of intervals after which an unused answer is dropped.
	forgotten = 20
	// verdictsKept is the number of expressions whose compile result is cached.
	verdictsKept = 256
	// wakes is the number of policies that can be woken before the reconciler listens. A policy
	// whose wake-up was lost checks again an Interval later.
	wakes = 1024
)

// Asker queries one gate before the deadline of the context.
type Asker[G any] interface {
	Ask(ctx context.Context, gate G) Answer
}

// Evaluator keeps the last answers of gates and queries them. A nil Evaluator does not query
// anything and has no answers.
type Evaluator struct {
	prometheus Asker[v1alpha1.PrometheusGate]
	objects    Asker[v1alpha1.ObjectGate]
	clock      clock.PassiveClock
	interval   time.Duration
	woken      chan event.GenericEvent
	verdicts   *lru.Cache // compile errors of expressions, by their text

	mu    sync.Mutex
	known map[target]*cachedAnswer
}

// target identifies an answer. Gates of several policies with the same target are queried once.
type target struct{ url, query, secret, object string }

// question is a query of a gate of a policy.
type question struct {
	name   string
	target target
	ask    func(ctx context.Context) Answer
}

// cachedAnswer is the last answer for one target, with the policies that wait for the next one.
type cachedAnswer struct {
	answer Answer
	// since is the time when this answer was first given. asOf is the time of the last query with
	// an answer, so the answer is at least that old. It is zero before the first answer.
	since, asOf time.Time
	asked       time.Time
	asking      bool
	// policies are the names of the policies that wait for it.
	policies map[string]bool
}

// NewEvaluator returns an Evaluator that queries each gate once per interval.
func NewEvaluator(
	prometheus Asker[v1alpha1.PrometheusGate], objects Asker[v1alpha1.ObjectGate], clock clock.PassiveClock, interval time.Duration,
) *Evaluator {
	return &Evaluator{
		prometheus: prometheus, objects: objects, clock: clock, interval: interval,
		verdicts: lru.New(verdictsKept), woken: make(chan event.GenericEvent, wakes), known: map[target]*cachedAnswer{},
	}
}

// Woken returns a channel that receives an object with the name of a policy whenever the answer of
// one of its gates changes.
func (e *Evaluator) Woken() <-chan event.GenericEvent { return e.woken }

// Answers returns the last answers of a policy's gates, without those that were not queried, or not
// recently.
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

// counts reports whether the last answer is recent. The age of an answer from the future is
// unknown, because the clock was set.
func (e *Evaluator) counts(k *cachedAnswer, now time.Time) bool {
	return !k.asOf.IsZero() && !k.asOf.After(now) && now.Sub(k.asOf) < fresh*e.interval
}

// Ask starts the queries of a policy's gates that are due. It returns at once with the time of the
// next one, or zero without gates. A policy that still waits at that time calls Ask again.
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

// ask runs a query. It may outlive the reconcile that started it, by at most timeout.
func (e *Evaluator) ask(ctx context.Context, q question, k *cachedAnswer) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := q.ask(bounded)
	if answer.State == v1alpha1.GateUnreachable {
		ctrl.LoggerFrom(ctx).Info("Cannot query a gate", "gate", q.name, "reason", answer.Message)
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

// wake wakes a policy without blocking. If the channel is full, the policy checks again when its
// next query is due.
func (e *Evaluator) wake(policy string) {
	select {
	case e.woken <- event.GenericEvent{Object: &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}}}:
	default:
	}
}

// forget drops answers that were not used for a long time.
func (e *Evaluator) forget(now time.Time) {
	for q, k := range e.known {
		if !k.asking && now.Sub(k.asOf) >= forgotten*e.interval {
			delete(e.known, q)
		}
	}
}

// questions returns the queries of a policy's gates.
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
		encoded, _ := json.Marshal(g) // all of its fields can be encoded
		all = append(all, question{names[i], target{object: string(encoded)}, func(ctx context.Context) Answer { return e.objects.Ask(ctx, g) }})
	}
	return all
}
