package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The manager object of logind: https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html
const (
	logindName      = "org.freedesktop.login1"
	logindPath      = dbus.ObjectPath("/org/freedesktop/login1")
	logindInterface = "org.freedesktop.login1.Manager"
)

// Flags of RebootWithFlags.
const (
	// flagCheckInhibitors makes block inhibitors count for root, too. Without it, systemd before
	// 257 ignores them. Even with it, that systemd ignores those that root holds. From 257 on, the
	// flag makes the weak inhibitors of other users count.
	flagCheckInhibitors uint64 = 1 << 0
	// flagSkipInhibitors ignores block inhibitors. Systemd before 257 does not support it.
	flagSkipInhibitors uint64 = 1 << 4
)

// Names of D-Bus errors that Reboot handles.
const (
	errUnknownMethod       = "org.freedesktop.DBus.Error.UnknownMethod"
	errInvalidArgs         = "org.freedesktop.DBus.Error.InvalidArgs"
	errBlockedByInhibitor  = "org.freedesktop.login1.BlockedByInhibitorLock"
	errOperationInProgress = "org.freedesktop.login1.OperationInProgress"
)

// Inhibitor is one lock of logind.
type Inhibitor struct {
	// Who took the lock, and Why, as text for people.
	Who, Why string
}

// RefusedError means that no reboot has started, because logind refused or a block inhibitor is
// held.
type RefusedError struct {
	// Name is the name of the D-Bus error, for example org.freedesktop.DBus.Error.AccessDenied.
	Name string
	// Message is logind's text, or names the holder of the inhibitor. It may be empty.
	Message string
}

// Error returns the message and the name.
func (e *RefusedError) Error() string {
	if e.Message == "" {
		return "logind refused: " + e.Name
	}
	return fmt.Sprintf("logind refused: %s (%s)", e.Message, e.Name)
}

// Logind is a client of the host's logind. Each call uses a new connection, so a restarted bus
// needs no special handling.
type Logind struct {
	// Connect opens the system bus. Required.
	Connect Connect
}

// BlockInhibitors lists the locks that forbid a reboot: those on shutdown in mode block, and those
// of other users in mode block-weak, for which logind refuses, too. Delay locks, such as the
// kubelet's, are left out. Without such locks it lists logind itself if logind would refuse to
// reboot the host, so that this is known before the node is drained.
func (l Logind) BlockInhibitors(ctx context.Context) ([]Inhibitor, error) {
	var blocking []Inhibitor
	err := l.manager(ctx, func(ctx context.Context, m manager) (err error) {
		if blocking, err = m.blockInhibitors(ctx); err != nil || len(blocking) > 0 {
			return err
		}
		refusal, err := m.canReboot(ctx, v1alpha1.ObstacleBlock)
		if refusal != nil {
			blocking = []Inhibitor{{Who: "logind", Why: refusal.Message}}
		}
		return err
	})
	return blocking, err
}

// Reboot asks logind to reboot the host. Nil means that the reboot was accepted or is already under
// way, not that the host has gone down, so the caller needs a deadline. A *RefusedError means that
// no reboot has started. After any other error it may have.
func (l Logind) Reboot(ctx context.Context, inhibitors v1alpha1.Obstacle) error {
	return l.manager(ctx, func(ctx context.Context, m manager) error {
		refusal, err := m.canReboot(ctx, inhibitors)
		switch {
		case err != nil:
			return err
		case refusal != nil:
			return refusal
		}
		return m.reboot(ctx, inhibitors)
	})
}

// Refuses returns why logind would refuse to reboot the host even though block inhibitors are
// ignored, or an empty string. So this is known before the node is drained.
func (l Logind) Refuses(ctx context.Context) (why string, err error) {
	conn, err := l.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	m := manager{conn.Object(logindName, logindPath)}
	refusal, err := m.canReboot(ctx, v1alpha1.ObstacleIgnore)
	switch {
	case err != nil:
		return "", err
	case refusal != nil:
		return refusal.Message, nil
	}
	locks, err := m.locks(ctx)
	if err != nil {
		return "", nil // No known lock could prevent the reboot.
	}
	strong := slices.IndexFunc(locks, func(l lock) bool { return l.Mode == "block" && l.onShutdown() })
	if strong < 0 || !bindsRoot(ctx, conn) || hasPolkit(ctx, conn) {
		return "", nil
	}
	return fmt.Sprintf("%s holds a block inhibitor (%s), and since systemd 257 only polkit can permit ignoring it, but the host has no polkit",
		locks[strong].Who, locks[strong].Why), nil
}

// GoingDown reports whether logind is taking the host down, for a reboot or anything else.
func (l Logind) GoingDown(ctx context.Context) (underWay bool, err error) {
	err = l.manager(ctx, func(ctx context.Context, m manager) (err error) {
		underWay, err = m.goingDown(ctx)
		return err
	})
	return underWay, err
}

// manager calls use with a new connection.
func (l Logind) manager(ctx context.Context, use func(context.Context, manager) error) error {
	conn, err := l.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return use(ctx, manager{conn.Object(logindName, logindPath)})
}

// manager is logind's manager object on an open connection.
type manager struct{ object dbus.BusObject }

