package service

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

// Bus is what an engine is given that is a service on the system bus.
type Bus struct {
	source.Options

	// Connect opens the system bus. Required.
	Connect host.Connect
	// Malformed is called for each signal, reply or part of one that cannot be read and is ignored. Optional.
	Malformed func()
}

// Supervise runs session on one connection after the other, until ctx ends. lost is called each time there is none.
func (b Bus) Supervise(ctx context.Context, lost func(why string, presence engine.Presence), session host.Session) {
	last := ""
	broken := func(err error) {
		if last != err.Error() {
			last = err.Error()
			logr.FromContextOrDiscard(ctx).Info("Lost the system bus", "reason", last)
		}
		lost("The system bus cannot be reached.", engine.Unclear)
	}
	host.Supervisor{Connect: b.Connect, Clock: b.Clock, Broken: broken}.Run(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		last = ""
		return session(ctx, conn)
	})
}

// Ignore counts something malformed; count may be nil. It is logged at level 4 only: every program on the host can send such things,
// and could flood the log.
func Ignore(ctx context.Context, count func(), err error) {
	if count != nil {
		count()
	}
	logr.FromContextOrDiscard(ctx).V(4).Info("Ignored something malformed", "reason", err.Error())
}
