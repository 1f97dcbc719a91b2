package reboot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// Drainer empties a node. Package drain implements it.
type Drainer interface {
	Drain(ctx context.Context, node string, q drain.PodRules, report func(drain.Status)) error
	EvictLeft(ctx context.Context, node string, q drain.PodRules) ([]drain.Pod, error)
}

// drains runs the drain of the current attempt in the background, one at a time. Its state is lost
// with the process, and the next process drains again.
type drains struct {
	*background

	node    string
	drainer func(policy string) Drainer
	clock   clock.PassiveClock
	wake    Wake

	mu   sync.Mutex
	last attempt
}

// newDrains returns the drains of a node, which start with the manager that they are added to.
// drainer is called for each drain, with the name of the policy for which its evictions count. Wake
// is triggered when a drain ends, when the pods become readable or unreadable, and when other pods
// hold up the drain.
func newDrains(node string, drainer func(policy string) Drainer, clock clock.PassiveClock, wake Wake) *drains {
	return &drains{background: newBackground("drain"), node: node, drainer: drainer, clock: clock, wake: wake}
}

// attempt holds what this process knows of the drain for one grant.
type attempt struct {
	step.Drain
	seq      int64
	settings step.Settings
	// deletedBefore is the value of Deleted when the running or last drain began.
	deletedBefore int
	// blocked are the pods that hold up the drain, and back are those that stay because they come
	// back.
	blocked, back []drain.Pod
}

// begin returns the drain for a grant, after the previous drain has ended.
func (d *drains) begin(ctx context.Context, grant protocol.Grant, settings step.Settings) (drain func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last.seq != grant.Seq {
		d.last = attempt{seq: grant.Seq}
	}
	d.last.deletedBefore = d.last.Deleted
	d.last.State, d.last.Message, d.last.settings, d.last.blocked, d.last.back = step.DrainRunning, notRead, settings, nil, nil
	d.last.Listed, d.last.Remaining, d.last.Gone, d.last.Total, d.last.Waits, d.last.Unread = false, 0, 0, 0, "", ""
	d.last.Budgeted = false
	return func() {
		err := d.drainer(grant.Policy).Drain(ctx, d.node, podRules(settings), d.progress)
		d.ended(err, ctx.Err() != nil)
	}
}

// progress records the state of the drain.
func (d *drains) progress(status drain.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if (status.Unread == "") != (d.last.Unread == "") {
		d.wake.Trigger()
	}
	if status.Unread != "" {
		d.last.Unread = unreadable(status.Unread)
		d.last.Message = d.last.Unread
		return
	}
	d.last.Listed, d.last.Unread = true, ""
	if !slices.Equal(d.last.blocked, status.Blocked) {
		d.wake.Trigger()
	}
	d.last.blocked, d.last.back, d.last.Waits = status.Blocked, status.Back, held(status.Blocked)
	d.last.Message, d.last.Volumes = remaining(status), status.Volumes
	d.last.Gone, d.last.Total = status.Evicted, status.Evicted+status.Remaining
	d.last.Budgeted = budgeted(status)
	d.last.Evicted = d.last.Evicted || status.Evicted > 0
	d.last.Deleted, d.last.Remaining = d.last.deletedBefore+status.Deleted, status.Remaining-status.Deleting
}

// budgeted reports whether all pods that hold up the drain are terminating, or protected by budgets.
func budgeted(status drain.Status) bool {
	other := func(p drain.Pod) bool { return p.Budgets == "" && p.Reason != drain.ReasonStuckTerminating }
	return len(status.Blocked) > 0 && !slices.ContainsFunc(status.Blocked, other)
}

// ended records how the drain ended. If it was stopped, its findings still count, because the write
// for which it was stopped may fail and be decided again. Only Waits is reset.
func (d *drains) ended(err error, stopped bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	end := step.Drain{Evicted: d.last.Evicted, Deleted: d.last.Deleted}
	undrainable, ok := errors.AsType[*drain.UndrainableError](err)
	switch {
	case err == nil:
		end.State, end.DoneAt, end.Volumes, end.Staying = step.DrainDone, d.clock.Now(), d.last.Volumes, staying(d.last.back)
	case ok:
		end.State, end.Message = step.DrainUndrainable, pods(undrainable.Pods)
	case stopped:
		end, d.last.blocked = d.last.Drain, nil
		end.State, end.Waits = step.DrainStopped, ""
	default:
		end.State, end.Message = step.DrainFailed, fmt.Sprintf("The last error was: %v.", err)
		end.Failures, end.FailedAt = d.last.Failures+1, d.clock.Now()
	}
	d.last.Drain = end
	d.wake.Trigger()
}

// evictLeft evicts the pods on the drained node again, and records which of them may not be
// evicted. If that is unknown, none may.
func (d *drains) evictLeft(ctx context.Context, grant protocol.Grant, settings step.Settings) {
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	refused, err := d.drainer(grant.Policy).EvictLeft(ctx, d.node, podRules(settings))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last.LeftAt, d.last.Refused = d.clock.Now(), ""
	switch {
	case err != nil:
		d.last.Refused = engine.Shorten(fmt.Sprintf("The pods that came back could not be evicted: %v.", err))
	case len(refused) > 0:
		d.last.Refused = "Pods that came back may not go: " + pods(refused)
	}
	d.wake.Trigger()
}

// of returns what is known of the drain for a grant.
func (d *drains) of(seq int64) attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last.seq != seq {
		return attempt{seq: seq}
	}
	return d.last
}

// forget drops what is known, so that it does not count for the next attempt even if that has the
// same number. No drain may be running.
func (d *drains) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = attempt{}
}

// run starts the drain for a grant after it has stopped the running one.
func (d *drains) run(ctx context.Context, grant protocol.Grant, settings step.Settings) error {
	return d.order(ctx, func(ctx context.Context) func() { return d.begin(ctx, grant, settings) })
}

// stop stops the running drain. Nothing is evicted after it returns.
func (d *drains) stop(ctx context.Context) error {
	if !d.running() {
		return nil
	}
	return d.order(ctx, nil)
}

func (d *drains) running() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last.State == step.DrainRunning
}