// call calls a method, stores the reply in the pointers, and adds the method to an error.
func (m manager) call(ctx context.Context, method string, args []any, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := m.object.CallWithContext(ctx, method, 0, args...).Store(into...); err != nil {
		return fmt.Errorf("calling %s of logind: %w", method[strings.LastIndexByte(method, '.')+1:], refused(err))
	}
	return nil
}

// lock is an inhibitor as logind lists it.
type lock struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// onShutdown reports whether the lock is on shutdown, among other things.
func (l lock) onShutdown() bool { return slices.Contains(strings.Split(l.What, ":"), "shutdown") }

func (m manager) locks(ctx context.Context) ([]lock, error) {
	var locks []lock
	return locks, m.call(ctx, logindInterface+".ListInhibitors", nil, &locks)
}

func (m manager) blockInhibitors(ctx context.Context) ([]Inhibitor, error) {
	locks, err := m.locks(ctx)
	if err != nil {
		return nil, err
	}
	var blocking []Inhibitor
	for _, lock := range locks {
		blocks := lock.Mode == "block" || lock.Mode == "block-weak" && lock.UID != uint32(os.Getuid())
		if blocks && lock.onShutdown() {
			blocking = append(blocking, Inhibitor{Who: lock.Who, Why: lock.Why})
		}
	}
	return blocking, nil
}

// canReboot returns a refusal unless logind clearly permits a reboot. "challenge" would ask a
// person for a password.
func (m manager) canReboot(ctx context.Context, inhibitors v1alpha1.Obstacle) (*RefusedError, error) {
	var answer string
	if err := m.call(ctx, logindInterface+".CanReboot", nil, &answer); err != nil {
		return nil, err
	}
	switch answer {
	case "yes":
		return nil, nil
	case "inhibitor-blocked": // newer systemd returns it instead of yes while a block inhibitor is held
		if inhibitors == v1alpha1.ObstacleIgnore {
			return nil, nil
		}
		return &RefusedError{Name: errBlockedByInhibitor, Message: "CanReboot returns " + answer}, nil
	default:
		return &RefusedError{Name: logindInterface + ".CanReboot", Message: fmt.Sprintf("CanReboot returns %.32q", answer)}, nil
	}
}

func (m manager) reboot(ctx context.Context, inhibitors v1alpha1.Obstacle) error {
	flags := flagCheckInhibitors
	if inhibitors == v1alpha1.ObstacleIgnore {
		flags = flagSkipInhibitors
	}
	err := m.callUnlessInhibited(ctx, inhibitors, logindInterface+".RebootWithFlags", flags)
	if lacksFlag(err, flags) {
		err = m.callUnlessInhibited(ctx, inhibitors, logindInterface+".Reboot", false)
	}
	if isRefusal(err, errOperationInProgress) {
		return m.alreadyGoingDown(ctx, err)
	}
	return err
}

// lacksFlag reports whether systemd does not have RebootWithFlags, or does not support the flag to
// skip inhibitors.
func lacksFlag(err error, flags uint64) bool {
	return isRefusal(err, errUnknownMethod) || flags == flagSkipInhibitors && isRefusal(err, errInvalidArgs)
}

// callUnlessInhibited calls a method that reboots the host, right after it has checked the block
// inhibitors. Systemd before 257 does not refuse because of inhibitors of the caller's own uid, and
// root holds almost all of them.
func (m manager) callUnlessInhibited(ctx context.Context, inhibitors v1alpha1.Obstacle, method string, arg any) error {
	if inhibitors != v1alpha1.ObstacleIgnore {
		blocking, err := m.blockInhibitors(ctx)
		if err != nil {
			return err
		}
		if len(blocking) > 0 {
			return &RefusedError{Name: errBlockedByInhibitor, Message: fmt.Sprintf("%s holds a block inhibitor: %s", blocking[0].Who, blocking[0].Why)}
		}
	}
	return m.call(ctx, method, []any{arg})
}

// alreadyGoingDown returns nil if logind is already taking the host down, and the refusal
// otherwise. An agent that was restarted after its call would otherwise report its own reboot as
// refused.
func (m manager) alreadyGoingDown(ctx context.Context, refusal error) error {
	if underWay, err := m.goingDown(ctx); err == nil && underWay {
		return nil
	}
	return refusal
}

func (m manager) goingDown(ctx context.Context) (bool, error) {
	var preparing dbus.Variant
	if err := m.call(ctx, propertiesInterface+".Get", []any{logindInterface, "PreparingForShutdown"}, &preparing); err != nil {
		return false, err
	}
	underWay, ok := preparing.Value().(bool)
	if !ok {
		return false, fmt.Errorf("PreparingForShutdown of logind has type %s", preparing.Signature())
	}
	return underWay, nil
}

// refused turns an error reply of logind, or of the bus, into a *RefusedError. After an error
// without a reply, such as a lost connection or a time-out, logind may have obeyed, so such errors
// stay as they are.
func refused(err error) error {
	answer, ok := errors.AsType[dbus.Error](err)
	if !ok {
		return err
	}
	switch answer.Name {
	case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Timeout",
		"org.freedesktop.DBus.Error.TimedOut", "org.freedesktop.DBus.Error.Disconnected":
		return err
	}
	refusal := &RefusedError{Name: answer.Name}
	if text := answer.Error(); text != answer.Name {
		refusal.Message = text
	}
	return refusal
}

func isRefusal(err error, name string) bool {
	refusal, ok := errors.AsType[*RefusedError](err)
	return ok && refusal.Name == name
}
