package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"
)

const (
	propertiesInterface = "org.freedesktop.DBus.Properties"
	propertiesChanged   = "PropertiesChanged"
	// blockInhibited is the property of logind that changes whenever a block inhibitor is taken or released.
	blockInhibited = "BlockInhibited"
	// unitFilesChanged is sent after units were enabled, disabled, masked or unmasked.
	unitFilesChanged = "UnitFilesChanged"
)

// ErrConnectionBroke is the end of what is received on a connection: godbus closes the channel when the connection breaks.
var ErrConnectionBroke = errors.New("the connection to the bus broke")

// coordinatorsEvery is how often it is worth looking who else may reboot the host where no signal reports it: a configuration file
// changes without one.
const coordinatorsEvery = 5 * time.Minute

// Changes reports that who keeps the host up, or who else may reboot it, may have changed. It does when a block inhibitor is taken or
// released, and when a shutdown is scheduled. It does when a unit of a program that reboots its host changes, and every five minutes.
// BlockInhibitors and Coordinators have what it is now. Each field is required.
type Changes struct {
	// Connect opens the system bus.
	Connect Connect
	// Clock times the five minutes, and the pauses before connecting again.
	Clock clock.Clock
	// Changed is called after each change. It must not block.
	Changed func()
}

// Start reports until ctx ends, and then returns nil. It outlasts restarts of logind, systemd and the bus, and the absence of
// all of them: a connection that was made counts as a change.
func (c Changes) Start(ctx context.Context) error {
	supervisor := Supervisor{Connect: c.Connect, Clock: c.Clock, Broken: func(err error) {
		logr.FromContextOrDiscard(ctx).V(4).Info("Cannot watch the host for changes", "reason", err.Error())
	}}
	supervisor.Run(ctx, c.follow)
	return nil
}

// follow is one connection.
func (c Changes) follow(ctx context.Context, conn *dbus.Conn) error {
	signals := make(chan *dbus.Signal, MaxQueued)
	conn.Signal(signals)
	if err := subscribe(ctx, conn); err != nil {
		return err
	}
	c.Changed()
	again := c.Clock.NewTimer(coordinatorsEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C():
			c.Changed()
			again.Reset(coordinatorsEvery)
		case signal, open := <-signals:
			if !open {
				return ErrConnectionBroke
			}
			if isChange(signal) {
				c.Changed()
			}
		}
	}
}

// subscribe makes the rules. Each names its sender, so that only logind and systemd are received.
func subscribe(ctx context.Context, conn *dbus.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	properties := []dbus.MatchOption{dbus.WithMatchInterface(propertiesInterface), dbus.WithMatchMember(propertiesChanged)}
	rules := [][]dbus.MatchOption{
		append(properties[:2:2], dbus.WithMatchSender(logindName), dbus.WithMatchObjectPath(logindPath), dbus.WithMatchArg(0, logindInterface)),
		{
			dbus.WithMatchSender(systemdName), dbus.WithMatchObjectPath(systemdPath),
			dbus.WithMatchInterface(systemdManagerInterface), dbus.WithMatchMember(unitFilesChanged),
		},
	}
	for _, r := range rebooters {
		for _, unit := range r.units {
			rules = append(rules, append(properties[:2:2], dbus.WithMatchSender(systemdName), dbus.WithMatchObjectPath(unitPath(unit))))
		}
	}
	for _, rule := range rules {
		if err := conn.AddMatchSignalContext(ctx, rule...); err != nil {
			return fmt.Errorf("subscribing to the host's changes: %w", err)
		}
	}
	// Systemd sends signals while a client has subscribed, as logind mostly has. Without systemd there are none.
	call := conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdManagerInterface+".Subscribe", dbus.FlagNoAutoStart)
	if IsBroken(call.Err) {
		return fmt.Errorf("subscribing to systemd: %w", call.Err)
	}
	return nil
}

// isChange reads a signal of logind or systemd. Whatever does not look like one of theirs is not a change.
// If signals are missing, one of them may have been a change.
func isChange(signal *dbus.Signal) bool {
	switch {
	case signal == nil:
		return true
	case signal.Name == systemdManagerInterface+"."+unitFilesChanged:
		return true
	case signal.Name != propertiesInterface+"."+propertiesChanged:
		return false
	}
	var of string
	var values map[string]dbus.Variant
	var names []string
	if err := dbus.Store(signal.Body, &of, &values, &names); err != nil {
		return false
	}
	if of != logindInterface {
		return of == systemdUnitInterface || of == systemdServiceInterface
	}
	return slices.ContainsFunc([]string{blockInhibited, scheduledShutdown}, func(name string) bool {
		_, changed := values[name]
		return changed || slices.Contains(names, name)
	})
}
