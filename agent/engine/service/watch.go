// Package service follows one service on the system bus, such as update_engine. It survives
// restarts and the absence of both the service and the bus. A Listener handles what the service
// sends.
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
	// pollInterval is the time between two reads of a service. A need may be withdrawn without a
	// signal.
	pollInterval = 5 * time.Minute
	// retryInterval is the pause after a read that was not answered.
	retryInterval = 30 * time.Second
	// callLimit limits the time of one call. The watched services answer from memory.
	callLimit = 10 * time.Second
)

// Listener handles the signals and answers of a service. Its methods are never called concurrently.
type Listener interface {
	// Receive handles the body of a signal. fromOwner is true if the service itself sent it. An
	// error means that the body is malformed; it is only counted.
	Receive(member string, body []any, fromOwner bool) error
	// Read queries the status of the service and returns the error of the last call.
	Read(ctx context.Context, call Call) error
	// Lost receives the reason that the service cannot be queried, as a sentence, and its presence,
	// which is never Answering. Both hold until the next successful Read.
	Lost(why string, presence engine.Presence)
}

// Call calls a method of the service's interface without arguments and passes the body of the
// answer to take. An error of take means that the answer is malformed.
type Call func(ctx context.Context, method string, take func(body []any) error) error

// Watch describes one service on the system bus. All fields but OwnerOnly are required.
type Watch struct {
	// Bus holds the options of the engine that watches.
	Bus

	// Title names the service for people.
	Title string
	// Name is its name on the bus.
	Name string
	// Path is the object of the service.
	Path dbus.ObjectPath
	// Interface is the interface of the object.
	Interface string
	// Signals are the signals of the interface to receive.
	Signals []string
	// OwnerOnly ignores signals that the service did not send itself.
	OwnerOnly bool
}

// Run follows the service until ctx ends. It reads the service every pollInterval and whenever it
// appears.
func (w Watch) Run(ctx context.Context, l Listener) {
	w.Supervise(ctx, l.Lost, func(ctx context.Context, conn *dbus.Conn) error {
		s := session{Link: Link{Conn: conn, Name: w.Name, Limit: callLimit}, watch: w, listener: l}
		return s.Follow(ctx, Occasions{Clock: w.Clock, Again: w.Again, Rules: w.rules(), Receive: s.receive},
			func(ctx context.Context, _ bool) (time.Duration, error) { return s.ask(ctx) })
	})
}

// rules returns the match rules for the service's signals. A rule that names a sender makes the bus
// drop broadcasts of others.
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

// session follows the service on one connection.
type session struct {
	Link

	watch    Watch
	listener Listener

	// read is the position of the last answer in the stream. A broadcast between Found and read may
	// be newer or older than the answer, so the service is read once more.
	read dbus.Sequence
}

// receive handles one signal and reports whether to read the service.
func (s *session) receive(ctx context.Context, signal *dbus.Signal) bool {
	switch {
	case IsOwnerChange(signal):
		return signal.Sequence > s.Found
	case signal.Path == s.watch.Path:
		return s.receiveStatus(ctx, signal)
	}
	return false
}

// receiveStatus forwards a signal that is newer than the last answer. It reports whether to read
// the service, because the signal may be newer or older than that answer.
func (s *session) receiveStatus(ctx context.Context, signal *dbus.Signal) bool {
	member, ours := strings.CutPrefix(signal.Name, s.watch.Interface+".")
	fromOwner := s.Owner != "" && signal.Sender == s.Owner
	switch {
	case !ours || !slices.Contains(s.watch.Signals, member):
		return false
	case s.watch.OwnerOnly && !fromOwner:
		return false // Match rules do not filter signals that are addressed to this connection.
	case fromOwner && signal.Sequence < s.read:
		return signal.Sequence > s.Found
	}
	if err := s.listener.Receive(member, signal.Body, fromOwner); err != nil {
		Ignore(ctx, s.watch.Malformed, err)
	}
	return false
}

// ask looks up the owner of the name, reads its status, and returns the time until the next read.
// An error means that the connection is broken. A service that does not answer is not an error.
func (s *session) ask(ctx context.Context) (time.Duration, error) {
	if err := s.FindOwner(ctx); err != nil {
		return 0, err
	}
	if s.Owner == "" {
		return pollInterval, s.ownerless(ctx) // NameOwnerChanged announces it.
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
		return retryInterval, nil // It left after the lookup: NameOwnerChanged is on its way.
	}
	if host.ErrorName(err) == errNoReply {
		// The bus also reports this error for a service that left before it answered.
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

// ownerless reports that the name has no owner. It does not start a service that the bus could
// start.
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

// unansweredError is the error of a call that returned no valid status.
type unansweredError struct {
	// why is the rest of a sentence about the service.
	why string
	// malformed is true if there was an answer.
	malformed bool
	cause     error
}

func (e *unansweredError) Error() string { return e.why + " " + e.cause.Error() }
func (e *unansweredError) Unwrap() error { return e.cause }

// IsUnknownMethod reports whether a Call failed because this version of the service does not have
// the method.
func IsUnknownMethod(err error) bool { return host.ErrorName(err) == busDaemon+".Error.UnknownMethod" }

// call calls a method of the owner that was just looked up, so that the answer is certainly the
// owner's.
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
		return &unansweredError{why: fmt.Sprintf("answers %s with something that is not a status.", method), malformed: true, cause: err}
	}
	return nil
}
