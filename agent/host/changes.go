package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"
)

const (
	propertiesInterface = "org.freedesktop.DBus.Properties"
	propertiesChanged   = "PropertiesChanged"
	// blockInhibited is the property of logind that changes whenever a block inhibitor is taken or released.
	blockInhibited = "BlockInhibited"
)

var errConnectionBroke = errors.New("the connection to the bus broke")

// Changes hears from logind when somebody takes a block inhibitor or releases one. Who holds them BlockInhibitors
// tells. Each field is required.
type Changes struct {
	// Connect opens the system bus.
	Connect Connect
	// Clock times the pauses before connecting again.
	Clock clock.Clock
	// Changed is called after each change. It must not block.
	Changed func()
}

// Start hears until ctx ends, and then returns nil. It outlasts restarts of logind and of the bus, and the absence of both;
// what changes meanwhile is not told.
func (i Changes) Start(ctx context.Context) error {
	supervisor := Supervisor{Connect: i.Connect, Clock: i.Clock, Broken: func(err error) {
		logr.FromContextOrDiscard(ctx).V(1).Info("Hears nothing of inhibitors", "reason", err.Error())
	}}
	supervisor.Run(ctx, i.hear)
	return nil
}

// hear is one connection. The rule names the sender, so that nobody but logind is heard.
func (i Changes) hear(ctx context.Context, conn *dbus.Conn) error {
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := conn.AddMatchSignalContext(limited, dbus.WithMatchSender(logindName), dbus.WithMatchObjectPath(logindPath),
		dbus.WithMatchInterface(propertiesInterface), dbus.WithMatchMember(propertiesChanged), dbus.WithMatchArg(0, logindInterface))
	if err != nil {
		return fmt.Errorf("subscribing to %s of logind: %w", propertiesChanged, err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case signal, open := <-signals:
			if !open {
				return errConnectionBroke
			}
			if tellsOfChange(signal) {
				i.Changed()
			}
		}
	}
}

// tellsOfChange reads PropertiesChanged: the interface, what has which value now, and what else has changed. Whatever
// does not look like that tells of nothing.
func tellsOfChange(signal *dbus.Signal) bool {
	if signal == nil || signal.Name != propertiesInterface+"."+propertiesChanged {
		return false
	}
	var of string
	var values map[string]dbus.Variant
	var names []string
	if err := dbus.Store(signal.Body, &of, &values, &names); err != nil {
		return false
	}
	_, changed := values[blockInhibited]
	return of == logindInterface && (changed || slices.Contains(names, blockInhibited))
}
