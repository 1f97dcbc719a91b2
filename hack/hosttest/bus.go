// Package hosttest provides a host for tests and demonstrations: a private dbus-daemon with fakes
// of the update engines and of logind. The policy of the daemon allows everything, so anyone who
// can reach the socket may own any name.
package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

const (
	// maxSocketPath is one less than the size of sun_path on Linux.
	maxSocketPath = 107
	// readyPoll is the interval at which a starting daemon is checked.
	readyPoll = time.Millisecond
	// stopGrace is the time that the daemon has to end.
	stopGrace = 10 * time.Second
)

// Bus is a running dbus-daemon. Its address stays the same across Restart.
type Bus struct {
	// dir holds the socket and the configuration.
	dir string
	// owned reports whether Start created dir and Stop removes it.
	owned bool
	// address is the address of a bus that somebody else runs, or empty if this package runs it.
	address string
	// programs runs the daemon.
	programs *process.Group

	mu          sync.Mutex
	daemon      *process.Process
	activations []*activation
}

// Start runs a dbus-daemon with its files in dir, which must exist. It returns once the daemon
// listens. If dir is too long for the path of a socket, it uses a short temporary folder, which
// Stop removes.
func Start(dir string) (*Bus, error) {
	bus := &Bus{dir: dir}
	if len(bus.socket()) > maxSocketPath {
		short, err := os.MkdirTemp("", "bus")
		if err != nil {
			return nil, fmt.Errorf("making a folder for the bus: %w", err)
		}
		bus.dir, bus.owned = short, true
	}
	if err := os.WriteFile(bus.config(), bus.configuration(), 0o600); err != nil {
		return nil, fmt.Errorf("configuring the bus: %w", err)
	}
	bus.programs = process.NewGroup(bus.dir)
	if err := bus.start(); err != nil {
		return nil, errors.Join(err, bus.Stop())
	}
	return bus, nil
}

// TB is the part of *testing.T, *testing.B and Ginkgo's GinkgoT() that StartFor needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// StartFor starts a bus for a test and stops it when the test ends. Errors fail the test.
func StartFor(t TB) *Bus {
	t.Helper()
	bus, err := Start(t.TempDir())
	if err != nil {
		t.Fatalf("starting a bus: %v", err)
	}
	t.Cleanup(func() {
		if err := bus.Stop(); err != nil {
			t.Fatalf("stopping the bus: %v", err)
		}
	})
	return bus
}

// Join returns a bus that somebody else runs, such as the system bus of a real host, to put
// services on it.
func Join(address string) *Bus { return &Bus{address: address} }

// Address is the bus's D-Bus address, unix:path=….
func (b *Bus) Address() string {
	if b.address != "" {
		return b.address
	}
	return "unix:path=" + dbus.EscapeBusAddressValue(b.socket())
}

// Connect opens a new connection to the bus. The caller closes it.
func (b *Bus) Connect() (*dbus.Conn, error) {
	conn, err := dbus.Connect(b.Address())
	if err != nil {
		return nil, fmt.Errorf("connecting to the test bus: %w", err)
	}
	return conn, nil
}

// Stop ends the daemon: every connection breaks, and the socket is gone. Stopping twice is fine.
func (b *Bus) Stop() error {
	err := b.Halt()
	b.programs.Stop(context.Background())
	if err = errors.Join(err, b.deactivate()); b.owned {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}

// Restart stops the daemon if it runs and starts it at the same address. Services do not come back
// by themselves: call their Start.
func (b *Bus) Restart() error {
	if err := b.Halt(); err != nil {
		return err
	}
	return b.start()
}

// Halt stops the daemon until Restart. It returns an error if the daemon had to be killed.
func (b *Bus) Halt() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace) // works after the end of the test, too
	defer cancel()
	if b.daemon != nil {
		b.daemon.Stop(ctx)
	}
	return ctx.Err()
}

func (b *Bus) socket() string { return filepath.Join(b.dir, "bus") }
func (b *Bus) config() string { return filepath.Join(b.dir, "bus.conf") }

// services returns the folder of the services that the daemon starts on demand. It may not exist.
func (b *Bus) services() string { return filepath.Join(b.dir, "services") }

