package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// locksmithUnit is the unit of the reboot manager that Flatcar and CoreOS bring along. It reboots the host once an update is
// staged and asks nobody in the cluster.
const locksmithUnit = "locksmithd.service"

// systemd on the bus: https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.systemd1.html
const (
	systemdName             = "org.freedesktop.systemd1"
	systemdPath             = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdManagerInterface = "org.freedesktop.systemd1.Manager"
	systemdUnitInterface    = "org.freedesktop.systemd1.Unit"
)

// Names of the D-Bus errors that say that there is no such unit in memory, and that no systemd is on the bus.
const (
	errNoSuchUnit     = "org.freedesktop.systemd1.NoSuchUnit"
	errServiceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
	errNameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
)

// unitIsActive tells whether systemd runs a unit, or is about to: whatever is neither inactive nor failed may still act. A
// unit that is not loaded does not run, and neither does any where there is no systemd.
func unitIsActive(ctx context.Context, connect Connect, unit string) (bool, error) {
	conn, err := connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	state, err := activeState(ctx, conn, unit)
	switch {
	case isAnswer(err, errNoSuchUnit), isAnswer(err, errServiceUnknown), isAnswer(err, errNameHasNoOwner):
		return false, nil
	case ErrorName(err) != "": // The text would be another one with each look.
		return false, errors.New("systemd answers " + ErrorName(err))
	case err != nil:
		return false, err
	}
	return state != "inactive" && state != "failed", nil
}

// activeState is the property ActiveState of a unit. GetUnit, unlike LoadUnit, loads nothing and is open to everybody.
func activeState(ctx context.Context, conn *dbus.Conn, unit string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var path dbus.ObjectPath
	// Where systemd is not there already, the bus must not try to start it.
	call := conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdManagerInterface+".GetUnit", dbus.FlagNoAutoStart, unit)
	if err := call.Store(&path); err != nil {
		return "", fmt.Errorf("calling GetUnit of systemd: %w", err)
	}
	var value dbus.Variant
	call = conn.Object(systemdName, path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", dbus.FlagNoAutoStart,
		systemdUnitInterface, "ActiveState")
	if err := call.Store(&value); err != nil {
		return "", fmt.Errorf("reading ActiveState of %s: %w", unit, err)
	}
	state, ok := value.Value().(string)
	if !ok {
		return "", fmt.Errorf("reading ActiveState of %s: %s instead of a string", unit, value.Signature())
	}
	return state, nil
}

func isAnswer(err error, name string) bool {
	answer, ok := errors.AsType[dbus.Error](err)
	return ok && answer.Name == name
}
