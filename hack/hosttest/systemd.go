package hosttest

import (
	"fmt"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// Names of systemd on the bus.
const (
	systemdName             = "org.freedesktop.systemd1"
	systemdPath             = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdManagerInterface = "org.freedesktop.systemd1.Manager"
	systemdUnitInterface    = "org.freedesktop.systemd1.Unit"
	systemdServiceInterface = "org.freedesktop.systemd1.Service"
)

// Units is a fake systemd. It knows the states of units but does not run them.
type Units struct {
	guarded

	service service
	states  map[string]any
	texts   map[string]any
	starts  map[string]any
	version string
	failure *dbus.Error
	asked   int
}

// StartUnits puts a systemd without loaded units on the bus.
func StartUnits(b *Bus) (*Units, error) {
	u := &Units{service: service{bus: b, name: systemdName}, states: map[string]any{}, texts: map[string]any{}, starts: map[string]any{}}
	return u, u.Start()
}

// Start brings systemd back after Stop or a restart of the bus.
func (u *Units) Start() error {
	return u.service.start(u.export)
}

// Stop takes systemd off the bus.
func (u *Units) Stop() { u.service.stop() }

// Set sets ActiveState of a unit such as locksmithd.service: active, activating, deactivating,
// inactive, failed, or any other value of any type. Nil unloads the unit. It signals the change as
// the real one does.
func (u *Units) Set(unit string, state any) {
	u.set(func() { u.states[unit] = state })
	changed := map[string]dbus.Variant{"ActiveState": dbus.MakeVariant(fmt.Sprint(state))}
	_ = u.service.signal(unitPath(unit), propertiesChanged, []any{systemdUnitInterface, changed, []string{}})
}

// ChangeFiles signals that units were enabled, disabled, masked or unmasked.
func (u *Units) ChangeFiles() error {
	return u.service.signal(systemdPath, systemdManagerInterface+".UnitFilesChanged", nil)
}

// SetStatusText sets StatusText of a service to a value of any type. The default is empty.
func (u *Units) SetStatusText(unit string, text any) { u.set(func() { u.texts[unit] = text }) }

// SetStarted sets ExecMainStartTimestamp of a service, in microseconds, to a value of any type. By
// default the service has just started.
func (u *Units) SetStarted(unit string, micros any) { u.set(func() { u.starts[unit] = micros }) }

// SetVersion sets property Version, such as 257.4-1.
func (u *Units) SetVersion(version string) { u.set(func() { u.version = version }) }

// Fail makes every call fail with a D-Bus error, such as org.freedesktop.DBus.Error.AccessDenied.
// An empty name lets them succeed again.
func (u *Units) Fail(name, message string) { u.set(func() { u.failure = namedError(name, message) }) }

// Asked counts the calls of GetUnit.
func (u *Units) Asked() int { return read(&u.guarded, func() int { return u.asked }) }

// export puts the manager on the bus, and an object below it for every unit.
func (u *Units) export(conn *dbus.Conn) error {
	if err := conn.ExportMethodTable(map[string]any{"GetUnit": u.getUnit}, systemdPath, systemdManagerInterface); err != nil {
		return err
	}
	if err := conn.ExportMethodTable(map[string]any{"Get": u.property}, systemdPath, propertiesIface); err != nil {
		return err
	}
	return conn.ExportSubtreeMethodTable(map[string]any{"Get": u.property}, systemdPath+"/unit", propertiesIface)
}

func (u *Units) getUnit(unit string) (dbus.ObjectPath, *dbus.Error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked++
	switch {
	case u.failure != nil:
		return "", u.failure
	case u.states[unit] == nil:
		return "", namedError("org.freedesktop.systemd1.NoSuchUnit", fmt.Sprintf("Unit %s not loaded.", unit))
	}
	return unitPath(unit), nil
}

func (u *Units) property(message dbus.Message, iface, name string) (dbus.Variant, *dbus.Error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	path, _ := message.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	if path == systemdPath && iface == systemdManagerInterface && name == "Version" {
		return dbus.MakeVariant(u.version), nil
	}
	for unit, state := range u.states {
		switch {
		case path != unitPath(unit) || state == nil:
		case iface == systemdUnitInterface && name == "ActiveState":
			return dbus.MakeVariant(state), nil
		case iface == systemdServiceInterface && name == "StatusText":
			if text, found := u.texts[unit]; found {
				return dbus.MakeVariant(text), nil
			}
			return dbus.MakeVariant(""), nil
		case iface == systemdServiceInterface && name == "ExecMainStartTimestamp":
			if started, found := u.starts[unit]; found {
				return dbus.MakeVariant(started), nil
			}
			return dbus.MakeVariant(uint64(time.Now().UnixMicro())), nil
		}
	}
	return dbus.Variant{}, namedError("org.freedesktop.DBus.Error.UnknownProperty", "Unknown property "+name)
}

// unitPath returns the object path of a unit. Characters that a path cannot contain become an
// underscore and two hexadecimal digits.
func unitPath(unit string) dbus.ObjectPath {
	var label strings.Builder
	for _, c := range []byte(unit) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			label.WriteByte(c)
			continue
		}
		fmt.Fprintf(&label, "_%02x", c)
	}
	return systemdPath + "/unit/" + dbus.ObjectPath(label.String())
}

// StartPolkit puts the name of polkit on the bus.
func StartPolkit(b *Bus) error {
	polkit := service{bus: b, name: "org.freedesktop.PolicyKit1"}
	return polkit.start(func(*dbus.Conn) error { return nil })
}
