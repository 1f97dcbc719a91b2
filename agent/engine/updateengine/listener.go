package updateengine

import (
	"context"
	"sync"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

// listener keeps the state across connections and tells what changes.
type listener struct {
	// ownerOnly leaves out what a stranger says.
	ownerOnly bool

	// mu is held while the state changes and is told: what an administrator says comes from another goroutine.
	mu      sync.Mutex
	state   state
	changes engine.Changes
	// lost is what is known of the engine's presence while it cannot be asked.
	lost engine.Presence
}

var _ service.Listener = (*listener)(nil)

// change makes a state of the one before and tells it.
func (l *listener) change(next func(state) state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = next(l.state)
	presence := engine.Answering
	if l.state.unreachable != "" {
		presence = l.lost
	}
	l.changes.Tell(l.state.report(), presence)
}

// Hear takes a StatusUpdate.
func (l *listener) Hear(_ string, body []any, fromOwner bool) error {
	heard, err := decode(body)
	if err != nil {
		return err
	}
	if fromOwner || !l.ownerOnly {
		l.change(func(s state) state { return next(s, input{status: heard, fromEngine: fromOwner}) })
	}
	return nil
}

// Read calls GetStatus.
func (l *listener) Read(ctx context.Context, call service.Call) error {
	return call(ctx, getStatus, func(body []any) error { return l.Hear(statusUpdate, body, true) })
}

// Lost says that update_engine cannot be asked.
func (l *listener) Lost(why string, presence engine.Presence) {
	l.change(func(s state) state {
		l.lost = presence
		return next(s, input{unreachable: why})
	})
}

// forget drops a need that update_engine does not confirm.
func (l *listener) forget() { l.change(state.forgotten) }
