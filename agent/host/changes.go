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
	// blockInhibited is the property of logind that changes when a block inhibitor is taken or
	// released.
	blockInhibited = "BlockInhibited"
	// unitFilesChanged is sent after units were enabled, disabled, masked or unmasked.
	unitFilesChanged = "UnitFilesChanged"
)

// ErrConnectionBroke means that the connection broke. godbus then closes the channel of signals.
var ErrConnectionBroke = errors.New("the connection to the bus broke")

// coordinatorsEvery is the interval at which coordinators are checked without a signal, because a
// changed configuration file does not send one.
const coordinatorsEvery = 5 * time.Minute

// Changes reports that inhibitors or coordinators may have changed. It does so when a block
// inhibitor is taken or released, a shutdown is scheduled, or a unit of a program that reboots its
// host changes, and every five minutes. BlockInhibitors and Coordinators return the current state.
// Each field is required.
type Changes struct {
	// Connect opens the system bus.
	Connect Connect
	// Clock measures the five minutes, and the pauses before reconnecting.
	Clock clock.Clock
	// Changed is called after each change. It must not block.
	Changed func()
}

// Start reports changes until ctx ends, and then returns nil. It survives restarts and the absence
// of logind, systemd and the bus. Each new connection counts as a change.
func (c Changes) Start(ctx context.Context) error {
	supervisor := Supervisor{Connect: c.Connect, Clock: c.Clock, Broken: func(err error) {
		logr.FromContextOrDiscard(ctx).V(4).Info("Cannot watch the host for changes", "reason", err.Error())
	}}
	supervisor.Run(ctx, c.follow)
	return nil
}

// follow reports the changes on one connection.
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

// subscribe adds the match rules. Each rule names the sender, so that only signals of logind and
// systemd arrive.
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
	// Systemd sends signals only while a client has subscribed, as logind usually has. Without
	// systemd the subscription fails and no signals arrive.
	call := conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdManagerInterface+".Subscribe", dbus.FlagNoAutoStart)
	if IsBroken(call.Err) {
		return fmt.Errorf("subscribing to systemd: %w", call.Err)
	}
	return nil
}

// isChange reports whether a signal of logind or systemd is a change. A malformed signal is not. A
// nil means that signals are missing, and one of them may have been a change.
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
