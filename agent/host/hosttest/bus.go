// Package hosttest is a host for tests and demonstrations: a real, private dbus-daemon with fakes of the update engines and
// of logind on it. The daemon's policy allows everything, so whoever can reach the socket may own any name.
package hosttest

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

const (
	// maxSocketPath is one less than sun_path holds on Linux.
	maxSocketPath = 107
	// readyPoll is how often a daemon that is starting is asked whether it listens.
	readyPoll = time.Millisecond
	// stopGrace is how long it has to end.
	stopGrace = 10 * time.Second
)

// Bus is a running dbus-daemon. Its address stays the same across Restart.
type Bus struct {
	// dir holds the socket and the configuration.
	dir string
	// owned reports that dir was made by Start and goes with Stop.
	owned bool
	// address is that of a bus that somebody else runs. Empty: ours.
	address string
	// programs runs the daemon.
	programs *process.Group

	mu          sync.Mutex
	daemon      *process.Process
	activations []*activation
}

// Start runs a dbus-daemon with its files in dir, which must exist. It returns once the daemon listens. Where dir is too
// long for the path of a socket, a short temporary folder is used instead and removed by Stop.
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

// Join is a bus that somebody else runs, for services that are put on it: a real host's system bus, for example.
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

// Restart ends the daemon if it runs and starts it again at the same address. Services do not come back by themselves:
// call their Start.
func (b *Bus) Restart() error {
	if err := b.Halt(); err != nil {
		return err
	}
	return b.start()
}

// Halt ends the daemon until Restart. An error: it had to be killed.
func (b *Bus) Halt() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace) // A test that has ended stops its bus, too.
	defer cancel()
	if b.daemon != nil {
		b.daemon.Stop(ctx)
	}
	return ctx.Err()
}

func (b *Bus) socket() string { return filepath.Join(b.dir, "bus") }
func (b *Bus) config() string { return filepath.Join(b.dir, "bus.conf") }

// services is the folder of what the daemon starts on demand; it may be missing.
func (b *Bus) services() string { return filepath.Join(b.dir, "services") }

// configuration is that of a bus on which anybody may do anything.
func (b *Bus) configuration() []byte {
	var address, services bytes.Buffer
	_ = xml.EscapeText(&address, []byte(b.Address())) // A bytes.Buffer takes every write.
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
		// A socket that an earlier daemon has left refuses.
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
