package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// line is how one party of a process sends requests: one at a time, with a random source of its own.
type line struct {
	*Process
	random *Random
}

func lineOf(p *Process, name string) line { return line{p, p.random(name)} }

// request has an effect on the store, or has not; takes its time; and may be the last that the process does.
func (l line) request(ctx context.Context, what string, writes bool, effect func() error) error {
	w := l.conditions()
	l.counts.Add("requests")
	there, back := l.random.Between(0, w.Latency), l.random.Between(0, w.Latency)
	crash, when := l.random.Chance(w.Crash), l.random.Below(2)
	if crash && when == 0 {
		l.crash()
	}
	if err := l.travel(ctx, there); err != nil {
		return err
	}
	err := l.deliver(w, what, writes, effect)
	if crash {
		l.crash()
	}
	if lost := l.travel(ctx, back); lost != nil {
		return lost
	}
	return err
}

// travel is the way to the server or back. A process that is stopped meanwhile goes on when it may; what has timed out by
// then is not sent any more.
func (l line) travel(ctx context.Context, d time.Duration) error {
	Wait(ctx, d)
	if !l.Pass() {
		return ErrDead
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the request was given up: %w", context.Cause(ctx))
	}
	return nil
}

func (l line) crash() {
	l.counts.Add("crashes between requests")
	l.Kill()
}

// deliver is what the server makes of it.
func (l line) deliver(w Conditions, what string, writes bool, effect func() error) error {
	switch {
	case w.Down:
		l.counts.Add("requests while the API server was down")
		return fmt.Errorf("%s: connection refused", what)
	case l.random.Chance(w.Refused):
		return l.refuse(what, writes)
	case writes && l.random.Chance(w.Outrun):
		l.counts.Add("heartbeats between a read and its write")
		return conflict(what)
	case writes && l.random.Chance(w.Late):
		l.counts.Add("writes that came late")
		l.late(effect)
		return apierrors.NewTimeoutError(what, 0)
	}
	err := effect()
	if err == nil && l.random.Chance(w.Lost) {
		l.counts.Add("answers lost")
		return apierrors.NewTimeoutError(what, 0)
	}
	return err
}

// refuse is an error that the product did nothing to deserve.
func (l line) refuse(what string, writes bool) error {
	kinds := 2
	if writes {
		kinds = 3
	}
	switch l.random.Below(kinds) {
	case 0:
		l.counts.Add("429")
		return apierrors.NewTooManyRequests("too many requests", 1)
	case 1:
		l.counts.Add("500")
		return apierrors.NewInternalError(fmt.Errorf("%s: etcdserver: leader changed", what))
	}
	l.counts.Add("409 without a reason")
	return conflict(what)
}

func conflict(what string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, what, errors.New("the object has been modified"))
}

// late lets a write have its effect when nobody waits for it any more, up to 30 seconds on. It was on its way, so it outlives its process.
func (l line) late(effect func() error) {
	time.AfterFunc(l.random.Between(time.Second, 30*time.Second), func() { _ = effect() }) // nobody receives the answer
}
