package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

const (
	busDaemon       = "org.freedesktop.DBus"
	ownerChanged    = busDaemon + ".NameOwnerChanged"
	errNameHasOwner = busDaemon + ".Error.NameHasNoOwner"
	errNoReply      = busDaemon + ".Error.NoReply"
)

// errSignalsEnded is the end of a session: godbus closes the channel when the connection breaks.
var errSignalsEnded = errors.New("the connection to the bus broke")

// session is what is heard on one connection.
type session struct {
	watch    Watch
	conn     *dbus.Conn
	listener Listener

	// owner is the unique name behind the service's. Empty: nobody has it.
	owner string
	// found is when the bus said so, just before the status is asked for. Whatever was told earlier is older news.
	found dbus.Sequence
	// read is when the last status was told. What the service broadcast between found and read may be newer or older than
	// that: it is asked once more.
	read dbus.Sequence
}

func (s *session) run(ctx context.Context) error {
	signals := make(chan *dbus.Signal, 64)
	s.conn.Signal(signals)
	if err := s.subscribe(ctx); err != nil {
		return err
	}
	wait, err := s.ask(ctx)
	if err != nil {
		return err
	}
	poll := s.watch.Clock.NewTimer(wait)
	defer poll.Stop()
	for {
		again, looked := false, chan<- struct{}(nil)
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C():
			again = true
		case looked = <-s.watch.Again:
			again = true
		case signal, open := <-signals:
			if !open {
				return errSignalsEnded
			}
			again = s.hear(ctx, signal)
		}
		if again {
			if wait, err = s.ask(ctx); err != nil {
				return err
			}
			poll.Reset(wait)
		}
		if looked != nil {
			close(looked)
		}
	}
}

// subscribe comes before the first question, so that nothing falls between them. A rule that names a sender makes the
// bus drop what anybody else broadcasts.
func (s *session) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for _, member := range s.watch.Signals {
		rule := []dbus.MatchOption{
			dbus.WithMatchObjectPath(s.watch.Path), dbus.WithMatchInterface(s.watch.Interface), dbus.WithMatchMember(member),
		}
		if s.watch.OwnerOnly {
			rule = append(rule, dbus.WithMatchSender(s.watch.Name))
		}
		if err := s.conn.AddMatchSignalContext(ctx, rule...); err != nil {
			return fmt.Errorf("subscribing to %s: %w", member, err)
		}
	}
	err := s.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(busDaemon),
		dbus.WithMatchInterface(busDaemon), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, s.watch.Name))
	if err != nil {
		return fmt.Errorf("subscribing to NameOwnerChanged: %w", err)
	}
	return nil
}

// hear takes one signal and tells whether the service should be asked.
func (s *session) hear(ctx context.Context, signal *dbus.Signal) bool {
	switch {
	case signal == nil:
		s.watch.malformed(ctx, errors.New("no signal"))
	case signal.Sender == busDaemon && signal.Name == ownerChanged:
		// Somebody else could send a signal of this name straight to us, but not under the name of the bus.
		return signal.Sequence > s.found
	case signal.Path == s.watch.Path:
		return s.hearStatus(ctx, signal)
	}
	return false
}

// hearStatus passes on what is news, and tells whether the service should be asked which of two words is the newer one.
func (s *session) hearStatus(ctx context.Context, signal *dbus.Signal) bool {
	member, ours := strings.CutPrefix(signal.Name, s.watch.Interface+".")
	fromOwner := s.owner != "" && signal.Sender == s.owner
	switch {
	case !ours || !slices.Contains(s.watch.Signals, member):
		return false
	case s.watch.OwnerOnly && !fromOwner:
		return false // A rule does not hold back what is sent straight to us.
	case fromOwner && signal.Sequence < s.read:
		return signal.Sequence > s.found
	}
	if err := s.listener.Hear(member, signal.Body, fromOwner); err != nil {
		s.watch.malformed(ctx, err)
	}
	return false
}

// ask finds out who the service is and what it says, and returns when to ask again. An error means that the connection
// is of no more use; that the service does not answer is something learnt.
func (s *session) ask(ctx context.Context) (time.Duration, error) {
	owner, err := s.findOwner(ctx)
	if err != nil {
		return 0, err
	}
	s.owner = owner
	if owner == "" {
		return PollInterval, s.ownerless(ctx) // NameOwnerChanged tells when it comes.
	}
	err = s.listener.Read(ctx, s.call)
	switch {
	case err == nil:
		return PollInterval, nil
	case ctx.Err() != nil || isBroken(err):
		return 0, err
	case hasLeft(err):
		return retryInterval, nil // It left between the look-up and the question: NameOwnerChanged is on its way.
	}
	gone, lost := s.leftUnanswered(ctx, err)
	switch {
	case lost != nil:
		return 0, lost
	case gone:
		return s.ask(ctx)
	}
	s.unanswered(ctx, err)
	return retryInterval, nil
}

// leftUnanswered reports whether the service that was asked has gone without an answer: the bus says of both that there was no
// reply. Another look may find that nobody has the name, or another process.
func (s *session) leftUnanswered(ctx context.Context, err error) (bool, error) {
	if host.ErrorName(err) != errNoReply {
		return false, nil
	}
	owner, err := s.findOwner(ctx)
	return owner != s.owner, err
}

// findOwner returns the unique name that owns the service's, or "".
func (s *session) findOwner(ctx context.Context) (string, error) {
	var owner string
	call := limited(ctx, s.conn.BusObject(), busDaemon+".GetNameOwner", s.watch.Name)
	s.found = call.ResponseSequence
	if host.ErrorName(call.Err) == errNameHasOwner {
		return "", nil
	}
	if err := call.Store(&owner); err != nil {
		return "", fmt.Errorf("looking up the owner of %s: %w", s.watch.Name, err)
	}
	return owner, nil
}

// ownerless says that nobody has the name. A service that the bus could start is installed all the same; it is not started.
func (s *session) ownerless(ctx context.Context) error {
	var startable []string
	err := limited(ctx, s.conn.BusObject(), busDaemon+".ListActivatableNames").Store(&startable)
	switch {
	case ctx.Err() != nil || host.IsBroken(err):
		return fmt.Errorf("looking for %s among what the bus can start: %w", s.watch.Name, cmp.Or(err, ctx.Err()))
	case slices.Contains(startable, s.watch.Name):
		s.listener.Lost(s.watch.Title+" is not running.", engine.Silent)
	default:
		s.listener.Lost(s.watch.Title+" is not on the system bus.", engine.Missing)
	}
	return nil
}

// call calls a method of the owner just found, so that the answer is surely its.
func (s *session) call(ctx context.Context, method string, take func(body []any) error) error {
	call := limited(ctx, s.conn.Object(s.owner, s.watch.Path), s.watch.Interface+"."+method)
	if call.Err != nil {
		return &unansweredError{method: method, cause: call.Err}
	}
	s.read = call.ResponseSequence
	if err := take(call.Body); err != nil {
		return &unansweredError{method: method, malformed: true, cause: err}
	}
	return nil
}

func limited(ctx context.Context, object dbus.BusObject, method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return object.CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...)
}
