// Package hosttest is a host for tests and demonstrations: a real, private dbus-daemon with fakes of the update engines and
// of logind on it. The daemon's policy allows everything, so whoever can reach the socket may own any name.
package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// maxSocketPath is one less than sun_path holds on Linux.
const maxSocketPath = 107

// Bus is a running dbus-daemon. Its address stays the same across Restart.
type Bus struct {
	// dir holds the socket and the configuration.
	dir string
	// owned reports that dir was made by Start and goes with Stop.
	owned bool
	// address is that of a bus that somebody else runs. Empty: ours.
	address string

	mu     sync.Mutex
	daemon *exec.Cmd
	// release lets the thread go that started the daemon.
	release     func()
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
	if err := bus.start(); err != nil {
		return nil, errors.Join(err, bus.clean())
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
	return errors.Join(b.stop(), b.deactivate(), b.clean())
}

// Restart ends the daemon if it runs and starts it again at the same address. Services do not come back by themselves:
// call their Start.
func (b *Bus) Restart() error {
	if err := b.stop(); err != nil {
		return err
	}
	return b.start()
}

// Halt ends the daemon until Restart.
func (b *Bus) Halt() error { return b.stop() }

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
	var complaints bytes.Buffer
	daemon := exec.CommandContext(context.Background(), // It ends with Stop.
		"dbus-daemon", "--config-file="+b.config(), "--nofork", "--nopidfile", "--print-address")
	daemon.Stderr = &complaints
	daemon.SysProcAttr = process.Attributes()
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting dbus-daemon: %w", err)
	}
	release, err := startOnThread(daemon)
	if err != nil {
		return fmt.Errorf("starting dbus-daemon (package dbus-daemon or dbus): %w", err)
	}
	// The daemon prints its address once it listens.
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		defer release()
		if errors.Is(err, io.EOF) {
			err = errors.Join(daemon.Wait(), errors.New(complaints.String()))
		}
		return fmt.Errorf("waiting for dbus-daemon: %w", err)
	}
	b.daemon, b.release = daemon, release
	return nil
}

// startOnThread starts a program on a thread that lives until it is released: the kernel kills the program when the thread
// that started it ends, and Go ends threads as it likes unless they are locked.
func startOnThread(program *exec.Cmd) (release func(), err error) {
	started, released := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- program.Start()
		<-released
	}()
	release = func() { close(released) }
	if err := <-started; err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (b *Bus) stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.daemon == nil {
		return nil
	}
	daemon := b.daemon
	b.daemon = nil
	defer b.release()
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping dbus-daemon: %w", err)
	}
	// It ends by our signal: that exit status is no error. Its files are gone or stale, and replaced at the next start.
	if err := daemon.Wait(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			return fmt.Errorf("waiting for the end of dbus-daemon: %w", err)
		}
	}
	return nil
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

func (b *Bus) clean() error {
	if !b.owned {
		return nil
	}
	return os.RemoveAll(b.dir)
}
