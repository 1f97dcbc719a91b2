package rpmostree

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

const (
	// pollInterval is how often the deployments are read without any occasion. Each read may start the daemon, which then
	// stays for a minute: hence not oftener.
	pollInterval = 15 * time.Minute
	// firstRetry is how soon they are read again after that failed; the pauses double up to pollInterval, because a daemon
	// that fails to start is not to be started all the time.
	firstRetry = 30 * time.Second
)

const (
	ownerChanged      = busDaemon + ".NameOwnerChanged"
	propertiesChanged = propertiesInterface + ".PropertiesChanged"
)

// errSignalsEnded is the end of a session: godbus closes the channel when the connection breaks.
var errSignalsEnded = errors.New("the connection to the bus broke")

// watch is one session: what is heard on one connection.
type watch struct {
	engine *Engine
	daemon daemon
	memory *memory

	// owner is the unique name behind rpm-ostree's. Empty: the daemon is not running.
	owner string
	// found is when the bus said so, just before the deployments are asked for. Whatever was told earlier is older news:
	// the answer knows of it.
	found dbus.Sequence
	// read is when the deployments were told last, by whoever had the name by then. A signal between found and read may be
	// newer than the answer, and is an occasion to ask once more.
	read dbus.Sequence
	// staged tells that another deployment, or none, is staged.
	staged <-chan struct{}
	// retry is the pause after the next read that fails.
	retry time.Duration
}

func (w *watch) run(ctx context.Context) error {
	signals := make(chan *dbus.Signal, 64)
	w.daemon.conn.Signal(signals)
	if err := w.subscribe(ctx); err != nil {
		return err
	}
	w.retry = firstRetry
	wait, err := w.ask(ctx, 0)
	if err != nil {
		return err
	}
	poll := w.engine.Clock.NewTimer(wait)
	defer poll.Stop()
	for {
		again, flags, looked := false, dbus.Flags(0), chan<- struct{}(nil)
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C():
			again = true
		case <-w.staged:
			again = true
		case looked = <-w.engine.Again:
			again = true
		case signal, open := <-signals:
			if !open {
				return errSignalsEnded
			}
			// Whoever told something is there. If it has gone meanwhile, that is no reason to start it at once.
			again, flags = w.hear(ctx, signal), dbus.FlagNoAutoStart
		}
		if again {
			if wait, err = w.ask(ctx, flags); err != nil {
				return err
			}
			poll.Reset(wait)
		}
		if looked != nil {
			close(looked)
		}
	}
}

// subscribe comes before the first read, so that nothing falls between them. Sysroot and the operating systems tell of
// deployments, each on an object of its own below the namespace.
func (w *watch) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := w.daemon.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(busName), dbus.WithMatchPathNamespace(namespace),
		dbus.WithMatchInterface(propertiesInterface), dbus.WithMatchMember("PropertiesChanged"))
	if err != nil {
		return fmt.Errorf("subscribing to PropertiesChanged: %w", err)
	}
	err = w.daemon.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(busDaemon),
		dbus.WithMatchInterface(busDaemon), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, busName))
	if err != nil {
		return fmt.Errorf("subscribing to NameOwnerChanged: %w", err)
	}
	return nil
}

// findOwner finds out whether the daemon is running.
func (w *watch) findOwner(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	call := w.daemon.conn.BusObject().CallWithContext(ctx, busDaemon+".GetNameOwner", 0, busName)
	w.found = call.ResponseSequence
	if isAbsent(call.Err) {
		return nil
	}
	if err := call.Store(&w.owner); err != nil {
		return fmt.Errorf("looking up the owner of %s: %w", busName, err)
	}
	return nil
}

// hear takes one signal and tells whether the deployments should be read.
func (w *watch) hear(ctx context.Context, signal *dbus.Signal) bool {
	switch {
	case signal == nil:
		w.engine.malformed(ctx, errors.New("no signal"))
		return false
	// Somebody else could send a signal straight to us, but not under the name of the bus or the daemon.
	case signal.Sender == busDaemon && signal.Name == ownerChanged:
		return w.hearOwner(ctx, signal)
	case w.owner != "" && signal.Sender == w.owner && signal.Name == propertiesChanged:
		again, err := isOccasion(signal.Body)
		if err != nil {
			w.engine.malformed(ctx, err)
		}
		return again && signal.Sequence > w.found
	}
	return false
}

// hearOwner takes the daemon's coming and going. A daemon that leaves is idle, and asking why would bring it back; one
// that comes may have found other deployments on disk.
func (w *watch) hearOwner(ctx context.Context, signal *dbus.Signal) bool {
	if signal.Sequence < w.found || len(signal.Body) != 3 {
		return false
	}
	owner, ok := signal.Body[2].(string)
	if !ok {
		return false
	}
	w.owner = owner
	logr.FromContextOrDiscard(ctx).V(1).Info("Heard of the daemon", "engine", Name, "running", owner != "")
	return owner != "" && signal.Sequence > w.read
}

// ask reads the deployments and returns when to read them again. An error means that the connection is of no more use;
// that rpm-ostree does not answer is something learnt.
func (w *watch) ask(ctx context.Context, flags dbus.Flags) (time.Duration, error) {
	if err := w.findOwner(ctx); err != nil {
		return 0, err
	}
	value, read, err := w.daemon.property(ctx, "Deployments", flags)
	w.read = max(w.read, read)
	if err != nil {
		return w.unanswered(ctx, err, flags)
	}
	list, ignored, err := decodeDeployments(value)
	if err != nil {
		return w.unanswered(ctx, fmt.Errorf("%w: %w", errMalformed, err), flags)
	}
	if ignored != nil {
		w.engine.malformed(ctx, ignored)
	}
	w.memory.read(list)
	w.retry = firstRetry
	return pollInterval, nil
}

// unanswered tells a daemon that does not answer from a connection that broke.
func (w *watch) unanswered(ctx context.Context, err error, flags dbus.Flags) (time.Duration, error) {
	if ctx.Err() != nil || host.IsBroken(err) && !errors.Is(err, errMalformed) {
		return 0, err
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Asked in vain", "engine", Name, "reason", err.Error())
	wait := w.retry
	w.retry = min(2*w.retry, pollInterval)
	why, presence := "rpm-ostree does not tell its deployments: no reply in time.", engine.Silent
	switch {
	case isAbsent(err) && flags&dbus.FlagNoAutoStart != 0:
		return firstRetry, nil // It left between its word and the question.
	case isAbsent(err):
		why, presence, wait = "rpm-ostree is not on the system bus.", engine.Missing, pollInterval // NameOwnerChanged tells when it comes.
	case errors.Is(err, errMalformed):
		w.engine.malformed(ctx, err)
		why = "rpm-ostree tells its deployments in a way that cannot be read."
	case host.ErrorName(err) != "":
		why = fmt.Sprintf("rpm-ostree does not tell its deployments: %s.", host.ErrorName(err))
	}
	w.memory.lost(why, presence)
	return wait, nil
}
