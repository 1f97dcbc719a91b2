package rpmostree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	// pollInterval is the time after which the deployments are read without a signal. A shorter one
	// would cost more, because each read may start the daemon, which then runs for a minute.
	pollInterval = 15 * time.Minute
	// firstRetry is the pause after a failed read. It doubles up to pollInterval, so that a daemon
	// that fails to start is not started all the time.
	firstRetry = 30 * time.Second
)

const propertiesChanged = propertiesInterface + ".PropertiesChanged"

// watch is the state of one link.
type watch struct {
	service.Link

	engine *Engine
	memory *memory

	// read is the sequence number of the last reply with the deployments, from the current owner. A
	// signal between Found and read may be newer than the reply, so the deployments are read again.
	read dbus.Sequence
	// staged receives a value when the staged deployment changes.
	staged <-chan struct{}
	// failures counts the reads in a row that failed.
	failures int
}

// run follows the daemon. Sysroot and the operating systems signal their deployments, each on its
// own object below the namespace.
func (w *watch) run(ctx context.Context) error {
	rule := []dbus.MatchOption{
		dbus.WithMatchSender(busName), dbus.WithMatchPathNamespace(namespace),
		dbus.WithMatchInterface(propertiesInterface), dbus.WithMatchMember("PropertiesChanged"),
	}
	return w.Follow(ctx, service.Occasions{
		Clock: w.engine.Clock, Again: w.engine.Again, Changed: w.staged, Rules: [][]dbus.MatchOption{rule}, Receive: w.receive,
	}, w.ask)
}

// receive handles one signal and reports whether the deployments should be read.
func (w *watch) receive(ctx context.Context, signal *dbus.Signal) bool {
	switch {
	case service.IsOwnerChange(signal):
		return w.receiveOwner(ctx, signal)
	// Any program can send such a signal straight to the agent, but not with the sender name of the
	// daemon.
	case w.Owner != "" && signal.Sender == w.Owner && signal.Name == propertiesChanged:
		again, err := isOccasion(signal.Body)
		if err != nil {
			service.Ignore(ctx, w.engine.Malformed, err)
		}
		return again && signal.Sequence > w.Found
	}
	return false
}

// receiveOwner handles the start or the end of the daemon. If it has exited because it is idle, a
// read would start it again. A daemon that has started may have found other deployments on disk.
func (w *watch) receiveOwner(ctx context.Context, signal *dbus.Signal) bool {
	if signal.Sequence < w.Found || len(signal.Body) != 3 {
		return false
	}
	owner, ok := signal.Body[2].(string)
	if !ok {
		return false
	}
	w.Owner = owner
	logr.FromContextOrDiscard(ctx).V(4).Info("Detected the daemon", "running", owner != "")
	return owner != "" && signal.Sequence > w.read
}

// ask reads the deployments and returns the time until the next read. An error means that the
// connection is broken. A daemon that does not answer is not an error. If the daemon has left since
// it sent the signal, it is not started again at once.
func (w *watch) ask(ctx context.Context, signalled bool) (time.Duration, error) {
	var flags dbus.Flags
	if signalled {
		flags = dbus.FlagNoAutoStart
	}
	if err := w.FindOwner(ctx); err != nil {
		return 0, err
	}
	value, read, err := daemon{w.Conn}.deployments(ctx, flags)
	w.read = max(w.read, read)
	if err != nil {
		return w.unanswered(ctx, err, signalled)
	}
	list, ignored, err := decodeDeployments(value)
	if err != nil {
		return w.unanswered(ctx, fmt.Errorf("%w: %w", errMalformed, err), signalled)
	}
	if ignored != nil {
		service.Ignore(ctx, w.engine.Malformed, ignored)
	}
	client := w.engine.client(ctx, list)
	lockStaged(list, w.engine.HostRoot)
	w.memory.read(list, client)
	w.failures = 0
	return pollInterval, nil
}

// unanswered distinguishes a daemon that does not answer from a broken connection. dbus-broker
// reports a name without an owner both for a daemon that fails to start and for one that is not
// installed. A daemon that left between its signal and the call is neither of these.
func (w *watch) unanswered(ctx context.Context, err error, signalled bool) (time.Duration, error) {
	if ctx.Err() != nil || host.IsBroken(err) && !errors.Is(err, errMalformed) {
		return 0, err
	}
	logr.FromContextOrDiscard(ctx).V(4).Info("Got no answer", "reason", err.Error())
	why := "no reply in time."
	switch {
	case errors.Is(err, errMalformed):
		service.Ignore(ctx, w.engine.Malformed, err)
		why = "its answer cannot be read."
	case host.NoOwner(err) && signalled:
		return firstRetry, nil
	case host.NoOwner(err):
		startable, err := w.Startable(ctx)
		if err != nil {
			return 0, err
		}
		if !startable {
			w.memory.lost("rpm-ostree is not on the system bus.", engine.Missing)
			return pollInterval, nil // NameOwnerChanged announces its start.
		}
		why = "the system bus cannot start it."
	case host.ErrorName(err) != "":
		why = host.ErrorName(err) + "."
	}
	w.failures++
	w.Silent = true
	w.memory.lost("rpm-ostree does not report its deployments: "+why, engine.Silent)
	return timing.Backoff(w.failures, firstRetry, pollInterval), nil
}

// occasions are the properties that may change which deployment boots next. A change makes the
// Engine read them, because the values in a signal are not used. CachedUpdate is not included.
var occasions = map[string][]string{
	sysrootInterface: {"Deployments", "Booted"},
	osInterface:      {"DefaultDeployment", "BootedDeployment"},
}

// isOccasion reads the body of a PropertiesChanged, sa{sv}as: the interface, changed properties
// with their values, and names of other changed properties.
func isOccasion(body []any) (bool, error) {
	if len(body) != 3 {
		return false, fmt.Errorf("%d values instead of 3", len(body))
	}
	iface, ifaceOK := body[0].(string)
	changed, changedOK := body[1].(map[string]dbus.Variant)
	invalidated, invalidatedOK := body[2].([]string)
	if !ifaceOK || !changedOK || !invalidatedOK {
		return false, errors.New("types other than sa{sv}as")
	}
	return slices.ContainsFunc(occasions[iface], func(name string) bool {
		_, found := changed[name]
		return found || slices.Contains(invalidated, name)
	}), nil
}
