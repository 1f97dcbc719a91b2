package updateengine

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

// listener keeps the state across connections and reports what changes.
type listener struct {
	// ownerOnly leaves out what a stranger reports.
	ownerOnly bool

	clock   clock.PassiveClock
	state   state
	changes engine.Changes
	// lost is what is known of the engine's presence while it cannot be asked.
	lost engine.Presence
}

var _ service.Listener = (*listener)(nil)

// take makes a state of the one before and reports it.
func (l *listener) take(in input) {
	in.at = l.clock.Now()
	l.state = next(l.state, in)
	presence := engine.Answering
	if l.state.unreachable != "" {
		presence = l.lost
	}
	l.changes.Update(l.state.report(), presence)
}

// Receive takes a StatusUpdate.
func (l *listener) Receive(_ string, body []any, fromOwner bool) error {
	received, err := decode(body)
	if err != nil {
		return err
	}
	if fromOwner || !l.ownerOnly {
		l.take(input{status: received, fromEngine: fromOwner})
	}
	return nil
}

// Read calls GetStatus.
func (l *listener) Read(ctx context.Context, call service.Call) error {
	return call(ctx, getStatus, func(body []any) error { return l.Receive(statusUpdate, body, true) })
}

// Lost reports that update_engine cannot be asked.
func (l *listener) Lost(why string, presence engine.Presence) {
	l.lost = presence
	l.take(input{unreachable: why})
}
