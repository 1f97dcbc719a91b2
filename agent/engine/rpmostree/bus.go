package rpmostree

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
)

// https://github.com/coreos/rpm-ostree/blob/main/src/daemon/org.projectatomic.rpmostree1.xml
const (
	busName              = "org.projectatomic.rpmostree1"
	namespace            = dbus.ObjectPath("/org/projectatomic/rpmostree1")
	sysrootPath          = dbus.ObjectPath("/org/projectatomic/rpmostree1/Sysroot")
	sysrootInterface     = busName + ".Sysroot"
	osInterface          = busName + ".OS"
	transactionInterface = busName + ".Transaction"
	propertiesInterface  = "org.freedesktop.DBus.Properties"
)

// callLimit is the time-out of one call. The call may have to start the daemon, which then reads a
// lot from disk.
const callLimit = time.Minute

// errMalformed is part of the error of a reply that cannot be read.
var errMalformed = errors.New("malformed reply")

// daemon is rpm-ostree on an open connection. A call starts it if it is not running.
type daemon struct{ conn *dbus.Conn }

// call calls a method of one of the daemon's objects.
func (d daemon) call(ctx context.Context, path dbus.ObjectPath, method string, flags dbus.Flags, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return d.conn.Object(busName, path).CallWithContext(ctx, method, flags, args...)
}

// deployments reads property Deployments of Sysroot. It also returns the sequence number of the
// reply.
func (d daemon) deployments(ctx context.Context, flags dbus.Flags) (dbus.Variant, dbus.Sequence, error) {
	call := d.call(ctx, sysrootPath, propertiesInterface+".Get", flags, sysrootInterface, "Deployments")
	var value dbus.Variant
	err := call.Store(&value)
	if err != nil && call.Err == nil {
		err = errMalformed
	}
	if err != nil {
		err = fmt.Errorf("reading Deployments of rpm-ostree: %w", err)
	}
	return value, call.ResponseSequence, err
}

// sysroot reads the properties that the Driver needs.
func (d daemon) sysroot(ctx context.Context) (sysroot, error) {
	var values map[string]dbus.Variant
	if err := d.call(ctx, sysrootPath, propertiesInterface+".GetAll", 0, sysrootInterface).Store(&values); err != nil {
		return sysroot{}, fmt.Errorf("reading Sysroot of rpm-ostree: %w", err)
	}
	s, err := decodeSysroot(values)
	if err != nil {
		return sysroot{}, fmt.Errorf("reading Sysroot of rpm-ostree: %w", err)
	}
	return s, nil
}

// reloaded reads the same after the daemon has processed everything before, including the end of a
// transaction.
func (d daemon) reloaded(ctx context.Context) (sysroot, error) {
	if err := d.call(ctx, sysrootPath, sysrootInterface+".Reload", 0).Err; err != nil {
		return sysroot{}, fmt.Errorf("reloading Sysroot of rpm-ostree: %w", err)
	}
	return d.sysroot(ctx)
}

// register prevents the daemon from exiting when idle, until the connection is closed.
func (d daemon) register(ctx context.Context) error {
	options := map[string]dbus.Variant{"id": dbus.MakeVariant(clientID)}
	if err := d.call(ctx, sysrootPath, sysrootInterface+".RegisterClient", 0, options).Err; err != nil {
		return fmt.Errorf("registering with rpm-ostree: %w", err)
	}
	return nil
}

// upgrade requests an upgrade of a system. It returns the address of the transaction, which still
// has to be started.
func (d daemon) upgrade(ctx context.Context, system dbus.ObjectPath) (string, error) {
	var address string
	call := d.call(ctx, system, osInterface+".Upgrade", 0, map[string]dbus.Variant{})
	if err := call.Store(&address); err != nil {
		return "", fmt.Errorf("asking rpm-ostree for an upgrade: %w", err)
	}
	return address, nil
}
