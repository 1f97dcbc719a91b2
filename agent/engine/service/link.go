package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

const (
	busDaemon    = "org.freedesktop.DBus"
	ownerChanged = busDaemon + ".NameOwnerChanged"
)

// Bus holds the options of an engine that is a service on the system bus.
type Bus struct {
	source.Options

	// Connect opens the system bus. Required.
	Connect host.Connect
	// Malformed is called for each signal, reply or part of one that cannot be read and is ignored.
	// Optional.
	Malformed func()
}

// Supervise runs session on one connection after the other until ctx ends. It calls lost whenever
// the connection is gone.
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

// Ignore counts a malformed message; count may be nil. It logs at level 4 only, because every
// program on the host can send such messages and could flood the log.
func Ignore(ctx context.Context, count func(), err error) {
	if count != nil {
		count()
	}
	logr.FromContextOrDiscard(ctx).V(4).Info("Ignored something malformed", "reason", err.Error())
}

// Link follows one service on one connection to the bus.
type Link struct {
	// Conn is the connection.
	Conn *dbus.Conn
	// Name is the service's name on the bus.
	Name string
	// Limit is the timeout of each call to the bus itself.
	Limit time.Duration

	// Owner is the unique name of the service, or empty if it is not on the bus.
	Owner string
	// Found is the position at which the bus reported the owner, just before the service was read.
	// Signals before Found are older than the service's answer.
	Found dbus.Sequence
	// Silent is true if the service is there but did not answer the last read.
	Silent bool
}

// Occasions defines when a service is read again.
type Occasions struct {
	// Clock measures the pauses between reads. Required.
	Clock clock.Clock
	// Again makes it read the service once more. Optional.
	Again source.Again
	// Changed makes it read the service for a reason other than a signal. Optional.
	Changed <-chan struct{}
	// Rules select the signals to receive, besides the one that announces a new owner of the name.
	Rules [][]dbus.MatchOption
	// Receive handles one signal and reports whether to read the service. Required.
	Receive func(ctx context.Context, signal *dbus.Signal) bool
}

// Follow reads the service at once and then on each occasion, until ctx ends or the connection
// breaks. read receives whether a signal is the occasion, and returns the time until the next read.
// An error of read ends the link.
func (l *Link) Follow(ctx context.Context, o Occasions, read func(ctx context.Context, signalled bool) (time.Duration, error)) error {
	signals := make(chan *dbus.Signal, host.MaxQueued)
	l.Conn.Signal(signals)
	if err := l.subscribe(ctx, o.Rules); err != nil {
		return err
	}
	wait, err := read(ctx, false)
	if err != nil {
		return err
	}
	poll := o.Clock.NewTimer(wait)
	defer func() { poll.Stop() }()
	for {
		due, signalled, done := true, false, chan<- bool(nil)
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C():
		case <-o.Changed:
		case done = <-o.Again:
		case signal, open := <-signals:
			if !open {
				return host.ErrConnectionBroke
			}
			// After a nil signals are missing: the service is read again.
			due, signalled = signal == nil || o.Receive(ctx, signal), true
		}
		if due {
			l.Silent = false
			if wait, err = read(ctx, signalled); err != nil {
				return err
			}
			// Reset is not safe here: a clock.Timer that has fired may keep its tick.
			last := poll
			poll = o.Clock.NewTimer(wait)
			last.Stop()
		}
		if done != nil {
			done <- !l.Silent
		}
	}
}

// subscribe runs before the first read, so that no signal is lost in between. The bus drops
// everything that no rule matches.
func (l *Link) subscribe(ctx context.Context, rules [][]dbus.MatchOption) error {
	ctx, cancel := context.WithTimeout(ctx, l.Limit)
	defer cancel()
	for _, rule := range append(rules, []dbus.MatchOption{
		dbus.WithMatchSender(busDaemon), dbus.WithMatchInterface(busDaemon), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, l.Name),
	}) {
		if err := l.Conn.AddMatchSignalContext(ctx, rule...); err != nil {
			return fmt.Errorf("subscribing to the signals of %s: %w", l.Name, err)
		}
	}
	return nil
}

// FindOwner looks up the current owner of the name. It does not start the service.
func (l *Link) FindOwner(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Limit)
	defer cancel()
	call := l.Conn.BusObject().CallWithContext(ctx, busDaemon+".GetNameOwner", 0, l.Name)
	l.Owner, l.Found = "", call.ResponseSequence
	if host.NoOwner(call.Err) {
		return nil
	}
	if err := call.Store(&l.Owner); err != nil {
		return fmt.Errorf("looking up the owner of %s: %w", l.Name, err)
	}
	return nil
}

// Startable reports whether the bus could start the service: it is installed, even if it is not
// running or fails to start.
func (l *Link) Startable(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Limit)
	defer cancel()
	var startable []string
	err := l.Conn.BusObject().CallWithContext(ctx, busDaemon+".ListActivatableNames", 0).Store(&startable)
	if ctx.Err() != nil || host.IsBroken(err) {
		return false, fmt.Errorf("looking for %s among what the bus can start: %w", l.Name, cmp.Or(err, ctx.Err()))
	}
	return slices.Contains(startable, l.Name), nil
}

// IsOwnerChange reports whether the signal announces a new owner of the name. Any program could
// send a signal of this name to the agent, but not with the sender name of the bus.
func IsOwnerChange(signal *dbus.Signal) bool {
	return signal.Sender == busDaemon && signal.Name == ownerChanged
}
