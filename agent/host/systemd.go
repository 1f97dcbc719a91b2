package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// systemd on the bus: https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.systemd1.html
const (
	systemdName             = "org.freedesktop.systemd1"
	systemdPath             = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdManagerInterface = "org.freedesktop.systemd1.Manager"
	systemdUnitInterface    = "org.freedesktop.systemd1.Unit"
)

// Names of the D-Bus errors for a unit that is not loaded, and for a bus without systemd.
const (
	errNoSuchUnit     = "org.freedesktop.systemd1.NoSuchUnit"
	errServiceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
	errNameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
)

// unitIsActive reports whether systemd runs a unit or is about to. A unit in any state but inactive
// and failed may still act. A unit that is not loaded does not run. Without systemd no unit runs.
func unitIsActive(ctx context.Context, on activeUnit, unit string) (bool, error) {
	state, err := unitProperty(ctx, on.conn, unit, systemdUnitInterface, "ActiveState")
	switch {
	case ErrorName(err) == errNoSuchUnit, NoOwner(err) && !runsSystemd(on.root):
		return false, nil
	case err != nil:
		return false, err
	}
	return state != "inactive" && state != "failed", nil
}

// runsSystemd reports whether the host runs systemd, as sd_booted(3) does, or may run it. Systemd
// leaves the bus for a moment while it re-executes itself.
func runsSystemd(root string) bool {
	_, err := os.Stat(filepath.Join(root, "run/systemd/system"))
	return !errors.Is(err, fs.ErrNotExist)
}

// unitProperty returns a string property of a unit.
func unitProperty(ctx context.Context, conn *dbus.Conn, unit, iface, name string) (string, error) {
	value, err := property(ctx, conn, unit, iface, name)
	if err != nil {
		return "", err
	}
	text, ok := value.Value().(string)
	if !ok {
		return "", fmt.Errorf("reading %s of %s: %s instead of a string", name, unit, value.Signature())
	}
	return text, nil
}

// property returns a property of a unit.
func property(ctx context.Context, conn *dbus.Conn, unit, iface, name string) (dbus.Variant, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var path dbus.ObjectPath
	// Unlike LoadUnit, GetUnit does not load the unit and needs no permission. The bus must not try
	// to start systemd.
	call := conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdManagerInterface+".GetUnit", dbus.FlagNoAutoStart, unit)
	if err := call.Store(&path); err != nil {
		return dbus.Variant{}, fmt.Errorf("calling GetUnit of systemd: %w", err)
	}
	var value dbus.Variant
	call = conn.Object(systemdName, path).CallWithContext(ctx, propertiesInterface+".Get", dbus.FlagNoAutoStart, iface, name)
	if err := call.Store(&value); err != nil {
		return dbus.Variant{}, fmt.Errorf("reading %s of %s: %w", name, unit, err)
	}
	return value, nil
}

// answered reduces an error reply to its name, because its text may differ each time.
func answered(who string, err error) error {
	if name := ErrorName(err); name != "" {
		return fmt.Errorf("%s answers %s", who, name)
	}
	return err
}

// unitPath returns the object path of a unit. Characters that a path cannot contain become an
// underscore and two hexadecimal digits.
func unitPath(unit string) dbus.ObjectPath {
	var label strings.Builder
	for _, c := range []byte(unit) {
		if strings.IndexByte(alphanumeric, c) >= 0 {
			label.WriteByte(c)
			continue
		}
		fmt.Fprintf(&label, "_%02x", c)
	}
	return systemdPath + "/unit/" + dbus.ObjectPath(label.String())
}

// inhibitorsBindRoot is the first version of systemd in which root needs polkit's permission to
// ignore a block inhibitor.
const inhibitorsBindRoot = 257

// bindsRoot reports whether the host's systemd has that version or a later one. It returns false if
// the version is unknown. The call of logind then shows whether it refuses.
func bindsRoot(ctx context.Context, conn *dbus.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var value dbus.Variant
	call := conn.Object(systemdName, systemdPath).CallWithContext(ctx, propertiesInterface+".Get", dbus.FlagNoAutoStart, systemdManagerInterface, "Version")
	if call.Store(&value) != nil {
		return false
	}
	text, _ := value.Value().(string) // such as 257.4-1, or v258~rc2
	text = strings.TrimPrefix(text, "v")
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	major, err := strconv.Atoi(text[:end])
	return err == nil && major >= inhibitorsBindRoot
}

const polkitName = "org.freedesktop.PolicyKit1"

// hasPolkit reports whether polkit is on the bus, or the bus could start it. Polkit permits root
// everything. It returns true if that is unknown. The call of logind then shows whether it refuses.
func hasPolkit(ctx context.Context, conn *dbus.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for _, method := range []string{"ListNames", "ListActivatableNames"} {
		var names []string
		if conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus."+method, 0).Store(&names) != nil || slices.Contains(names, polkitName) {
			return true
		}
	}
	return false
}
