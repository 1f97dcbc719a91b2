// Package host gives the agent access to the machine: the system bus, logind, the boot ID,
// os-release, and the other programs that may reboot it. It asks logind for a reboot, and writes
// nothing to the host.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// connectLimit limits connecting, authenticating and Hello together. A running bus answers within
// milliseconds.
const connectLimit = 10 * time.Second

// callLimit limits one method call. It is the default of D-Bus.
const callLimit = 25 * time.Second

// Connect opens a connection that is ready for calls. It is closed by the caller, or when ctx ends.
type Connect func(ctx context.Context) (*dbus.Conn, error)

// SystemBus returns a Connect for a D-Bus address such as unix:path=/run/dbus/system_bus_socket. It
// authenticates as the user of the process (EXTERNAL) and gives up after 10 seconds. Signals arrive
// in the order in which the bus sent them. A nil signal means that signals are missing.
func SystemBus(address string) Connect {
	return func(ctx context.Context) (*dbus.Conn, error) {
		conn, err := connect(ctx, address, connectLimit)
		if err != nil {
			return nil, fmt.Errorf("connecting to the bus at %q: %w", address, err)
		}
		return conn, nil
	}
}

func connect(ctx context.Context, address string, limit time.Duration) (*dbus.Conn, error) {
	path, err := SocketOf(address, "/")
	if err != nil {
		return nil, err
	}
	greeting, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	socket, err := new(net.Dialer).DialContext(greeting, "unix", path)
	if err != nil {
		return nil, err
	}
	reader := bounded(socket)
	over := struct {
		io.Reader
		io.WriteCloser
	}{reader, socket}
	conn, err := dbus.NewConn(over, dbus.WithContext(ctx), dbus.WithSignalHandler(&signals{from: reader}))
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	// Auth and Hello do not take a context, but closing the connection ends them.
	inTime := context.AfterFunc(greeting, func() { _ = conn.Close() })
	err = greet(conn)
	if !inTime() {
		return nil, context.Cause(greeting)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func greet(conn *dbus.Conn) error {
	if err := conn.Auth(nil); err != nil {
		return fmt.Errorf("authenticating: %w", err)
	}
	if err := conn.Hello(); err != nil {
		return fmt.Errorf("registering on the bus: %w", err)
	}
	return nil
}

// The pause before the next connection doubles from firstPause to lastPause, with a jitter of half.
// A bus that restarts is back within a second, and a missing bus costs almost nothing.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Session works on one connection. It returns when the connection cannot be used any more, or ctx
// ends.
type Session func(ctx context.Context, conn *dbus.Conn) error

// Supervisor keeps a Session running while the bus comes and goes.
type Supervisor struct {
	// Connect opens a connection. Required.
	Connect Connect
	// Clock measures the pauses. Required.
	Clock clock.Clock
	// Broken is called with the error each time a connection could not be made or a session ended.
	// Required.
	Broken func(error)
}

// Run opens one connection after the other and runs session on each, until ctx ends. Each
// connection is closed after its session. A session that lasted resets the pauses.
func (s Supervisor) Run(ctx context.Context, session Session) {
	for failures := 1; ; failures++ {
		began := s.Clock.Now()
		err := s.once(ctx, session)
		if ctx.Err() != nil {
			return
		}
		s.Broken(err)
		if s.Clock.Since(began) > lastPause {
			failures = 1
		}
		wait := timing.Backoff(failures, firstPause, lastPause)
		if !lifecycle.Pause(ctx, s.Clock, wait/2+rand.N(wait)) {
			return
		}
	}
}

func (s Supervisor) once(ctx context.Context, session Session) error {
	conn, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return session(ctx, conn)
}

// maxErrorNameBytes is the longest name that D-Bus allows.
const maxErrorNameBytes = 255

// ErrorName returns the D-Bus name of an error reply, such as
// org.freedesktop.DBus.Error.AccessDenied, or an empty string for other errors. A name that is
// invalid is replaced by org.freedesktop.DBus.Error.Failed. The name may be reported. The text of
// the error may not, because it contains connection names and process IDs.
func ErrorName(err error) string {
	name, answered := answerName(err)
	if !answered {
		return ""
	}
	if name == "" || len(name) > maxErrorNameBytes || !isMadeOf(name, "._") {
		return "org.freedesktop.DBus.Error.Failed"
	}
	return name
}

// answerName returns the name as the service sent it. A RefusedError has kept it.
func answerName(err error) (name string, answered bool) {
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		return refusal.Name, true
	}
	answer, ok := errors.AsType[dbus.Error](err)
	return answer.Name, ok
}

// IsBroken reports whether a call failed because its connection did: it ended without a reply and
// without a time-out. The connection itself notices that a moment later, when it reads.
func IsBroken(err error) bool {
	_, answered := answerName(err)
	return err != nil && !answered && !errors.Is(err, context.DeadlineExceeded)
}

// NoOwner reports whether a call failed because the service is not on the bus and could not be
// started.
func NoOwner(err error) bool {
	name := ErrorName(err)
	return name == errServiceUnknown || name == errNameHasNoOwner
}
