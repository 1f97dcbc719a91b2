package cosupdateengine

import (
	"context"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

// listener keeps the state across connections and reports what changes.
type listener struct {
	state   state
	changes engine.Changes
	// lost is what is known of the engine's presence while it cannot be asked.
	lost engine.Presence
	// plain reports that the platform has only GetStatus and StatusUpdate. Where it has both, these must not count: they do
	// not distinguish an update from an install of downloadable content.
	plain bool
}

var _ service.Listener = (*listener)(nil)

func (l *listener) add(in input) {
	l.state = next(l.state, in)
	presence := engine.Answering
	if l.state.unreachable != "" {
		presence = l.lost
	}
	l.changes.Update(l.state.report(), presence)
}

// Receive takes a StatusUpdateAdvanced, or a StatusUpdate where that is all there is.
func (l *listener) Receive(member string, body []any, _ bool) error {
	switch {
	case member == statusUpdateAdvanced:
		return l.take(decodeAdvanced)(body)
	case l.plain:
		return l.take(decodePlain)(body)
	}
	return nil
}

// Read calls GetStatusAdvanced, or GetStatus where that is all there is.
func (l *listener) Read(ctx context.Context, call service.Call) error {
	err := call(ctx, getStatusAdvanced, l.take(decodeAdvanced))
	l.plain = service.IsUnknownMethod(err)
	if l.plain {
		err = call(ctx, getStatus, l.take(decodePlain))
	}
	return err
}

// Lost reports that update_engine cannot be asked.
func (l *listener) Lost(why string, presence engine.Presence) {
	l.lost = presence
	l.add(input{unreachable: why})
}

func (l *listener) take(decode func(body []any) (status, error)) func(body []any) error {
	return func(body []any) error {
		received, err := decode(body)
		if err == nil {
			l.add(input{status: received})
		}
		return err
	}
}
