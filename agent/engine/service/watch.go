// Package service follows one service on the system bus, such as update_engine: through its restarts and the bus's, and
// through the absence of both. A Listener reads what the service sends and answers.
package service

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

const (
	// PollInterval is how often a service is read without any occasion: a need may be withdrawn without a signal.
	PollInterval = 5 * time.Minute
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

// Call calls a method without arguments of the service's interface and hands the body of the answer to take, whose error
// means that the answer is malformed.
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

// Run receives and reads the service until ctx ends. The service is read whenever it appears, and every PollInterval.
func (w Watch) Run(ctx context.Context, l Listener) {
	w.Supervise(ctx, l.Lost, func(ctx context.Context, conn *dbus.Conn) error {
		s := session{Link: Link{Conn: conn, Name: w.Name, Limit: callLimit}, watch: w, listener: l}
		return s.run(ctx)
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
