package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

const errNoReply = busDaemon + ".Error.NoReply"

// session is what is received and read on one link.
type session struct {
	Link

	watch    Watch
	listener Listener

	// read is when the last status was answered. What the service broadcast between Found and read may be newer or older than
	// that: it is read once more.
	read dbus.Sequence
}

func (s *session) run(ctx context.Context) error {
	return s.Follow(ctx, Occasions{Clock: s.watch.Clock, Again: s.watch.Again, Rules: s.watch.rules(), Receive: s.receive},
		func(ctx context.Context, _ bool) (time.Duration, error) { return s.ask(ctx) })
}

// receive takes one signal and reports whether the service should be asked.
func (s *session) receive(ctx context.Context, signal *dbus.Signal) bool {
	switch {
	case signal == nil:
		Ignore(ctx, s.watch.Malformed, errors.New("no signal"))
	case IsOwnerChange(signal):
		return signal.Sequence > s.Found
	case signal.Path == s.watch.Path:
		return s.receiveStatus(ctx, signal)
	}
	return false
}

// receiveStatus passes a signal on if it is newer than the last answer. It reports whether the service should be asked, because the
// signal may be newer or older than that answer.
func (s *session) receiveStatus(ctx context.Context, signal *dbus.Signal) bool {
	member, ours := strings.CutPrefix(signal.Name, s.watch.Interface+".")
	fromOwner := s.Owner != "" && signal.Sender == s.Owner
	switch {
	case !ours || !slices.Contains(s.watch.Signals, member):
		return false
	case s.watch.OwnerOnly && !fromOwner:
		return false // A rule does not hold back what is sent straight to us.
	case fromOwner && signal.Sequence < s.read:
		return signal.Sequence > s.Found
	}
	if err := s.listener.Receive(member, signal.Body, fromOwner); err != nil {
		Ignore(ctx, s.watch.Malformed, err)
	}
	return false
}

// ask finds out who the service is and what it reports, and returns when to ask again. An error means that the connection
// is of no more use; that the service does not answer is something learnt.
func (s *session) ask(ctx context.Context) (time.Duration, error) {
	if err := s.FindOwner(ctx); err != nil {
		return 0, err
	}
	if s.Owner == "" {
		return PollInterval, s.ownerless(ctx) // NameOwnerChanged reports when it comes.
	}
	err := s.listener.Read(ctx, s.call)
	switch {
	case err == nil:
		return PollInterval, nil
	case ctx.Err() != nil || isBroken(err):
		return 0, err
	case host.NoOwner(err):
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

// leftUnanswered reports whether the service left the bus before it answered. The bus reports NoReply for that, and for a service that
// is there and does not answer. So the owner of the name is looked up again.
func (s *session) leftUnanswered(ctx context.Context, err error) (bool, error) {
	if host.ErrorName(err) != errNoReply {
		return false, nil
	}
	asked := s.Owner
	err = s.FindOwner(ctx)
	return s.Owner != asked, err
}

// ownerless reports that the name has no owner. A service that the bus could start is not started.
func (s *session) ownerless(ctx context.Context) error {
	startable, err := s.Startable(ctx)
	switch {
	case err != nil:
		return err
	case startable:
		s.listener.Lost(s.watch.Title+" is not running.", engine.Silent)
	default:
		s.listener.Lost(s.watch.Title+" is not on the system bus.", engine.Missing)
	}
	return nil
}

// call calls a method of the owner just found, so that the answer is surely its.
func (s *session) call(ctx context.Context, method string, take func(body []any) error) error {
	call := limited(ctx, s.Conn.Object(s.Owner, s.watch.Path), s.watch.Interface+"."+method)
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
