// Package drain empties a node before it reboots.
//
// One Drain call costs 2 + E requests: a LIST of the node's pods, a WATCH from there, and one
// request for each pod that must leave. It never polls, never gets a pod by name, and never looks
// up the owner of a pod. If a selector needs the labels of namespaces, it costs one more GET for
// each namespace, and all of these again every five minutes, with a LIST of the pods.
//
//	      LIST, WATCH ──► filter.decide ──► progress ◄── responses of the API server
//	spec.nodeName=node     (pure)            (pure)  ◄── WATCH of PodDisruptionBudgets after a refusal
//	                                            │
//	                                       next(now): which requests now, when to run again
//	                                            │
//	                                       at most 10 requests at a time
//
// The whole state of the drain is in one progress value. Only the goroutine that called Drain
// touches it. The other goroutines, for watches and requests, send it changes. Nothing is stored
// elsewhere, so calling Drain again continues a drain that was interrupted.
//
// Pods are identified by UID, not by name. Requests carry the UID as a precondition, and are only
// repeated for UIDs that the watch still shows. A pod of a StatefulSet that returns with its old
// name, on this or another node, is a different pod. Each Drain call also remembers, by the UID of
// the controller, which pods come back to the node and stay.
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

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Drainer drains nodes. Its clients should not limit their rates, because a drain has at most 10
// requests under way.
type Drainer struct {
	// Pods acts as the node. It lists and watches the node's pods, evicts them, and deletes them if
	// a rule requires it.
	Pods *Client
	// Policy acts as the agent. It watches PodDisruptionBudgets, and gets Namespaces if a rule
	// selects by their labels.
	Policy *Client
	// Self is the agent's own pod, which is never evicted. It is empty if it is unknown.
	Self types.NamespacedName
	// Clock provides the time and wakes the drain.
	Clock clock.WithTicker
	// Evictions is optional. It is called once for each answered request, from the goroutine that
	// called Drain. The result is evicted, deleted (accepted for a rule with action Delete),
	// blocked, gone or error.
	Evictions func(result string)
}

// Drain evicts the pods of a node until all that must leave have left, and then returns nil. It
// calls report for each change, from the goroutine that called Drain. If the policy never removes
// one of the pods, or one must not be disrupted, it evicts nothing and returns *UndrainableError.
// When ctx ends it returns ctx's error, wrapped. Any other error, such as a missing permission or
// an invalid rule, means that it cannot continue safely.
//
// All its goroutines have ended when it returns. It keeps no state, so it can be called again after
// a crash.
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

// change is sent by one of the run's goroutines. An error ends the drain.
type change func(p *progress, now time.Time) error

// run is one call of Drain, Look or Follow.
type run struct {
	*Drainer
	node    string
	filter  filter
	changes chan change
	group   sync.WaitGroup
	// followed are the namespaces whose budgets are watched.
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
	shown := Status{Remaining: -1} // so that the first status differs
	for now := r.Clock.Now(); !p.done(now); now = r.Clock.Now() {
		send, wake := p.next(now)
		for _, t := range send {
			p.sent(t.uid, now)
			r.group.Go(func() { r.ask(ctx, t) })
		}
		for _, namespace := range p.namespaces((*podState).held) {
			r.followBudgets(ctx, namespace)
		}
		if err := r.await(ctx, p, timing.Earliest(wake, p.matures(now))); err != nil {
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

// logBack logs the pods that stay because they come back, once for each pod.
func logBack(ctx context.Context, back, logged []Pod) {
	for _, pod := range back {
		if !slices.Contains(logged, pod) {
			logr.FromContextOrDiscard(ctx).Info("Left a pod on the node", "Pod", klog.KRef(pod.Namespace, pod.Name),
				"uid", pod.UID, "reason", pod.Message)
		}
	}
}

// await blocks until a change was applied, the time wake has come, or ctx ends.
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

// send passes a change to the drain, unless the drain has ended.
func (r *run) send(ctx context.Context, c change) {
	select {
	case r.changes <- c:
	case <-ctx.Done():
	}
}
