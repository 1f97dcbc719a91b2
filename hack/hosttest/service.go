package hosttest

import (
	"fmt"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Names of every service with properties.
const (
	propertiesIface   = "org.freedesktop.DBus.Properties"
	propertiesChanged = propertiesIface + ".PropertiesChanged"
)

// guarded is the lock for the state of a service, which the bus and tests share.
type guarded struct{ mu sync.Mutex }

func (g *guarded) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// read returns a part of the state of a service under its lock.
func read[T any](g *guarded, value func() T) T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return value()
}

// service is a name on the bus and the connection that owns it.
type service struct {
	bus  *Bus
	name string

	mu   sync.Mutex
	conn *dbus.Conn
}

// start connects, lets export put objects on the connection, and takes the name.
func (s *service) start(export func(*dbus.Conn) error) error {
	s.stop()
	conn, err := s.bus.Connect()
	if err != nil {
		return err
	}
	if err := s.appear(conn, export); err != nil {
		_ = conn.Close()
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
	return nil
}

func (s *service) appear(conn *dbus.Conn, export func(*dbus.Conn) error) error {
	if err := export(conn); err != nil {
		return err
	}
	// The objects are exported first, because clients may call as soon as they see the name.
	reply, err := conn.RequestName(s.name, dbus.NameFlagDoNotQueue)
	if err != nil {
		return err
	}
	if reply != dbus.RequestNameReplyPrimaryOwner {
		return fmt.Errorf("the name is taken (%s)", reply)
	}
	return nil
}

// stop releases the name and closes the connection. The bus may notice a closed connection late,
// and the next start would find the name taken.
func (s *service) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_, _ = s.conn.ReleaseName(s.name) // The bus may be gone, and the name with it.
		_ = s.conn.Close()
		s.conn = nil
	}
}

// current returns the open connection, or an error if the service is stopped.
func (s *service) current() (*dbus.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, fmt.Errorf("%s is not running", s.name)
	}
	return s.conn, nil
}

// signal broadcasts a signal. It does nothing if the service is stopped.
func (s *service) signal(path dbus.ObjectPath, name string, body []any) error {
	conn, err := s.current()
	if err != nil {
		return err
	}
	return emit(conn, path, name, body)
}

// isRunning asks the bus, because a connection may not have noticed a restart of the bus.
func (s *service) isRunning() bool {
	conn, err := s.current()
	return err == nil && conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err == nil
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
	// The bus handles messages of one connection in order. With this reply it has taken the signal,
	// so closing the connection cannot lose it. (locksmithctl sleeps for a second instead.)
	if err := conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil {
		return fmt.Errorf("flushing %s: %w", name, err)
	}
	return nil
}