// configuration returns the configuration of a bus on which everything is allowed.
func (b *Bus) configuration() []byte {
	var address, services bytes.Buffer
	_ = xml.EscapeText(&address, []byte(b.Address())) // writing to a bytes.Buffer cannot fail
	_ = xml.EscapeText(&services, []byte(b.services()))
	return fmt.Appendf(nil, `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>%s</listen>
  <auth>EXTERNAL</auth>
  <servicedir>%s</servicedir>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow receive_sender="*" eavesdrop="true"/>
  </policy>
</busconfig>
`, address.String(), services.String())
}

func (b *Bus) start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	b.daemon, err = b.programs.Start(process.Program{
		Name: "dbus-daemon", Path: "dbus-daemon", Args: []string{"--config-file=" + b.config(), "--nofork", "--nopidfile"},
	})
	if err != nil {
		return fmt.Errorf("starting dbus-daemon (package dbus-daemon or dbus): %w", err)
	}
	for {
		// The socket of an earlier daemon refuses connections.
		if conn, err := net.Dial("unix", b.socket()); err == nil {
			return conn.Close()
		}
		select {
		case <-b.daemon.Done():
			return fmt.Errorf("waiting for dbus-daemon: %w", b.daemon.ExitError())
		case <-time.After(readyPoll):
		}
	}
}

// deactivate closes the pipes of activatable services.
func (b *Bus) deactivate() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	failures := make([]error, 0, len(b.activations))
	for _, a := range b.activations {
		failures = append(failures, a.starts.Close())
	}
	b.activations = nil
	return errors.Join(failures...)
}

// activation is a service that the bus starts when it is called, as with systemd. The service lives
// in the test process, so the program that the daemon runs writes a line into a pipe, which the
// test process reads.
type activation struct {
	// script is the program that the daemon runs.
	script string
	// starts is the pipe that it writes to.
	starts *os.File
}

// activatable makes name a service that the bus starts on demand. start is called for each demand,
// one at a time, and must have taken the name when it returns.
func (b *Bus) activatable(name string, start func() error) (*activation, error) {
	folder := b.services()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making %s activatable: %w", name, err)
	}
	script, pipe := filepath.Join(folder, name+".sh"), filepath.Join(folder, name+".pipe")
	unit := fmt.Sprintf("[D-BUS Service]\nName=%s\nExec=/bin/sh \"%s\"\n", name, script)
	if err := os.WriteFile(filepath.Join(folder, name+".service"), []byte(unit), 0o600); err != nil {
		return nil, fmt.Errorf("making %s activatable: %w", name, err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return nil, fmt.Errorf("making the pipe of %s: %w", name, err)
	}
	// The pipe is also opened for writing, so that reading neither blocks nor ends without a
	// writer.
	starts, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the pipe of %s: %w", name, err)
	}
	a := &activation{script: script, starts: starts}
	b.mu.Lock()
	b.activations = append(b.activations, a)
	b.mu.Unlock()
	go a.answer(start)
	return a, a.works(true)
}

// MakeActivatable installs a service that the bus tries to start on demand, which fails.
func (b *Bus) MakeActivatable(name string) error {
	a, err := b.activatable(name, func() error { return nil })
	if err != nil {
		return err
	}
	return errors.Join(a.works(false), b.reload())
}

// reload makes the daemon list the installed services. It would find them by itself only when they
// are called.
func (b *Bus) reload() error {
	conn, err := b.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err; err != nil {
		return fmt.Errorf("reloading the bus: %w", err)
	}
	return nil
}

// works sets whether the program that the daemon runs writes into the pipe or fails.
func (a *activation) works(works bool) error {
	script := "exit 1\n"
	if works {
		script = fmt.Sprintf("echo start >'%s'\n", a.starts.Name())
	}
	if err := os.WriteFile(a.script, []byte(script), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", a.script, err)
	}
	return nil
}

// answer starts the service for each line until the pipe is closed. If the start fails, the daemon
// waits for the name for a while, and then the caller's call fails.
func (a *activation) answer(start func() error) {
	for lines := bufio.NewScanner(a.starts); lines.Scan(); {
		_ = start()
	}
}
