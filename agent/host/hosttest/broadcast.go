package hosttest

import (
	"fmt"

	"github.com/godbus/dbus/v5"
)

// What every service has that has properties.
const (
	propertiesIface   = "org.freedesktop.DBus.Properties"
	propertiesChanged = propertiesIface + ".PropertiesChanged"
)

// SendNeedReboot does what `locksmithctl send-need-reboot` does: on a connection of its own, and so under a name that is
// not update_engine's, it broadcasts one StatusUpdate that reports a reboot is needed. update_engine knows nothing of it.
func (b *Bus) SendNeedReboot() error {
	return b.Broadcast(NeedReboot("").body()...)
}

// Broadcast emits a StatusUpdate with any body, fit or not, from a connection of its own.
func (b *Bus) Broadcast(body ...any) error {
	return b.forge(enginePath, engineInterface+".StatusUpdate", body)
}

// ForgeCOS emits a StatusUpdateAdvanced of COS from a connection of its own, which is not update_engine's.
func (b *Bus) ForgeCOS(status COSStatus) error {
	return b.forge(cosPath, cosInterface+".StatusUpdateAdvanced", []any{status.message()})
}

func (b *Bus) forge(path dbus.ObjectPath, name string, body []any) error {
	conn, err := b.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return emit(conn, path, name, body)
}

func emit(conn *dbus.Conn, path dbus.ObjectPath, name string, body []any) error {
	if err := conn.Emit(path, name, body...); err != nil {
		return fmt.Errorf("broadcasting %s: %w", name, err)
	}
	// The bus handles messages of one connection in order: with this answer it has taken the signal, so closing the
	// connection cannot lose it. (locksmithctl sleeps for a second.)
	if err := conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil {
		return fmt.Errorf("flushing %s: %w", name, err)
	}
	return nil
}
