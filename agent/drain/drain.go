// Package drain empties a node before it reboots.
//
// One Drain call costs 2 + E requests: a LIST of the node's pods, a WATCH from there, and one for each pod that must go. It never
// polls, never looks a pod up by name, and never asks for a pod's owner. Where a selector asks for the labels of namespaces, each of
// these is one GET more. After each five minutes, these are asked for again, with one LIST of the pods.
//
//	      LIST, WATCH ──► filter.decide ──► progress ◄── answers of the API server
//	spec.nodeName=node     (pure)            (pure)  ◄── WATCH of PodDisruptionBudgets, where one refused
//	                                            │
//	                                       next(now): which requests now, when to look again
//	                                            │
//	                                       at most 10 requests at a time
//
// Everything that is known about the drain is in one progress value, touched by one goroutine only: the one that called
// Drain. The others (the watches and the requests) send it changes. Nothing is stored anywhere else, so a Drain that died
// half-way is continued by calling Drain again.
//
// A pod is a UID, not a name. Requests carry the UID as a precondition, and only UIDs that the watch still shows are asked for again. A
// StatefulSet's pod that has come back under its old name, here or elsewhere, is another pod. What is remembered of controllers, by
// their UIDs too, is for one Drain call: which pods come back to the node, and stay.
package drain

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Drainer empties nodes. Its clients should not limit their own rate: the drain has at most 10 requests under way.
type Drainer struct {
	// Pods acts as the node: it lists and watches its pods, evicts them, and deletes them where a rule requires it.
	Pods *Client
	// Policy acts as the agent: it watches PodDisruptionBudgets, and gets Namespaces where a rule selects by them.
	Policy *Client
	// Self is the agent's own pod, which is never evicted. Empty: unknown.
	Self types.NamespacedName
	// Clock gives the time and wakes the drain.
	Clock clock.WithTicker
	// Evictions, where set, is called once for each answered request, from the goroutine that called Drain. The result is
	// evicted, deleted (accepted by a rule with action Delete), blocked, gone or error.
	Evictions func(result string)
}

// Drain evicts the pods of a node until none is left that must go, and then returns nil. It calls report on each change, from
// the goroutine that called Drain. Where the policy never lets some pod go, or such a pod is to keep its node, it evicts
// nothing and returns *UndrainableError. When ctx ends it returns ctx's error, wrapped. Any other error means that going on
// would be a guess: a right is missing, or a rule cannot be read. All its goroutines have ended when it returns. It remembers
// nothing: call it again after a crash.
func (d *Drainer) Drain(ctx context.Context, node string, q PodRules, report func(Status)) error {
	r, err := d.newRun(node, q)
	if err != nil {
		return err
	}
	if err := r.drain(ctx, report); err != nil {
		return fmt.Errorf("draining node %q: %w", node, err)
	}
	return nil
}

// change is news from one of the run's goroutines. An error ends the drain.
type change func(p *progress, now time.Time) error

// run is one call of Drain, Look or Follow.
type run struct {
	*Drainer
	node    string
	filter  filter
	changes chan change
	group   sync.WaitGroup
	// followed are the namespaces whose budgets are followed.
	followed map[string]bool
}

func (d *Drainer) newRun(node string, q PodRules) (*run, error) {
	f, err := compile(q, d.Self)
	return &run{Drainer: d, node: node, filter: f, changes: make(chan change), followed: map[string]bool{}}, err
}

func (r *run) drain(ctx context.Context, report func(Status)) error {
	ctx, stop := context.WithCancel(ctx)
	defer r.group.Wait()
	defer stop()
	r.group.Go(func() { r.followPods(ctx) })

	p := newProgress()
	shown := Status{Remaining: -1} // the first one is news, whatever it is
	for now := r.Clock.Now(); !p.done(now); now = r.Clock.Now() {
		send, wake := p.next(now)
		for _, t := range send {
			p.sent(t.uid, now)
			r.group.Go(func() { r.ask(ctx, t) })
		}
		for _, namespace := range p.namespaces((*podState).held) {
			r.followBudgets(ctx, namespace)
		}
		if err := r.await(ctx, p, wake); err != nil {
			return err
		}
		if s := p.status(r.Clock.Now()); (p.listed || s.Unread != "") && !reflect.DeepEqual(s, shown) {
			logBack(ctx, s.Back, shown.Back)
			shown = s
			report(s)
		}
	}
	return nil
}

// logBack logs, once for each pod, which ones are left alone because they come back.
func logBack(ctx context.Context, back, logged []Pod) {
	for _, pod := range back {
		if !slices.Contains(logged, pod) {
			logr.FromContextOrDiscard(ctx).Info("Left a pod on the node", "Pod", klog.KRef(pod.Namespace, pod.Name),
				"uid", pod.UID, "reason", pod.Message)
		}
	}
}

// await blocks until a change is recorded, wake has come, or ctx ends.
func (r *run) await(ctx context.Context, p *progress, wake time.Time) error {
	var woken <-chan time.Time
	if !wake.IsZero() {
		d := wake.Sub(r.Clock.Now())
		if d <= 0 {
			return nil
		}
		timer := r.Clock.NewTimer(d)
		defer timer.Stop()
		woken = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case c := <-r.changes:
		return c(p, r.Clock.Now())
	case <-woken:
		return nil
	}
}

// send hands a change to the drain, unless that has ended.
func (r *run) send(ctx context.Context, c change) {
	select {
	case r.changes <- c:
	case <-ctx.Done():
	}
}
