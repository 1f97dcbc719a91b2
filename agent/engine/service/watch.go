// Package service follows one service on the system bus, such as update_engine: through its restarts and the bus's, and
// through the absence of both. A Listener reads what the service sends and answers.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

const (
	// pollInterval is how often a service is read without any occasion: a need may be withdrawn without a signal.
	pollInterval = 5 * time.Minute
	// retryInterval is how soon it is read again after it did not answer.
	retryInterval = 30 * time.Second
	// callLimit bounds one call. The services watched answer from memory.
	callLimit = 10 * time.Second
)

// Listener reads what a service sends and answers. Its methods are called one after the other, never two at once.
type Listener interface {
	// Receive takes the body of a signal. fromOwner reports that the service itself sent it. An error means the body is
	// malformed: it is counted, and nothing else happens.
	Receive(member string, body []any, fromOwner bool) error
	// Read asks the service for its status and returns what the last call returned.
	Read(ctx context.Context, call Call) error
	// Lost takes a sentence that states why the service cannot be asked, and what is known of its presence: never Answering. It
	// stays until the next Read that succeeds.
	Lost(why string, presence engine.Presence)
}

// Call calls a method without arguments of the service's interface and passes the body of the answer to take. An error of take means
// that the answer is malformed.
type Call func(ctx context.Context, method string, take func(body []any) error) error

// Watch is one service on the system bus. All fields but OwnerOnly are required.
type Watch struct {
	// Bus is what the engine that watches was given.
	Bus

	// Title is what people call the service.
	Title string
	// Name is its name on the bus.
	Name string
	// Path is the object of the service.
	Path dbus.ObjectPath
	// Interface of the object.
	Interface string
	// Signals are the members of the interface to receive.
	Signals []string
	// OwnerOnly leaves out signals that the service did not send itself.
	OwnerOnly bool
}

// Run receives and reads the service until ctx ends. The service is read whenever it appears, and every pollInterval.
func (w Watch) Run(ctx context.Context, l Listener) {
	w.Supervise(ctx, l.Lost, func(ctx context.Context, conn *dbus.Conn) error {
		s := session{Link: Link{Conn: conn, Name: w.Name, Limit: callLimit}, watch: w, listener: l}
		return s.Follow(ctx, Occasions{Clock: w.Clock, Again: w.Again, Rules: w.rules(), Receive: s.receive},
			func(ctx context.Context, _ bool) (time.Duration, error) { return s.ask(ctx) })
	})
}

// rules select the signals of the service. One that names a sender makes the bus drop what others broadcast.
func (w Watch) rules() [][]dbus.MatchOption {
	rules := make([][]dbus.MatchOption, 0, len(w.Signals))
	for _, member := range w.Signals {
		rule := []dbus.MatchOption{dbus.WithMatchObjectPath(w.Path), dbus.WithMatchInterface(w.Interface), dbus.WithMatchMember(member)}
		if w.OwnerOnly {
			rule = append(rule, dbus.WithMatchSender(w.Name))
		}
		rules = append(rules, rule)
	}
	return rules
}

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
		return false // A match rule does not hold back a signal that is addressed to this connection.
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
		return pollInterval, s.ownerless(ctx) // NameOwnerChanged reports when it comes.
	}
	err := s.listener.Read(ctx, s.call)
	if err == nil {
		return pollInterval, nil
	}
	failed, ok := errors.AsType[*unansweredError](err)
	switch {
	case ctx.Err() != nil || !ok || !failed.malformed && host.IsBroken(err):
		return 0, err
	case host.NoOwner(err):
		return retryInterval, nil // It left between the look-up and the question: NameOwnerChanged is on its way.
	}
	if host.ErrorName(err) == errNoReply {
		// The bus reports it for a service that left before it answered, too.
		asked := s.Owner
		if err := s.FindOwner(ctx); err != nil {
			return 0, err
		}
		if s.Owner != asked {
			return s.ask(ctx)
		}
	}
	if failed.malformed {
		Ignore(ctx, s.watch.Malformed, failed.cause)
	} else {
		logr.FromContextOrDiscard(ctx).V(4).Info("Got no answer", "reason", err.Error())
	}
	s.Silent = true
	s.listener.Lost(s.watch.Title+" "+failed.why, engine.Silent)
	return retryInterval, nil
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

// unansweredError is a call that gave no status.
type unansweredError struct {
	// why is half a sentence about the service.
	why string
	// malformed reports that there was an answer.
	malformed bool
	cause     error
}

func (e *unansweredError) Error() string { return e.why + " " + e.cause.Error() }
func (e *unansweredError) Unwrap() error { return e.cause }

// IsUnknownMethod reports whether a Call failed because the service is of a version without the method.
func IsUnknownMethod(err error) bool { return host.ErrorName(err) == busDaemon+".Error.UnknownMethod" }

// call calls a method of the owner just found, so that the answer is surely its.
func (s *session) call(ctx context.Context, method string, take func(body []any) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	call := s.Conn.Object(s.Owner, s.watch.Path).CallWithContext(ctx, s.watch.Interface+"."+method, dbus.FlagNoAutoStart)
	if call.Err != nil {
		why := fmt.Sprintf("does not answer %s: %s.", method, cmp.Or(host.ErrorName(call.Err), "no reply in time"))
		return &unansweredError{why: why, cause: call.Err}
	}
	s.read = call.ResponseSequence
	if err := take(call.Body); err != nil {
		return &unansweredError{why: fmt.Sprintf("answers %s with something that is no status.", method), malformed: true, cause: err}
	}
	return nil
}
