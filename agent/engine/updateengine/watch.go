package updateengine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"
)

// https://github.com/flatcar/update_engine/blob/flatcar-master/update_engine.xml, except that the object is registered
// at this path and not at the one written there.
const (
	busName         = "com.coreos.update1"
	objectPath      = dbus.ObjectPath("/com/coreos/update1")
	getStatus       = "com.coreos.update1.Manager.GetStatus"
	busDaemon       = "org.freedesktop.DBus"
	statusUpdate    = "com.coreos.update1.Manager.StatusUpdate"
	ownerChanged    = busDaemon + ".NameOwnerChanged"
	errNameHasOwner = busDaemon + ".Error.NameHasNoOwner"
)

const (
	// pollInterval is how often GetStatus is read without any occasion: ResetStatus withdraws a need and tells nobody.
	pollInterval = 5 * time.Minute
	// retryInterval is how soon it is read again after update_engine did not answer.
	retryInterval = 30 * time.Second
	// callLimit bounds one call. update_engine answers from memory.
	callLimit = 10 * time.Second
)

// errSignalsEnded is the end of a session: godbus closes the channel when the connection breaks.
var errSignalsEnded = errors.New("the connection to the bus broke")

// watch is one session: what is heard on one connection.
type watch struct {
	engine *Engine
	conn   *dbus.Conn
	memory *memory

	// owner is the unique name behind update_engine's. Empty: nobody has it.
	owner string
	// found is when the bus said so. An earlier NameOwnerChanged is older news.
	found dbus.Sequence
	// read is when the last status was read. What the engine broadcast earlier is older news.
	read dbus.Sequence
}

func (w *watch) run(ctx context.Context) error {
	signals := make(chan *dbus.Signal, 64)
	w.conn.Signal(signals)
	if err := w.subscribe(ctx); err != nil {
		return err
	}
	wait, err := w.ask(ctx)
	if err != nil {
		return err
	}
	poll := w.engine.Clock.NewTimer(wait)
	defer poll.Stop()
	for {
		again := false
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C():
			again = true
		case signal, open := <-signals:
			if !open {
				return errSignalsEnded
			}
			again = w.hear(ctx, signal)
		}
		if again {
			if wait, err = w.ask(ctx); err != nil {
				return err
			}
			poll.Reset(wait)
		}
	}
}

// subscribe comes before the first GetStatus, so that nothing falls between them. The rule for StatusUpdate names no
// sender: the bus would drop the broadcast of locksmithctl.
func (w *watch) subscribe(ctx context.Context) error {
	err := w.conn.AddMatchSignalContext(ctx, dbus.WithMatchObjectPath(objectPath),
		dbus.WithMatchInterface("com.coreos.update1.Manager"), dbus.WithMatchMember("StatusUpdate"))
	if err != nil {
		return fmt.Errorf("subscribing to StatusUpdate: %w", err)
	}
	err = w.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(busDaemon),
		dbus.WithMatchInterface(busDaemon), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, busName))
	if err != nil {
		return fmt.Errorf("subscribing to NameOwnerChanged: %w", err)
	}
	return nil
}

// hear takes one signal and tells whether update_engine should be asked.
func (w *watch) hear(ctx context.Context, signal *dbus.Signal) bool {
	switch {
	case signal == nil:
		w.engine.malformed(ctx, errors.New("no signal"))
	case signal.Sender == busDaemon && signal.Name == ownerChanged:
		// Somebody else could send a signal of this name straight to us, but not under the name of the bus.
		return signal.Sequence > w.found
	case signal.Name == statusUpdate && signal.Path == objectPath:
		w.hearStatus(ctx, signal)
	}
	return false
}

func (w *watch) hearStatus(ctx context.Context, signal *dbus.Signal) {
	heard, err := decode(signal.Body)
	if err != nil {
		w.engine.malformed(ctx, err)
		return
	}
	fromEngine := w.owner != "" && signal.Sender == w.owner
	if fromEngine && signal.Sequence < w.read || !fromEngine && w.engine.RequireEngineSender {
		return
	}
	w.memory.add(input{status: heard, fromEngine: fromEngine})
}

// ask finds out who update_engine is and what it says, and returns when to ask again. An error means that the connection
// is of no more use; that update_engine does not answer is something learnt.
func (w *watch) ask(ctx context.Context) (time.Duration, error) {
	owner, err := w.findOwner(ctx)
	if err != nil {
		return 0, err
	}
	w.owner = owner
	if owner == "" {
		w.memory.add(input{unreachable: "update_engine is not on the system bus."})
		return pollInterval, nil // NameOwnerChanged tells when it comes.
	}
	in, err := w.readStatus(ctx)
	if err != nil {
		return 0, err
	}
	w.memory.add(in)
	if in.unreachable != "" {
		return retryInterval, nil
	}
	return pollInterval, nil
}

// findOwner returns the unique name that owns update_engine's, or "".
func (w *watch) findOwner(ctx context.Context) (string, error) {
	var owner string
	call := w.call(ctx, w.conn.BusObject(), busDaemon+".GetNameOwner", busName)
	w.found = call.ResponseSequence
	if refusal, ok := errors.AsType[dbus.Error](call.Err); ok && refusal.Name == errNameHasOwner {
		return "", nil
	}
	if err := call.Store(&owner); err != nil {
		return "", fmt.Errorf("looking up the owner of %s: %w", busName, err)
	}
	return owner, nil
}

// readStatus calls GetStatus of the owner just found, so that the answer is surely its.
func (w *watch) readStatus(ctx context.Context) (input, error) {
	call := w.call(ctx, w.conn.Object(w.owner, objectPath), getStatus)
	if call.Err != nil {
		return w.unanswered(ctx, call.Err)
	}
	w.read = call.ResponseSequence
	answered, err := decode(call.Body)
	if err != nil {
		w.engine.malformed(ctx, err)
		return input{unreachable: "update_engine answers GetStatus with something that is no status."}, nil
	}
	return input{status: answered, fromEngine: true}, nil
}

// unanswered tells an engine that does not answer from a connection that broke. The texts of D-Bus errors hold
// connection names and process IDs; only their names are stable enough for a report.
func (w *watch) unanswered(ctx context.Context, err error) (input, error) {
	if ctx.Err() != nil || !w.conn.Connected() {
		return input{}, fmt.Errorf("calling GetStatus: %w", err)
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Asked update_engine in vain", "engine", Name, "reason", err.Error())
	why := "no reply in time"
	if refusal, ok := errors.AsType[dbus.Error](err); ok {
		why = refusal.Name
	}
	return input{unreachable: fmt.Sprintf("update_engine does not answer GetStatus: %s.", why)}, nil
}

func (w *watch) call(ctx context.Context, object dbus.BusObject, method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return object.CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...)
}
