package updateengine

import (
	"context"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

// listener keeps the state across connections and tells what changes.
type listener struct {
	state   state
	changes engine.Changes
	// lost is what is known of the engine's presence while it cannot be asked.
	lost engine.Presence
	// ownerOnly leaves out what a stranger says.
	ownerOnly bool
}

var _ service.Listener = (*listener)(nil)

func (l *listener) add(in input) {
	l.state = next(l.state, in)
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
		l.add(input{status: heard, fromEngine: fromOwner})
	}
	return nil
}

// Read calls GetStatus.
func (l *listener) Read(ctx context.Context, call service.Call) error {
	return call(ctx, getStatus, func(body []any) error { return l.Hear(statusUpdate, body, true) })
}

// Lost says that update_engine cannot be asked.
func (l *listener) Lost(why string, presence engine.Presence) {
	l.lost = presence
	l.add(input{unreachable: why})
}
